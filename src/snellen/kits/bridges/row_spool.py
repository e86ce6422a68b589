"""Rows of a foreign file kept on disk while they are counted: what is said of them is known before they go on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from ...core.errors import DataError, SnellenError, UsageError
from ...core.text import clean_text
from ...core.types import Form
from .damage import Damage, each_well_formed
from .foreign_rows import ForeignFile, ForeignRow, has_letters_alone

REFUSE, FIRST, LAST = "refuse", "first", "last"
POLICIES = (REFUSE, FIRST, LAST)
"""What is done with two rows of one question that differ."""
_SIZE_BYTES = 4


class RowSpool:
    """Rows in the order they were added, without those that were dropped."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="snellen-rows-")  # noqa: SIM115 - closed by `close`
        self._encode = msgspec.msgpack.Encoder().encode
        self._digest = blake2b(digest_size=16)
        self._count = 0
        self._dropped: set[int] = set()
        self.failed = self.judged = 0
        """Rows without a reply, and rows with a verdict of the harness."""
        self.forms: set[Form] = set()
        self.repeats = 0
        """The most repeats of a question."""
        self.highest_letter = ""
        """The last letter, in the alphabet, that is right in a row whose options the file does not show."""
        self.questions: dict[str, int] = {}
        """Question -> its place, by first appearance."""

    def add(self, row: ForeignRow) -> int:
        """Keep a row and return its number."""
        try:
            data = self._encode(row)
        except UnicodeEncodeError:  # halves of characters, as other programs' JSON may spell them
            data = self._encode(_cleaned(msgspec.to_builtins(row)))
        self._digest.update(data)
        self._file.write(len(data).to_bytes(_SIZE_BYTES, "big") + data)
        self._count += 1
        self.forms.add(row.form)
        self.failed += row.failure is not None
        self.judged += row.verdict is not None
        self.repeats = max(self.repeats, row.repeat + 1)
        if has_letters_alone(row.options, row.answers):
            self.highest_letter = max(self.highest_letter, *(answer[1] for answer in row.answers))
        self.questions.setdefault(clean_text(row.id), len(self.questions))
        return self._count - 1

    @property
    def digest(self) -> str:
        """Return the hash of all rows and of which were dropped."""
        whole = self._digest.copy()
        whole.update(repr(sorted(self._dropped)).encode())
        return whole.hexdigest()

    def drop(self, number: int, *, failed: bool, judged: bool) -> None:
        """Leave a row out from now on."""
        self._dropped.add(number)
        self.failed -= failed
        self.judged -= judged

    def __len__(self) -> int:
        return self._count - len(self._dropped)

    def __iter__(self) -> Iterator[ForeignRow]:
        decode = msgspec.msgpack.Decoder(ForeignRow).decode
        self._file.seek(0)
        for number in range(self._count):
            data = self._file.read(int.from_bytes(self._file.read(_SIZE_BYTES), "big"))
            if number not in self._dropped:
                yield decode(data)

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list | tuple) else value


def spool_rows(file: ForeignFile, damage: Damage, repeated: str = REFUSE) -> RowSpool:
    """Return the rows of a file, each question and repeat once; rows that contradict each other are refused.

    `repeated` may say that the first or the last of them counts instead.
    """
    if repeated not in POLICIES:
        raise UsageError(f"--repeated {repeated!r} is none of {', '.join(POLICIES)}")
    spool = RowSpool()
    try:
        _fill(spool, file, damage, repeated)
        if not len(spool):
            first = next(iter(damage.named.get("bad", ())), "")
            raise DataError(f"{file.path} holds no rows{f' that can be read ({first})' if first else ''}")
    except SnellenError:
        spool.close()
        raise
    return spool


def _fill(spool: RowSpool, file: ForeignFile, damage: Damage, repeated: str) -> None:
    seen: dict[tuple[str, str, int], tuple[int, bytes, bool, bool]] = {}
    for row in each_well_formed(file.rows, str(file.path)):
        key, said = (row.id, row.variant, row.repeat), _digest(row)
        before = seen.get(key)
        if before is None or _replaces(row, said == before[1], repeated, file, damage):
            if before is not None:
                spool.drop(before[0], failed=before[2], judged=before[3])
            seen[key] = (spool.add(row), said, row.failure is not None, row.verdict is not None)


def _replaces(row: ForeignRow, same: bool, repeated: str, file: ForeignFile, damage: Damage) -> bool:
    """Tell whether a row takes the place of an earlier one of its question, and count what is lost."""
    if not same and repeated == REFUSE:
        where = f"{file.path}: question {row.id!r} is answered twice, and differently"
        fix = "--repeated first or last says which counts, --map id=COLUMN,COLUMN names what makes a row one of its own"
        raise DataError(f"{where}: is this two runs in one file? {fix}")
    damage.add("repeated" if same else "superseded", row.id)
    return not same and repeated == LAST


def _digest(row: ForeignRow) -> bytes:
    asked = (row.question, row.prompt, *row.answers, *row.options.values())
    said = "\x1f".join((str(row.reply), str(row.failure), *asked))
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()

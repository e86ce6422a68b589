"""A file of predictions of any format as records, opened once: who looks at the first one does not lose it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from ...core.errors import DataError, UsageError
from ..files.jsonstream import iterate_members, iterate_records
from ..files.rows import READERS, read_rows

Record = dict[str, Any]
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
PICKLES = (".pkl", ".pickle")
_PEEKED = 4096


class ForeignSource:
    """A path with what its first bytes and its first record say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ending = path.suffix.lower()
        if self.ending in PICKLES:
            raise UsageError(
                f"{path} is a pickle, and reading one runs what it holds: write the predictions anew as "
                "PRED_FORMAT=json or tsv (VLMEvalKit falls back to pickles when a reply is too long for Excel)"
            )
        if not path.exists():
            raise DataError(f"predictions {str(path)!r} do not exist")

    @cached_property
    def opening(self) -> str:
        """Return the first character that is no space: `[` a list, `{` an object or lines of them."""
        with self.path.open("rb") as stream:
            start = stream.read(_PEEKED).removeprefix(b"\xef\xbb\xbf").lstrip()
        return start[:1].decode("latin-1")

    @property
    def is_object(self) -> bool:
        """Tell whether the file is one large JSON object rather than records."""
        return self.ending == ".json" and self.opening == "{"

    @cached_property
    def first(self) -> Record:
        """Return the first record, or an empty one; of one large object, none."""
        if self.path.is_dir() or self.is_object or self.ending not in (*JSON_ENDINGS, *READERS):
            return {}
        number_and_record = next(self._rest, None)
        if number_and_record is None:
            raise DataError(f"{self.path} holds no rows")
        self._taken.append(number_and_record)
        return number_and_record[1]

    @cached_property
    def first_key(self) -> str:
        """Return the first key of one large object, or the empty text."""
        return next((key for key, _ in iterate_members(self.path, nan=True)), "") if self.is_object else ""

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield (number from 1, record), the first one too; once."""
        _ = self.first
        return chain(self._taken, self._rest)

    @cached_property
    def _taken(self) -> list[tuple[int, Record]]:
        return []

    @cached_property
    def _rest(self) -> Iterator[tuple[int, Record]]:
        if self.ending in JSON_ENDINGS:
            return iterate_records(self.path, nan=True)
        return read_rows(self.path)

"""A ledger of gold answers that people looked at: which rows are wrong, what is right instead, since when.

JSON lines that only grow; the last line about a row counts. A line is named by its own content, so a changed one is
seen, and the same line in two ledgers is one. It is bound to the question's content: another question is not corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..core.errors import DataError, UsageError
from ..core.ids import content_hash
from ..core.types import Sample

OFFICIAL, CORRECTED = "official", "corrected"
STATUSES = ("corrected", "official", "both", "drop", "undecided")
"""The gold was wrong; it is right; others are right too; the row cannot be answered; people do not agree yet."""


class Erratum(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What people found about one row."""

    task: str
    sample: str
    question: str
    """A hash of what is asked, without the gold."""
    official: tuple[str, ...]
    status: str
    gold: tuple[str, ...] = ()
    """What is right; of an undecided row what may be."""
    date: str = ""
    reviewers: tuple[str, ...] = ()
    note: str = ""
    id: str = ""

    def named(self) -> Erratum:
        """Return the line with its name: a hash of all it says."""
        return msgspec.structs.replace(self, id=_name(self))


def _name(line: Erratum) -> str:
    return content_hash(msgspec.to_builtins(msgspec.structs.replace(line, id="")))


def question_hash(sample: Sample) -> str:
    """Return the hash of what a sample asks: its form, words, options and pictures, and not its answers.

    A picture without a hash of its own is known by its file's name, an embedded one by its bytes.
    """
    turns = [(turn.role, turn.text) for turn in sample.turns]
    pictures = [image.sha256 or _place(image.ref) for image in sample.images]
    videos = [_place(video.ref) for video in sample.videos]
    return content_hash((sample.form, sample.question, sorted(sample.options), pictures, videos, turns))


def _place(ref: str) -> str:
    return ref if ref.startswith("data:") else Path(ref).name


def read_errata(path: Path) -> list[Erratum]:
    """Read a ledger; a line that is not as it was written is refused by its number."""
    decoder = msgspec.json.Decoder(Erratum)
    found = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"--errata {path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{path} line {number} is no erratum: {error}") from None
        if entry.status not in STATUSES:
            raise DataError(f"{path} line {number}: status {entry.status!r} is none of {', '.join(STATUSES)}")
        if entry.id != _name(entry):
            raise DataError(f"{path} line {number} (sample {entry.sample!r}) was changed: its name does not fit it")
        found.append(entry)
    return found


def write_errata(path: Path, entries: Iterable[Erratum]) -> int:
    """Add lines to a ledger, those that it has already left out; return how many were added."""
    known = {entry.id for entry in read_errata(path)} if path.exists() else set()
    fresh = [entry for entry in (one.named() for one in entries) if entry.id not in known]
    with path.open("ab") as file:
        for entry in fresh:
            file.write(msgspec.json.encode(entry) + b"\n")
    return len(fresh)


def merge_errata(paths: Iterable[Path]) -> list[Erratum]:
    """Return the lines of several ledgers once each, oldest first; what is decided later counts."""
    lines = {entry.id: entry for path in paths for entry in read_errata(path)}
    return sorted(lines.values(), key=lambda entry: entry.date)


class Golds:
    """A ledger as it stood at a time, applied to samples: counts what it changed and what no longer fits."""

    def __init__(self, entries: Iterable[Erratum], version: str = CORRECTED) -> None:
        self.version = version
        self.changed: set[str] = set()
        self.misfits: set[str] = set()
        self._by_row: Mapping[str, Erratum] = {
            entry.sample: entry for entry in entries if version != OFFICIAL and _is_known_at(entry, version)
        }

    def __len__(self) -> int:
        return len(self._by_row)

    def entry(self, sample: Sample) -> Erratum | None:
        """Return what the ledger says of a sample, if that is still the question it speaks of."""
        found = self._by_row.get(sample.id)
        if found is None:
            return None
        if found.question != question_hash(sample):
            self.misfits.add(sample.id)
            return None
        return found

    def apply(self, sample: Sample) -> Sample:
        """Return the sample with the gold that holds; a dropped one has none, and is judged by nobody."""
        found = self.entry(sample)
        if found is None or found.status in ("official", "undecided"):
            return sample
        self.changed.add(sample.id)
        return msgspec.structs.replace(sample, answers=() if found.status == "drop" else found.gold)

    def applied(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield samples with the gold that holds."""
        return map(self.apply, samples)

    def admissible(self, sample: Sample) -> list[tuple[str, ...] | None]:
        """Return every gold that a row may have: one where it is settled, several where it is not; None is dropped."""
        found = self.entry(sample)
        if found is None or found.status == "official":
            return [sample.answers]
        if found.status == "drop":
            return [None]
        if found.status != "undecided":
            return [found.gold]
        return [found.official, *((text,) for text in found.gold if (text,) != found.official), None]


def _is_known_at(entry: Erratum, version: str) -> bool:
    return version == CORRECTED or entry.date[: len(version)] <= version


def read_golds(path: Path | None, version: str | None) -> Golds | None:
    """Return the golds of `--errata FILE --gold official|corrected|2026-07`; None where neither is named."""
    if path is None:
        if version not in (None, OFFICIAL):
            raise UsageError(f"--gold {version} needs the ledger that says so: --errata FILE")
        return None
    chosen = version or CORRECTED
    if chosen not in (OFFICIAL, CORRECTED) and not _is_date(chosen):
        raise UsageError(f"--gold {chosen!r} is neither official, corrected nor a date like 2026-07")
    return Golds(read_errata(path), chosen)


def _is_date(text: Any) -> bool:
    parts = str(text).split("-")
    return 1 <= len(parts) <= 3 and all(part.isdigit() for part in parts) and len(parts[0]) == 4

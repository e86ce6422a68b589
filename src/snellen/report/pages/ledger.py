"""Notes and marks beside a run: lines are only ever added to notes.jsonl, and the last one about a thing counts."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ...core.errors import DataError, EnvironmentProblem, UsageError
from ...core.types import BASE_VARIANT, TrialKey

FILE = "notes.jsonl"
TRIAL_KINDS = {
    "flag": "flagged",
    "wrong_gold": "the gold answer is wrong",
    "wrong_reading": "the reading is wrong",
    "note": "note",
}
"""What can be said of a trial, and how it is told."""
RUN_KINDS = {"tag": "tag", "hidden": "hidden in lists"}
"""What can be said of a run."""
LONGEST = 4000


class Note(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing somebody said of a run, a sample or a trial; `off` takes it back."""

    at: str
    kind: str
    text: str = ""
    task: str = ""
    sample: str = ""
    variant: str = ""
    repeat: int = 0
    off: bool = False

    @property
    def about(self) -> tuple[str, ...]:
        """Return what it is about: a later note about the same takes its place. A run may have many tags."""
        return (self.kind, self.task, self.sample, self.variant, str(self.repeat), *(self.tag_of_run or ()))

    @property
    def tag_of_run(self) -> tuple[str] | None:
        """Return the tag, if it is one."""
        return (self.text,) if self.kind == "tag" else None


_decode = msgspec.json.Decoder(Note).decode


def trial_note(kind: str, key: TrialKey, text: str = "", *, off: bool = False) -> Note:
    """Return a note on a trial. A gold answer belongs to the sample: marked once, it is marked for every trial."""
    if kind not in TRIAL_KINDS:
        raise UsageError(f"no mark {kind!r}; known: {', '.join(TRIAL_KINDS)}")
    whole = kind == "wrong_gold"
    variant, repeat = ("", 0) if whole else (key.variant, key.repeat)
    return Note(_now(), kind, _checked(text), key.task, key.sample, variant, repeat, off)


def run_note(kind: str, text: str = "", *, off: bool = False) -> Note:
    """Return a note on a whole run."""
    if kind not in RUN_KINDS or (kind == "tag" and not text.strip()):
        raise UsageError(f"a run takes {', '.join(RUN_KINDS)}; a tag has a name")
    return Note(_now(), kind, _checked(text.strip()), off=off)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _checked(text: str) -> str:
    if len(text) > LONGEST:
        raise UsageError(f"a note has at most {LONGEST:,} characters, this one {len(text):,}: keep it elsewhere")
    return text


def add_notes(folder: Path, notes: Iterable[Note]) -> None:
    """Add notes to a run's file: synced before this returns; what a torn write left at its end is cut off first."""
    lines = b"".join(msgspec.json.encode(note) + b"\n" for note in notes)
    try:
        with (folder / FILE).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {folder / FILE}: {error.strerror}") from None


def read_notes(folder: Path) -> list[Note]:
    """Return what counts now, oldest first; a line that is no note is refused by its number."""
    try:
        content = (folder / FILE).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EnvironmentProblem(f"cannot read {folder / FILE}: {error.strerror}") from None
    found: dict[tuple[str, ...], Note] = {}
    for note in _lines(folder / FILE, content):
        found.pop(note.about, None)
        if not note.off:
            found[note.about] = note
    return list(found.values())


def _lines(path: Path, content: bytes) -> Iterator[Note]:
    for number, line in enumerate(content.split(b"\n")[:-1], 1):  # what follows the last line end was never finished
        try:
            yield _decode(line)
        except msgspec.DecodeError as error:
            raise DataError(f"{path} line {number} is not a note ({error}): mend or remove the line") from None


def notes_on(notes: Iterable[Note], key: TrialKey) -> list[Note]:
    """Return the notes on one trial, those on its sample included."""
    return [
        note
        for note in notes
        if (note.task, note.sample) == (key.task, key.sample)
        and (not note.variant or (note.variant, note.repeat) == (key.variant, key.repeat))
    ]


def wrong_gold(notes: Iterable[Note], task: str) -> frozenset[str]:
    """Return the samples of a task whose gold answer somebody called wrong."""
    return frozenset(note.sample for note in notes if note.kind == "wrong_gold" and note.task == task)


def exported_notes(folder: Path) -> str:
    """Return what counts now as JSON lines."""
    return "".join(msgspec.json.encode(note).decode() + "\n" for note in read_notes(folder))


def key_words(note: Note) -> str:
    """Return which trial a note is about, in words."""
    more = [] if note.variant in ("", BASE_VARIANT) else [note.variant]
    more += [f"inference {note.repeat + 1}"] if note.repeat else []
    return " · ".join((note.sample, *more))

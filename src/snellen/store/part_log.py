"""One part of a run to its own log, and back: append-only, one writer a file, no locks, read by any host at any time.

A line is a checksum, a length and a JSON array: a kind and the columns of one row as run.db has them. A torn tail is
passed over, and so is a line whose checksum does not fit; the length finds the next line even where a line end is gone.

    run.d/0003-of-0064.a0.log     the first attempt at part 3 of 64; made with O_EXCL, never opened again for writing
    run.d/0003-of-0064.a1.log     after it was requeued
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import astuple

from ..core.errors import EnvironmentProblem, RunMismatch
from ..core.homes import PARTS_FOLDER, Part
from ..core.tasks import RunHeader
from ..core.types import Prediction, TrialKey
from .database import GO_ON, Row, has_turns, is_intact, open_for_reading, seal, sync
from .difference import Data, describe_difference, describe_rows_changed
from .picture_ledger import PictureLedger
from .turns import STORED_TURN, StoredTurn, is_turn, turn_of_row
from .writer import STORED, Entry, TrialWriter

FOLDER = PARTS_FOLDER
PLAN = "plan.json"
CLAIMS = "claims"
"""Where parts that take work from others say who asks what."""
FORMAT = 1
HEADER, SAMPLE, TRIAL, ATTEMPT, META, PICTURE, REPLY, WHO, TURN = "hspamirwt"
BLOCK = 4 * 2**20
LINE_START = re.compile(rb"([0-9a-f]{8}) (\d{1,12}) ")
LONGEST_START = 8 + 1 + 12 + 1
LONGEST_LINE = 256 * 2**20
"""A length beyond it is damaged: nobody reads gigabytes for it."""
LOG_NAME = re.compile(r"(\d{4,})-of-(\d{4,})\.a(\d+)\.log")
Raw = msgspec.Raw
_COLUMNS: dict[str, Any] = {
    HEADER: tuple[str, int, str, Raw],
    SAMPLE: tuple[str, str, str, int, Raw],
    TRIAL: tuple[str, str, str, str, int, int, str, Raw, Raw],
    ATTEMPT: tuple[str, str, str, str, int, str, str, int | None, str, Raw],
    META: tuple[str, str, Raw],
    PICTURE: tuple[str, str, str, str],
    REPLY: tuple[str, str, str, float, Raw],
    WHO: tuple[str, str, str, Raw],
    TURN: tuple[str, str, str, str, int, int, str, Raw, Raw, Raw],
}
_DECODERS = {ord(kind): msgspec.json.Decoder(columns).decode for kind, columns in _COLUMNS.items()}
_encode = msgspec.json.Encoder().encode


def encode_line(kind: str, row: Iterable[Any]) -> bytes:
    """Return one row as a line of a log; columns of bytes are JSON already, and stay as they are."""
    body = _encode([kind, *[Raw(value) if isinstance(value, bytes) else value for value in row]])
    return b"%08x %d %b\n" % (crc32(body), len(body), body)


class LogLine(NamedTuple):
    """One intact line: where it begins, its kind and its columns."""

    offset: int
    kind: str
    row: Row


class LogReading:
    """The intact lines of a log, from an offset on: `for line in LogReading(path)`.

    After it `end` is where the last intact line ended and `damaged` how many stretches before that could not be read.
    What stands after `end` may be a line that is being written.
    """

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path, self.end, self.damaged = path, start, 0

    def __iter__(self) -> Iterator[LogLine]:
        with self.path.open("rb") as file:
            file.seek(self.end)
            data, begins, at, skipped = b"", self.end, 0, 0
            while True:
                more = file.read(BLOCK)
                data, begins, at = data[at:] + more, begins + at, 0
                while (found := _next_line(data, at, at_end=not more)) is not None:
                    row, after = found
                    if row is not None:
                        self.damaged, skipped = self.damaged + skipped, 0
                        self.end = begins + after
                        yield LogLine(begins + at, row[0], row[1:])
                    else:
                        skipped += 1
                    at = after
                if not more:
                    return


def _next_line(data: bytes, at: int, *, at_end: bool) -> tuple[Row | None, int] | None:
    """Return the row of the line at a place (None: damaged) and where the next begins; None: more must be read."""
    start = LINE_START.match(data, at)
    if start is None and not at_end and len(data) - at < LONGEST_START:
        return None
    if start is not None:
        first, length = start.end(), int(start[2])
        if first + length < len(data) or (at_end and first + length == len(data)):
            row = _decode(data[first : first + length], int(start[1], 16))
            if row is not None:
                return row, first + length + 1
        elif not at_end and length <= LONGEST_LINE:
            return None
    newline = data.find(b"\n", at)
    if newline < 0:
        return None if not at_end or at >= len(data) else (None, len(data))
    return None, newline + 1


def _decode(body: bytes, checksum: int) -> Row | None:
    if crc32(body) != checksum or body[:2] != b'["' or body[2] not in _DECODERS:
        return None
    try:
        row = _DECODERS[body[2]](body)
    except msgspec.DecodeError:
        return None
    return tuple([bytes(value) if isinstance(value, Raw) else value for value in row])


class LogFile(NamedTuple):
    """A log by its name: which part of how many, and the how many-th attempt."""

    path: Path
    part: Part
    attempt: int

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the order in which logs are read: what is asked twice has one answer for every reader."""
        return self.part.count, self.part.index, self.attempt


def log_files(folder: Path) -> list[LogFile]:
    """Return the logs of a run's parts in the order in which they are read."""
    try:
        paths = list((folder / FOLDER).iterdir())
    except OSError:
        return []
    found = [(path, match) for path in paths if (match := LOG_NAME.fullmatch(path.name))]
    files = [LogFile(path, Part(int(m[1]), int(m[2])), int(m[3])) for path, m in found]
    return sorted(files, key=lambda file: file.order)


class LogHead(NamedTuple):
    """The first line of a log: a name that no other log has, and the header of whoever wrote it."""

    token: str
    header: RunHeader


def read_head(path: Path) -> LogHead | None:
    """Return the head of a log; None where it cannot be read, or was not written whole."""
    line = next(iter(LogReading(path)), None)
    if line is None or line.kind != HEADER or not is_intact(line.row[2]):
        return None
    if line.row[0] != FORMAT:
        raise EnvironmentProblem(f"{path} was written by a newer Snellen (format {line.row[0]}): upgrade Snellen")
    with contextlib.suppress(msgspec.DecodeError):
        return LogHead(line.row[1], msgspec.json.decode(line.row[2], type=RunHeader))
    return None


def make_once(path: Path, content: bytes) -> bool:
    """Make a file unless it is there; tell whether it was made here. Of many that try one does; all see it whole."""
    spare = path.with_name(f"{path.name}-{secrets.token_hex(6)}")
    try:
        spare.write_bytes(content)
        sync(spare)
        _link(spare, path)
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            spare.unlink(missing_ok=True)
    return True


def _link(spare: Path, path: Path) -> None:
    try:
        os.link(spare, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: whoever looks at once may see it empty
        with path.open("xb") as file:
            file.write(spare.read_bytes())


def publish_plan(folder: Path, header: RunHeader, data: Data | None = None) -> RunHeader:
    """Write the header of a run in parts once, or return the one that is there; another configuration is refused."""
    if not (folder / PLAN).exists():
        make_once(folder / PLAN, seal(_encode(header)))
    plan = read_plan(folder)
    check_same_run(plan, header, folder, "this command", data)
    return plan


def read_plan(folder: Path) -> RunHeader:
    """Return the header of a run in parts."""
    path = folder / PLAN
    try:
        content = path.read_bytes()
        header = msgspec.json.decode(content, type=RunHeader)
    except FileNotFoundError:
        raise EnvironmentProblem(f"{folder} holds no run in parts: {PLAN} is missing") from None
    except (OSError, msgspec.DecodeError) as error:
        raise EnvironmentProblem(f"{path} cannot be read ({error}); it is made again if you remove it") from None
    if not is_intact(content):
        raise EnvironmentProblem(f"{path} is not what was written; it is made again if you remove it")
    return header


def check_same_run(plan: RunHeader, header: RunHeader, folder: Path, who: str, data: Data | None = None) -> None:
    """Refuse, by name, a part of another configuration or of another version of Snellen.

    With the rows of now (`data`) the asked rows that differ are named too.
    """
    if header.id != plan.id:
        rows = describe_rows_changed(partial(_asked_samples, folder), plan, header, data or {})
        difference = "; ".join(filter(None, [rows, describe_difference(plan.config, header.config)]))
        raise RunMismatch(f"{folder} holds another configuration than {who}: {difference}; choose another -o")
    ours, theirs = plan.versions.get("snellen"), header.versions.get("snellen")
    if ours != theirs:
        change = f"{folder} was begun with Snellen {ours}, and {who} has {theirs}"
        raise RunMismatch(f"{change}: parts of two versions are never joined; use one, or choose another -o")


def _asked_samples(folder: Path, task: str) -> Iterator[bytes]:
    """Yield the samples that any part has asked of a task."""
    for file in log_files(folder):
        for line in LogReading(file.path):
            if line.kind == SAMPLE and line.row[0] == task:
                yield line.row[3]


class Place(NamedTuple):
    """Where a finished trial stands: in which log, and where in it."""

    path: Path
    offset: int


class PartWriter(TrialWriter):
    """The one writer of one attempt at one part. What any attempt at it has finished is not asked again."""

    def __init__(self, folder: Path, header: RunHeader, part: Part, data: Data | None = None) -> None:
        self.part = part
        try:
            (folder / FOLDER).mkdir(parents=True, exist_ok=True)
            self.plan = publish_plan(folder, header, data)
            shared = (folder / FOLDER / CLAIMS).is_dir()  # trials may stand in any part's log
            earlier = [file for file in log_files(folder) if shared or may_hold(file.part, part)]
            path, self.attempt, self._file = _claim(folder, part)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write to {folder / FOLDER}: {error.strerror or error}") from None
        super().__init__(folder, path)
        self._written, self._writing = 0, threading.Lock()
        self._places: dict[str, dict[tuple[str, str, int], Place]] = {}
        self._finished: dict[str, set[tuple[str, str, int]]] = {}
        self._samples: set[tuple[str, str]] = set()
        self._ends: dict[Path, int] = {}
        self._turns: dict[tuple[TrialKey, int], Place] = {}
        self._meta: dict[str, Any] = {}
        self._merged = open_for_reading(folder / "run.db") if (folder / "run.db").exists() else None
        try:
            self._append([encode_line(HEADER, (FORMAT, secrets.token_hex(8), seal(_encode(header))))])
            self._read(earlier)
        except BaseException:
            self._let_go()
            raise
        self.resumed = bool(earlier) or self._merged is not None
        """Whether anything was asked before: then model and pictures must be the same."""
        self._start()

    def _read(self, files: list[LogFile]) -> None:
        for file in files:
            head = read_head(file.path)
            if head is None:
                continue  # nothing of it was acknowledged, or nobody knows whose it is: asked again
            check_same_run(self.plan, head.header, self.folder, file.path.name)
            lines = LogReading(file.path, self._ends.get(file.path, 0))
            for line in lines:
                self._take(line, file)
            self.lost += lines.damaged
            self._ends[file.path] = lines.end
        for task, places in self._places.items():  # whose sample cannot be read is stored anew, and asked again
            self._places[task] = {key: place for key, place in places.items() if (task, key[0]) in self._samples}

    def _take(self, line: LogLine, file: LogFile) -> None:
        if line.kind == SAMPLE:
            self._samples.add((line.row[0], line.row[1]))
        elif line.kind == TRIAL and not line.row[4]:
            task, *key = line.row[:4]
            self._places.setdefault(task, {}).setdefault((key[0], key[1], key[2]), Place(file.path, line.offset))
        elif line.kind == TURN:
            *name, number = line.row[:5]
            self._turns.setdefault((TrialKey(*name), number), Place(file.path, line.offset))
        elif line.kind == META and file.part == self.part:
            self._meta[line.row[0]] = msgspec.json.decode(line.row[1])

    def finished_keys(self, task: str) -> set[tuple[str, str, int]]:
        """Return the trials that any attempt, or what was merged, has a reply to; the set grows as more is learnt."""
        if task not in self._finished:
            known = self._finished[task] = set(self._places.get(task, {}))
            if self._merged is not None:
                query = "SELECT sample, variant, repeat FROM predictions WHERE task = ? AND failed = 0"
                known.update(self._merged.execute(query, (task,)))
        return self._finished[task]

    def learn(self, parts: Iterable[int]) -> None:
        """Read what other parts of this division have stored since: it is not asked again."""
        wanted = {Part(index, self.part.count) for index in parts}
        self._read([file for file in log_files(self.folder) if file.part in wanted and file.path != self.path])
        for task, places in self._places.items():
            self.finished_keys(task).update(places)

    def stored(self, key: TrialKey) -> Prediction | None:
        """Return the reply of a finished trial from where it stands."""
        place = self._places.get(key.task, {}).get((key.sample, key.variant, key.repeat))
        body = None if place is None else row_at(place)[7]
        if place is None and self._merged is not None:
            body = next((row[0] for row in self._merged.execute(STORED, astuple(key))), None)
        return None if body is None else msgspec.json.decode(body, type=Prediction)

    def stored_turn(self, key: TrialKey, number: int) -> StoredTurn | None:
        """Return a turn that any attempt, or what was merged, has a reply to."""
        place = self._turns.get((key, number))
        row = None if place is None else row_at(place)[4:]
        if row is None and self._merged is not None and has_turns(self._merged):
            row = self._merged.execute(STORED_TURN, (*astuple(key), number)).fetchone()
        return turn_of_row(row) if row is not None and is_turn(row) else None

    def ledger(self) -> PictureLedger:
        """Return what the pictures of this part's finished trials were when they were sent."""
        found = (place for places in self._places.values() for place in places.values())
        rows = (row_at(place) for place in found if self._is_near(place))
        return PictureLedger((row[6], row[7]) for row in rows)

    def _is_near(self, place: Place) -> bool:
        """Tell whether a reply is this part's own or of another division: others check their pictures themselves."""
        match = LOG_NAME.fullmatch(place.path.name)
        return match is not None and may_hold(Part(int(match[1]), int(match[2])), self.part)

    def put_meta(self, key: str, value: Any) -> None:
        """Keep a fact in this log; returns when it is on disk."""
        self._append([encode_line(META, (key, _encode(value)))])
        self._meta[key] = msgspec.json.decode(_encode(value))

    def meta(self, key: str) -> Any:
        """Return what any attempt at this part kept last."""
        return self._meta.get(key)

    def _insert(self, group: list[Entry]) -> None:
        kinds = ((SAMPLE, "sample"), (TURN, "turn"), (TRIAL, "prediction"), (ATTEMPT, "attempt"))
        rows = [(kind, getattr(entry, name)) for kind, name in kinds for entry in group]
        self._append([encode_line(kind, _plain(row)) for kind, row in rows if row])

    def _append(self, lines: list[bytes]) -> None:
        """Write lines whole and wait for the disk; what was written in part is taken back."""
        content = b"".join(lines)
        with self._writing:
            try:
                left = memoryview(content)
                while left:
                    left = left[os.write(self._file, left) :]
                os.fdatasync(self._file)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._written)
                raise EnvironmentProblem(f"cannot write {self.path}: {error.strerror}; {GO_ON}") from None
            self._written += len(content)

    def _let_go(self) -> None:
        os.close(self._file)
        if self._merged is not None:
            with contextlib.suppress(sqlite3.Error):
                self._merged.close()


def _plain(row: Row) -> Row:
    """Return a row as JSON can hold it: an attempt without detail says null."""
    return (*row[:-1], b"null") if row[-1] is None else row


def may_hold(other: Part, own: Part) -> bool:
    """Tell whether a log may hold trials of a part: all of another division may, and of its own only its own."""
    return other.count != own.count or other.index == own.index


def _claim(folder: Path, part: Part) -> tuple[Path, int, int]:
    """Make the file of the next attempt, which nobody else has; return path, attempt and the open file."""
    attempts = [file.attempt for file in log_files(folder) if file.part == part]
    number = max(attempts, default=-1) + 1
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
    while True:
        path = folder / FOLDER / f"{part.index:04}-of-{part.count:04}.a{number}.log"
        with contextlib.suppress(FileExistsError):
            handle = os.open(path, flags, 0o644)
            sync(path.parent)
            return path, number, handle
        number += 1


def row_at(place: Place) -> Row:
    """Return the columns of the line at a place."""
    with place.path.open("rb") as file:
        file.seek(place.offset)
        start = LINE_START.match(file.read(LONGEST_START))
        row = None
        if start is not None:
            file.seek(place.offset + start.end())
            row = _decode(file.read(int(start[2])), int(start[1], 16))
    if row is None:
        raise EnvironmentProblem(f"{place.path} changed while it was read: nobody may write it; {GO_ON}")
    return row[1:]

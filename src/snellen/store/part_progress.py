"""Who asks which unit of a run in parts, and how far each part is: small files, made once or replaced whole."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.errors import EnvironmentProblem
from ..core.homes import Part
from .owner import Owner, own_name
from .part_log import CLAIMS, FOLDER, LOG_NAME, LogFile, log_files, make_once

NAME = re.compile(r"(\d{4,})-(\d{4,})-(\d{5,})\.(\d+)")
UnitId = tuple[int, int]
"""Part and number of a unit."""


class Claim(NamedTuple):
    """The last claim of a unit: the how many-th, and the log that its trials go to."""

    unit: UnitId
    generation: int
    log: str

    @property
    def part(self) -> int | None:
        """Return which part holds it; None where its maker was killed before it could say so."""
        match = LOG_NAME.fullmatch(self.log)
        return int(match[1]) if match else None


def remove_claims(folder: Path) -> None:
    """Remove all claims of a run that was merged whole."""
    place = folder / FOLDER / CLAIMS
    for name in _names(place):
        (place / name).unlink(missing_ok=True)
    if place.is_dir():
        place.rmdir()


def _names(place: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(place)]
    except FileNotFoundError:
        return []


class Claims:
    """The claims of one division of a run, as one attempt at a part makes and reads them."""

    def __init__(self, folder: Path, part: Part, log: str) -> None:
        self._place, self._count, self._log = folder / FOLDER / CLAIMS, part.count, log

    def held(self) -> dict[UnitId, int]:
        """Return the units that somebody claimed, each with its last generation."""
        found: dict[UnitId, int] = {}
        for name in _names(self._place):
            match = NAME.fullmatch(name)
            if match and int(match[1]) == self._count:
                unit = int(match[2]), int(match[3])
                found[unit] = max(int(match[4]), found.get(unit, 0))
        return found

    def take(self, unit: UnitId, generation: int = 0) -> bool:
        """Claim a unit; False where another was first."""
        path = self._path(unit, generation)
        try:
            self._place.mkdir(exist_ok=True)
            return make_once(path, self._log.encode())
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None

    def read(self, unit: UnitId) -> Claim:
        """Return the last claim of a unit that is held."""
        generation = 0
        while self._path(unit, generation + 1).exists():
            generation += 1
        try:
            log = self._path(unit, generation).read_text(encoding="utf-8", errors="replace")
        except OSError:
            log = ""
        return Claim(unit, generation, log)

    def _path(self, unit: UnitId, generation: int) -> Path:
        return self._place / f"{self._count:04}-{unit[0]:04}-{unit[1]:05}.{generation}"


EVERY_S = 10.0
SILENT_S = 60.0
"""A part whose file did not change for so long is silent: lost, or stopped without a word."""


class Progress(msgspec.Struct, omit_defaults=True):
    """One attempt at one part, as it says of itself."""

    owner: Owner
    state: str = "running"
    """running, complete, stopped (start it again) or failed (it will not help)."""
    planned: int = 0
    done: int = 0
    """Trials with a reply, those of earlier attempts included."""
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    asked: int = 0
    """Trials that this attempt has finished."""
    seconds: float = 0.0
    """How long it has asked, by its own clock."""
    why: str = ""
    figures: dict[str, tuple[str, int, float]] = {}
    """Task -> metric, replies that were read, and their mean: provisional."""
    control: dict[str, Any] = {}
    """How things stand after the last wish of `snellen ctl` that it heard: its number, paused, workers, rate."""
    count: int = 0
    """Goes up with every writing."""


def progress_path(log: Path) -> Path:
    """Return the file in which an attempt says how far it is."""
    return log.with_suffix(".json")


class ProgressFile:
    """Writes one attempt's progress; others read it at any time and see it whole."""

    def __init__(self, log: Path) -> None:
        self.path = progress_path(log)
        self.last = Progress(Owner.me())
        self._lock = threading.Lock()

    def write(self, **changes: object) -> None:
        """Write what changed; a disk that takes nothing is no reason to stop asking."""
        with self._lock:
            self.last = msgspec.structs.replace(self.last, **changes, count=self.last.count + 1)
            spare = self.path.with_suffix(".json.new")
            with contextlib.suppress(OSError):
                spare.write_bytes(msgspec.json.encode(self.last))
                spare.replace(self.path)

    @contextmanager
    def kept(self, look: Callable[[], dict[str, object]], every_s: float = EVERY_S) -> Iterator[None]:
        """Write what `look` returns now and then during the block, and at its end."""
        ended, began = threading.Event(), time.monotonic()

        def write() -> None:
            self.write(**look(), seconds=time.monotonic() - began)

        def go_on() -> None:
            write()
            while not ended.wait(every_s):
                write()

        thread = threading.Thread(target=go_on, name="snellen-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            write()


class Attempt(NamedTuple):
    """What is known of one attempt without opening its log."""

    file: LogFile
    progress: Progress | None
    age_s: float | None
    """How long ago its progress was written, by the file system's clock; None where nobody can tell."""

    @property
    def state(self) -> str:
        """Return complete, stopped, failed, running, silent or lost (its process is known to be gone)."""
        if self.progress is None:
            return "silent" if self.age_s is None or self.age_s > SILENT_S else "running"
        if self.progress.state != "running":
            return self.progress.state
        owner = self.progress.owner
        if owner.is_here and not owner.is_alive:
            return "lost"
        return "running" if self.age_s is None or self.age_s <= SILENT_S else "silent"


class PartState(NamedTuple):
    """One part of the division that was asked last: its best attempt."""

    part: Part
    attempts: int
    best: Attempt | None
    alive: int
    """Attempts that run now: more than one asks twice."""

    @property
    def state(self) -> str:
        """Return the state of its best attempt; `waiting` where nobody began."""
        return "waiting" if self.best is None else self.best.state

    @property
    def done(self) -> int:
        """Return how many of its trials have a reply."""
        return self.best.progress.done if self.best and self.best.progress else 0


def read_attempts(folder: Path, now: float | None = None) -> list[Attempt]:
    """Return what every attempt says of itself; reads small files only. A reader that may not write tells the time."""
    now = file_system_now(folder / FOLDER) if now is None else now
    return [_attempt(file, now) for file in log_files(folder)]


def _attempt(file: LogFile, now: float | None) -> Attempt:
    path, progress = progress_path(file.path), None
    with contextlib.suppress(OSError, msgspec.DecodeError):
        progress = msgspec.json.decode(path.read_bytes(), type=Progress)
    age = None
    with contextlib.suppress(OSError):
        age = None if now is None else now - (path if progress else file.path).stat().st_mtime
    return Attempt(file, progress, age)


def state_of(log: Path) -> str:
    """Return the state of the attempt that writes a log."""
    match = LOG_NAME.fullmatch(log.name)
    if match is None:
        return "lost"
    file = LogFile(log, Part(int(match[1]), int(match[2])), int(match[3]))
    return _attempt(file, file_system_now(log.parent)).state


def file_system_now(folder: Path) -> float | None:
    """Return the time by the clock that stamps the files of a folder; None where nothing may be written."""
    probe = folder / f"clock-{own_name()}"
    try:
        probe.write_bytes(b"")
        return probe.stat().st_mtime
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


ORDER = ("complete", "running", "stopped", "failed", "silent", "lost")


def part_states(attempts: Sequence[Attempt], count: int | None = None) -> list[PartState]:
    """Return every part of a division into so many; of the one that was worked at last where nobody says."""
    if not attempts:
        return []
    if count is None:
        count = min(attempts, key=lambda one: one.age_s or 0.0).file.part.count
    found: dict[int, list[Attempt]] = {index: [] for index in range(count)}
    for attempt in attempts:
        if attempt.file.part.count == count:
            found[attempt.file.part.index].append(attempt)
    states = []
    for index, own in found.items():
        best = min(own, key=lambda one: (ORDER.index(one.state), -one.file.attempt), default=None)
        alive = sum(one.state == "running" for one in own)
        states.append(PartState(Part(index, count), len(own), best, alive))
    return states


def remove_parts(folder: Path) -> int:
    """Remove the logs and progress of a run that was merged whole; return how many files."""
    files = [path for path in (folder / FOLDER).iterdir() if LOG_NAME.fullmatch(path.with_suffix(".log").name)]
    for path in files:
        path.unlink()
    remove_claims(folder)
    return len(files)

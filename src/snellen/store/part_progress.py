"""How far each part of a run is: a small file an attempt, replaced whole every few seconds by whoever works at it.

Nothing is decided by them but what is said, and when a run looks complete. Hosts, process numbers and job numbers are
told, never trusted; two machines' clocks are never compared: an age is that of the file system's own clock.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.homes import Part
from .claims import remove_claims
from .owner import Owner, own_name
from .part_log import FOLDER, LOG_NAME, LogFile, log_files

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
        ended = threading.Event()

        def go_on() -> None:
            self.write(**look())
            while not ended.wait(every_s):
                self.write(**look())

        thread = threading.Thread(target=go_on, name="snellen-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.write(**look())


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


def read_attempts(folder: Path) -> list[Attempt]:
    """Return what every attempt says of itself; reads small files only."""
    now = file_system_now(folder / FOLDER)
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

"""One training's folder as the viewer knows it: its record, its metrics, and whether somebody trains it now."""

from __future__ import annotations

import json
import math
import os
import threading
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import Struct

from ...core.errors import DataError
from ...report.viewer.liveness import is_held, is_written_now

METRICS = "metrics.jsonl"
STEP, LOSS = "step", "loss"
WATCHED = (LOSS, "grad_norm")
"""Figures whose being no number ends a training."""
MOST_METRIC_BYTES = 256 * 2**20
"""A million steps have about as much; more is not read into memory."""
TAIL = 64
"""Bytes before the place read up to, by which an added line is told from another file."""
LARGEST, SMALLEST = 1e300, 1e-300
"""Numbers beyond cannot be drawn, or are zero to the eye."""
Line = dict[str, Any]


class Metrics(NamedTuple):
    """What was read: the lines in their order, and what is wrong with the file, each in one line."""

    lines: list[Line]
    problems: tuple[str, ...]

    @property
    def steps(self) -> list[Line]:
        """Return the lines of steps; the last line of a training sums it up and has no loss of its own."""
        return [line for line in self.lines if LOSS in line]

    @property
    def last_step(self) -> int:
        """Return the last step that was written; 0 before the first."""
        return max((int(line[STEP]) for line in self.lines), default=0)

    @property
    def no_numbers(self) -> list[str]:
        """Return what is no number where one belongs, by step."""
        found = ((line[STEP], name, line[name]) for line in self.lines for name in WATCHED if name in line)
        return [f"step {int(step)}: {name} is {value}" for step, name, value in found if plain_number(value) is None]


def plain_number(value: object) -> float | None:
    """Return a value as a number that can be drawn; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        return None
    return 0.0 if abs(value) < SMALLEST else float(value)


class MetricsFile:
    """One file that grows; a line is read once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS
        self._forget()

    def _forget(self) -> None:
        self._inode, self._read, self._tail = 0, 0, b""
        self._lines: list[Line] = []
        self._count = 0
        self._bad: list[str] = []
        self._half = False

    def read(self) -> Metrics:
        """Read what was added since the last time, or everything where the file is another."""
        try:
            with self._path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > MOST_METRIC_BYTES:
                    return Metrics(
                        [], (f"{METRICS} has {size:,} bytes, more than is shown here ({MOST_METRIC_BYTES:,})",)
                    )
                self._read_on(stream)
        except FileNotFoundError:
            self._forget()
            return Metrics([], ())
        except OSError as error:
            return Metrics([], (f"{METRICS} cannot be read: {error.strerror}",))
        return Metrics(self._lines, tuple(self._problems()))

    def _read_on(self, stream: IO[bytes]) -> None:
        inode = os.fstat(stream.fileno()).st_ino
        stream.seek(self._read - len(self._tail))
        if inode != self._inode or stream.read(len(self._tail)) != self._tail:
            self._forget()
            stream.seek(0)
        added = stream.read()
        whole, end, half = added.rpartition(b"\n")
        body = whole + end
        self._inode, self._half = inode, bool(half)
        self._read, self._tail = self._read + len(body), (self._tail + body)[-TAIL:]
        for line in body.splitlines():
            self._take(line)

    def _take(self, text: bytes) -> None:
        self._count += 1
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            self._bad.append(f"line {self._count} is no JSON")
            return
        step = plain_number(line.get(STEP)) if isinstance(line, dict) else None
        if step is None or step < 0:
            self._bad.append(f"line {self._count} names no step")
        else:
            self._lines.append(line)

    def _problems(self) -> list[str]:
        found = []
        if self._bad:
            found.append(f"{METRICS}: {len(self._bad):,} of {self._count:,} lines not read; first, {self._bad[0]}")
        if self._half:
            found.append(f"the last line of {METRICS} is half-written and not shown yet")
        steps = [float(line[STEP]) for line in self._lines if LOSS in line]
        turned = next((after for before, after in pairwise(steps) if after <= before), math.nan)
        if not math.isnan(turned):
            found.append(
                f"step {int(turned)} of {METRICS} stands after a step that is not before it: curves may mislead"
            )
        return found


RECORD = "training.json"
MOST_BYTES = 8_000_000
"""A record of ours has a few thousand bytes; a file of this name that has more is somebody else's."""


class RecordedSettings(Struct, frozen=True):
    """The part `[training]` of a recipe."""

    trainer: str
    weights: str
    batch_size: int
    accumulate: int
    epochs: float = 1.0
    steps: int | None = None


class RecordedRecipe(Struct, frozen=True):
    """A recipe as it was trained."""

    model: str
    stage: str
    training: RecordedSettings
    seed: int = 0


class RecordedSource(Struct, frozen=True):
    """One source of chains, counted."""

    path: str
    weight: float
    records: int
    rows: int
    rationales: int


class RecordedData(Struct, frozen=True):
    """All that is trained on, counted."""

    sources: tuple[RecordedSource, ...]
    rows: int
    rationales: int
    pictures: int
    missing: int


class RecordedTraining(Struct, frozen=True):
    """What a training says of itself."""

    recipe: RecordedRecipe
    base: dict[str, Any]
    data: RecordedData
    versions: dict[str, str]
    snellen: str
    events: tuple[str, ...] = ()
    finished: bool = False
    final: dict[str, float] = {}
    planned: int | None = None
    """Steps in all, known when the first begins; records of 0.2 and before have none."""

    @property
    def planned_steps(self) -> int | None:
        """Return how many steps the training has in all; None where nothing says it."""
        done = self.final.get("steps") if self.finished else None
        return int(done) if done is not None else self.planned or self.recipe.training.steps

    @property
    def base_name(self) -> str:
        """Return the name of the weights it began with; where another training left them, by that one's name."""
        parts = Path(self.recipe.model.removeprefix("hf/")).parts
        return "/".join(parts[-2:] if parts[-1:] == ("model",) else parts[-1:]) or self.recipe.model


_decode = msgspec.json.Decoder(RecordedTraining).decode


def read_training_record(folder: Path) -> RecordedTraining:
    """Read the record of a training; what is none is refused in one line."""
    path = folder / RECORD
    try:
        with path.open("rb") as stream:
            body = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{RECORD} cannot be read: {error.strerror}") from None
    if len(body) > MOST_BYTES:
        raise DataError(f"{RECORD} has more than {MOST_BYTES:,} bytes: it is no record of a training")
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{RECORD} is no record of a training: {' '.join(str(error).split())}") from None


CHECKPOINTS = "checkpoints"
FILES = (METRICS, RECORD)
FINISHED, RUNNING, INTERRUPTED, NO_NUMBER, STOPPED = "finished", "running", "interrupted", "ended", "stopped"
INTERRUPTION = "interrupted after step"
"""How the event of a training begins that was asked to end."""
Stamps = tuple[tuple[int, int], ...]


def is_training(folder: Path) -> bool:
    """Tell whether a folder that holds a training.json is a training's; a lone one may be anything."""
    return (folder / METRICS).exists() or (folder / CHECKPOINTS).exists()


class TrainingLook(NamedTuple):
    """What a training was when it was looked at."""

    record: RecordedTraining
    metrics: Metrics
    state: str

    @property
    def done(self) -> int:
        """Return the steps that are written down; of a finished training what it says itself."""
        final = self.record.final.get("steps") if self.record.finished else None
        return self.metrics.last_step if final is None else int(final)

    @property
    def steps(self) -> str:
        """Return the steps done, of those planned where that is known."""
        planned = self.record.planned_steps
        return f"{self.done:,} steps" if planned is None else f"{self.done:,} of {planned:,} steps"


class OpenTraining:
    """One training; read again when its files were written."""

    def __init__(self, key: str, name: str, folder: Path) -> None:
        self.key, self.name, self.folder = key, name, folder
        self._lock = threading.Lock()
        self._metrics = MetricsFile(folder)
        self._paths = tuple(str(folder / file) for file in FILES)
        self._kept: tuple[Stamps, RecordedTraining, Metrics] | None = None

    def look(self) -> TrainingLook:
        """Return what it is now; refused in one line where its record cannot be read."""
        with self._lock:
            stamps = self._stamps()
            if self._kept is None or self._kept[0] != stamps:
                self._kept = (stamps, read_training_record(self.folder), self._metrics.read())
            _, record, metrics = self._kept
        return TrainingLook(record, metrics, self._state(record, metrics))

    def version(self) -> str:
        """Return what changes whenever a page of it would: its files, or that nobody trains it any more."""
        stamps = sum(sum(pair) for pair in self._stamps())
        return f"{stamps}:{int(is_written_now(self.folder, files=FILES))}"

    @property
    def written(self) -> int:
        """Return when it was written last, to put trainings in order."""
        return max(time for time, _ in self._stamps())

    def _state(self, record: RecordedTraining, metrics: Metrics) -> str:
        if record.finished:
            return FINISHED
        if is_held(self.folder):
            return RUNNING
        if record.events and record.events[-1].startswith(INTERRUPTION):
            return INTERRUPTED
        if metrics.lines and Metrics(metrics.lines[-1:], ()).no_numbers:
            return NO_NUMBER
        return RUNNING if is_written_now(self.folder, files=FILES) else STOPPED

    def _stamps(self) -> Stamps:
        return tuple(map(_stamp_of, self._paths))


def _stamp_of(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked once a second
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size

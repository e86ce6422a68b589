"""One training's folder as the viewer knows it: its record, its metrics, and whether somebody trains it now."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ...core.errors import DataError
from .liveness import is_held, is_written_now
from .metric_lines import METRICS, Metrics, MetricsFile

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


def is_training(names: frozenset[str]) -> bool:
    """Tell by the names in a folder whether it is a training's; a lone training.json may be anything."""
    return RECORD in names and (METRICS in names or CHECKPOINTS in names)


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

"""training.json to what a page says of a training: only what is shown is read, and all of it is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError

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

"""Turns a predictions file into a Model: outside answers go down the same line as any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataError, ModelError, UsageError
from ..core.ids import sha256_hex
from ..core.protocols import Capability, EncodedImages, ImagePolicy
from ..core.types import BASE_VARIANT, FailureKind, Prediction, Request, Timing
from ..data.files.records import Record, read_records
from .options import ModelOptions

ID_FIELDS = ("sample", "sample_id", "id", "question_id")
TEXT_FIELDS = ("text", "prediction", "response", "output", "answer")
Key = tuple[str | None, str, str, int]


def create(name: str, options: ModelOptions) -> Replay:
    """Return the model `replay/FILE`."""
    if not name:
        raise UsageError("replay needs a predictions file: replay/FILE.jsonl")
    options.allow_arguments("replay")
    return Replay(Path(name), options)


class Replay:
    """Answers a trial with what the file says of it; a trial it does not know is a typed failure."""

    capabilities = frozenset({Capability.GENERATE, Capability.LIKELIHOOD, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = False
    """Two samples may ask the same and be answered differently: the file knows, the cache does not."""

    def __init__(self, path: Path, options: ModelOptions) -> None:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"predictions file {path} cannot be read: {error.strerror}") from None
        self.name = f"replay/{path}"
        self._digest = sha256_hex(data)
        self._records = index_predictions(path) if data.strip() else {}
        self._clock = options.clock

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Return the stored answer; raise ModelError if there is none."""
        now = self._clock.monotonic()
        record = self._find(request)
        values = record.fields.get("loglikelihoods")
        if request.choices:
            if not isinstance(values, list) or len(values) != len(request.choices):
                reason = f"sample {request.key.sample!r} has no log-likelihoods for its candidates"
                raise ModelError(FailureKind.REQUEST, f"{self.name}: {reason}")
            try:
                return Prediction(request.key, loglikelihoods=tuple(map(float, values)), timing=Timing(now, now))
            except (TypeError, ValueError):
                reason = f"sample {request.key.sample!r} has log-likelihoods that are no finite numbers: {values}"
                raise ModelError(FailureKind.DECODE, f"{self.name}: {reason}") from None
        text = record.first(TEXT_FIELDS)
        if text is None:
            reason = f": {record.fields['error']}" if record.fields.get("error") else ""
            raise ModelError(FailureKind.REQUEST, f"{self.name}: sample {request.key.sample!r} holds no answer{reason}")
        return Prediction(request.key, text=str(text), timing=Timing(now, now), finish=record.fields.get("finish"))

    def _find(self, request: Request) -> Record:
        key = request.key
        for task in (key.task, None):
            record = self._records.get((task, key.sample, key.variant, key.repeat))
            if record is not None:
                return record
        trial = f"sample {key.sample!r} ({key.variant}, repeat {key.repeat})"
        raise ModelError(FailureKind.SKIPPED, f"{self.name} holds no prediction for {trial}")

    async def check(self) -> None:
        """Nothing more to check: the file was read when the model was made."""

    def identity(self) -> Mapping[str, Any]:
        """Return the hash of the file: its name does not matter."""
        return {"model": "replay", "sha256": self._digest}

    async def close(self) -> None:
        """Nothing is held."""


def index_predictions(path: Path) -> dict[Key, Record]:
    """Index the records of a file by (task or None, sample, variant, repeat); the error names the record."""
    records: dict[Key, Record] = {}
    for record in read_records(path):
        sample = record.first(ID_FIELDS)
        if sample is None:
            raise DataError(f"{path} record {record.number} names no sample: give each record a field {ID_FIELDS[0]!r}")
        fields = record.fields
        variant, repeat = str(fields.get("variant") or BASE_VARIANT), int(fields.get("repeat") or 0)
        key = (fields.get("task"), str(sample), variant, repeat)
        if key in records:
            trial = f"sample {sample!r} (variant {variant}, repeat {repeat})"
            raise DataError(f"{path} record {record.number} repeats {trial}")
        records[key] = record
    return records

"""The seams: what a loader, a model, a scorer and an aggregate must be. Nothing here runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from .tasks import Task
from .types import Estimate, Image, ImageSent, Prediction, Request, Sample, Score


class Capability(StrEnum):
    """What a model can do. A missing one fails at plan time, by name, before the first request."""

    GENERATE = "generate"
    LIKELIHOOD = "likelihood"
    STREAM = "stream"
    BATCH = "batch"
    IMAGES = "images"


class ImagePolicy(Struct, frozen=True):
    """What a model accepts as an image; applied once at the image door and recorded per sample."""

    max_side: int | None = None
    max_pixels: int | None = None
    max_bytes: int | None = None
    formats: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp", "image/gif")


class EncodedImage(Struct, frozen=True, gc=False):
    """An image ready for the wire, and the record of what it is."""

    base64: bytes
    sent: ImageSent


EncodedImages = Mapping[Image, EncodedImage]
"""The images of one or more requests as the model's policy wants them, by reference."""


class LoadContext(Struct, frozen=True):
    """What a loader may depend on: nothing else may change its samples."""

    seed: int = 0
    root: Path | None = None
    """The data root that relative paths are resolved against."""
    workdir: Path | None = None
    """Where a loader that draws its images writes them (the run's folder, or the cache)."""
    limit: int | None = None
    """A hint: nobody reads past this many samples."""


class Loader(Protocol):
    """Turns a task's dataset table into samples, lazily, the same ones every time it is called."""

    def __call__(self, task: Task, context: LoadContext) -> Iterator[Sample]:
        """Yield samples with unique ids."""
        ...


@runtime_checkable
class Model(Protocol):
    """Transport only: how to ask. Cache, limits, retries and deadlines are composed outside, by the engine."""

    name: str
    """As the user wrote it, `provider/name`."""
    capabilities: frozenset[Capability]
    image_policy: ImagePolicy
    cacheable: bool
    """False where answers depend on more than the request's content: the response cache is then not used."""

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request, or raise ModelError. With `request.choices`, return log-likelihoods.

        `images` holds every image of the request, also those of its `likelihood.baseline`, encoded once by who asks.
        """
        ...

    async def check(self) -> None:
        """Preflight: raise EnvironmentProblem or UsageError if it cannot answer at all."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """Return what changes this model's answers (name, revision, dtype): part of run id and cache key."""
        ...

    async def close(self) -> None:
        """Release connections and memory."""
        ...


@runtime_checkable
class BatchModel(Model, Protocol):
    """A model with BATCH: the engine gathers waiting requests and hands them over together."""

    batch_size: int
    """How many requests to gather at most; the model may change it as memory allows."""

    async def predict_batch(self, requests: Sequence[Request], images: EncodedImages) -> list[Prediction]:
        """Answer all, in order. A request that cannot be answered gets a Prediction with a failure."""
        ...

    def prefetch(self, request: Request) -> None:
        """Prepare a request that waits for the next batch, while the model works on this one; may do nothing."""
        ...


class Scorer(Protocol):
    """Pure: one stored trial in, one or more scores out. Calls no network."""

    def __call__(
        self, sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
    ) -> Sequence[Score]:
        """Score one reply. `prediction.failure` is always None here: failed trials are never scored."""
        ...


class Aggregate(Protocol):
    """Pure: the scored trials of one metric of one task in, named estimates out."""

    def __call__(self, table: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
        """Return named estimates."""
        ...

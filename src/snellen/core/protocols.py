"""The seams: what a loader, a model, an inferencer, a scorer and an aggregate must be. Nothing here runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import UNSET, Struct, UnsetType, field

from .errors import DataError
from .jobs import Item, Job, RequestBuilder
from .tasks import Task
from .types import Estimate, Image, ImageSent, Params, Prediction, Request, Sample, Score, Usage


class Capability(StrEnum):
    """What a model can do. A missing one fails at plan time, by name, before the first request."""

    GENERATE = "generate"
    LIKELIHOOD = "likelihood"
    STREAM = "stream"
    BATCH = "batch"
    IMAGES = "images"
    VIDEO_FILE = "video files"
    """Takes a video as its own file and chooses the frames itself."""
    VIDEO_FRAMES = "videos of frames"
    """Takes the frames of a video as one video."""


class ImagePolicy(Struct, frozen=True):
    """What a model accepts as an image; applied once at the image door and recorded per sample."""

    max_side: int | None = None
    max_pixels: int | None = None
    max_bytes: int | None = None
    formats: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp", "image/gif")
    min_side: int | UnsetType = UNSET
    """Smaller pictures get a white margin. Unset it is not written: the identity of runs without it stays."""
    bare: bool | UnsetType = UNSET
    """Whether pictures leave without EXIF, texts and bytes after their end; unset, as `min_side`, is no."""


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
    notes: dict[str, Counter[str]] = field(default_factory=dict)
    """What a loader has to say of the data (read as …, left out …), and of which samples; the plan prints it."""
    folders: dict[str, None] = field(default_factory=dict)
    """Where the pictures may lie that the data names: a loader of other people's rows enters its folders, the data's
    own first. Empty: anywhere."""
    memory: dict[Any, Any] = field(default_factory=dict)
    """What a loader found out in one reading and need not find out again in the next; it changes no sample."""
    replies_only: bool = False
    """Whether stored replies are scored and nothing is asked: pictures need not be there."""
    refused: dict[str, str] | None = None
    """Where a row that cannot be read is entered, with the reason, instead of refusing the file; None: it refuses."""

    def refuse(self, row: str, error: DataError) -> None:
        """Enter a row that cannot be read, or raise what is wrong with it where every row must be read."""
        if self.refused is None:
            raise error
        self.refused[row] = str(error)


class Loader(Protocol):
    """Turns a task's dataset table into samples, lazily, the same ones every time it is called.

    Example:
        >>> from snellen.core.protocols import LoadContext
        >>> def sums(task, context):
        ...     for n in range(task.dataset["count"]):
        ...         yield snellen.Sample(str(n), task.name, task.form, f"{n} + 1 = ?", answers=(str(n + 1),))
        >>> task = snellen.Task("sums", {"loader": "sums", "count": 2}, snellen.Form.OPEN)
        >>> [sample.question for sample in sums(task, LoadContext())]
        ['0 + 1 = ?', '1 + 1 = ?']
    """

    def __call__(self, task: Task, context: LoadContext) -> Iterator[Sample]:
        """Yield samples with unique ids."""
        ...


@runtime_checkable
class Model(Protocol):
    """Transport only: how to ask. Cache, limits, retries and deadlines are composed outside, by the engine.

    Example:
        >>> import asyncio
        >>> from snellen.core.types import TrialKey, Turn
        >>> marks, texts = ("A", "B"), ("a cat", "a black cat")
        >>> request = snellen.Request(TrialKey("t", "1"), (Turn("user", "Which?"),), marks=marks, shown=texts)
        >>> asyncio.run(snellen.load_model("blind/longest").predict(request, {})).text
        'B'
    """

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
class TellsSampling(Protocol):
    """A model that knows, before it is asked, how it samples what a request leaves open."""

    def describe_sampling(self, params: Params) -> str:
        """Say how requests with these parameters are sampled."""
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


@runtime_checkable
class StreamingModel(Model, Protocol):
    """A model that hands its reply over while it is made: what `snellen perf` times piece by piece.

    Example:
        >>> class Slow:
        ...     async def stream(self, request, images):
        ...         for word in ("a ", "cat"):
        ...             yield word
    """

    def stream(self, request: Request, images: EncodedImages) -> AsyncIterator[str | Usage]:
        """Yield the pieces of the text as they come, and the tokens that were counted once they are known."""
        ...


class Inferencer(Protocol):
    """Turns the trials of a task into jobs: which calls each needs, and which must wait for the answers of others.

    A job that is run again asks again: `ask` answers a finished trial from the store, so a reply of an earlier round
    enters the next one the same way whether it was given now or before a restart.

    Example:
        >>> from snellen.core.jobs import Item
        >>> from snellen.core.tasks import Prompt
        >>> from snellen.infer.generate import GENERATE
        >>> from snellen.prompt.build import Prompter
        >>> task = snellen.Task("t", {}, repeats=2)
        >>> sample = snellen.Sample("1", "t", snellen.Form.OPEN, "What is it?")
        >>> [job.keys[0].repeat for job in GENERATE.plan(task, [Item(0, sample)], Prompter(task, Prompt(), seed=0))]
        [0, 1]
    """

    needs: frozenset[Capability]
    """What the model must be able to do; one that cannot is refused before the first request, by name."""

    def read_options(self, task: Task) -> Any:
        """Check the task's `infer_options` before the first request; one without options has nothing to check."""
        return None

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[Job]:
        """Yield the jobs, lazily: a plan of a million trials is an iterator."""
        ...


class Scorer(Protocol):
    """Pure: one stored trial in, one or more scores out. Calls no network.

    Example:
        >>> from snellen.core.types import TrialKey
        >>> def brief(sample, request, prediction, options):
        ...     return [snellen.Score(prediction.key, "brief", float(len(prediction.text) < 10))]
        >>> sample = snellen.Sample("1", "t", snellen.Form.OPEN, "What is it?")
        >>> reply = snellen.Prediction(TrialKey("t", "1"), text="a cat")
        >>> brief(sample, snellen.Request(reply.key, ()), reply, {})[0].value
        1.0
    """

    def __call__(
        self, sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
    ) -> Sequence[Score]:
        """Score one reply. `prediction.failure` is always None here: failed trials are never scored."""
        ...


class Aggregate(Protocol):
    """Pure: the scored trials of one task in, named estimates out.

    Example:
        >>> from types import SimpleNamespace
        >>> from snellen.core.types import TrialKey
        >>> def best(scored, options):
        ...     return {"best": snellen.Estimate(max(score.value for _, score in scored.scores()))}
        >>> sample = snellen.Sample("1", "t", snellen.Form.OPEN, "What is it?")
        >>> scores = [snellen.Score(TrialKey("t", "1", repeat=n), "anls", n / 4) for n in range(3)]
        >>> best(SimpleNamespace(scores=lambda: [(sample, score) for score in scores]), {})["best"].value
        0.5
    """

    def __call__(self, scored: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
        """Return named estimates; `scored` (`snellen.scoring.run.ScoredTask`) has a table a metric, and the scores."""
        ...

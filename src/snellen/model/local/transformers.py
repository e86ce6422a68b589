"""`hf/PATH_OR_ID`: any transformers image-text-to-text checkpoint or language model, run here, in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...core.errors import ModelError, UsageError
from ...core.protocols import EncodedImages, ImagePolicy
from ...core.types import Failure, FailureKind, Params, Prediction, Request, TrialKey
from ..options import ModelOptions
from .batch_size import is_out_of_memory, predict_alone
from .checkpoint import choose_devices, first_line, load_processor, load_weights, read_checkpoint
from .clips import is_joined
from .inputs import LocalPrompter, Prepared
from .local_options import read_options
from .own_sampling import describe_sampling

PREFETCH_BATCHES = 2
MODEL_ERRORS = (RuntimeError, ValueError, IndexError)
"""What an architecture raises on inputs it was not made for: that costs the request, not the run."""


def create(name: str, options: ModelOptions) -> TransformersModel:
    """Return the model `hf/NAME`; reads its configuration, loads no weights yet."""
    if not name:
        raise UsageError("model 'hf' needs a folder or a hub name: hf/PATH_OR_ID")
    return TransformersModel(str(Path(name).expanduser()) if name.startswith("~") else name, options)


class TransformersModel:
    """A checkpoint on one or more devices. Weights are loaded by `check` or by the first request."""

    cacheable = True

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = f"hf/{name}"
        self._options = read_options(options.arguments, "hf")
        self._checkpoint = read_checkpoint(name, self._options)
        self.capabilities = self._checkpoint.capabilities
        self.image_policy = options.image_policy or ImagePolicy()
        self._clock = options.clock
        self._replicas: list[Any] = []
        self._loading = asyncio.Lock()
        self._workers = ThreadPoolExecutor(self._options.threads, "snellen-prepare")
        self._devices = choose_devices(self._options)
        self._runners = ThreadPoolExecutor(len(self._devices), "snellen-device")
        self._prefetched: dict[TrialKey, Future[Prepared]] = {}

    @property
    def replicas(self) -> Sequence[Any]:
        """The copies of the model, one a device; none before the weights are loaded."""
        return self._replicas

    @property
    def prepared_ahead(self) -> int:
        """How many requests are being prepared for batches to come."""
        return len(self._prefetched)

    @property
    def batch_size(self) -> int:
        """How many requests to gather: one batch for every device, at its present size."""
        if not self._replicas:
            return (self._options.batch_size or 1) * len(self._devices)
        return sum(replica.sizer.size for replica in self._replicas)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request, or raise ModelError."""
        return await predict_alone(self.predict_batch, request, images)

    async def predict_batch(self, requests: Sequence[Request], images: EncodedImages) -> list[Prediction]:
        """Answer all, in order; one that cannot be answered carries its failure."""
        await self._load()
        prepared = [self._prepare(request) for request in requests]
        for request in requests:
            self._prefetched.pop(request.key, None)
        scored = [place for place, request in enumerate(requests) if request.choices]
        generated = _by_images(requests)
        answers: list[Prediction | None] = [None] * len(requests)
        work: deque[tuple[list[int], Callable[[Any, Sequence[Prepared]], list[Prediction]]]] = deque(
            ([place], _score) for place in scored
        )
        share = -(-len(requests) // len(self._replicas))
        for group in generated:
            work.extend((group[start : start + share], _generate) for start in range(0, len(group), share))
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            *(
                loop.run_in_executor(self._runners, _drain, replica, work, requests, prepared, answers)
                for replica in self._replicas
            )
        )
        return [answer for answer in answers if answer is not None]

    def prefetch(self, request: Request) -> None:
        """Begin to open and prepare the images of a request that will soon be part of a batch."""
        if self._replicas and len(self._prefetched) < PREFETCH_BATCHES * self.batch_size:
            self._prefetched.setdefault(request.key, self._prepare(request))

    async def check(self) -> None:
        """Load the weights and find the fastest right way to score; raise if they cannot be loaded."""
        await self._load()

    def identity(self) -> Mapping[str, Any]:
        """Return the checkpoint's content and number format."""
        return {**self._checkpoint.identity(), **({} if self._options.chat_template else {"chat_template": False})}

    def describe_sampling(self, params: Params) -> str:
        """Say how a request is sampled, what it leaves open included."""
        return describe_sampling(self._checkpoint.name, params)

    async def close(self) -> None:
        """Stop the threads and let go of the weights."""
        self._prefetched.clear()
        self._replicas.clear()
        await asyncio.to_thread(self._workers.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._runners.shutdown, cancel_futures=True)

    def _prepare(self, request: Request) -> Future[Prepared]:
        return self._prefetched.get(request.key) or self._workers.submit(self._replicas[0].prompter.prepare, request)

    async def _load(self) -> None:
        async with self._loading:
            if not self._replicas:
                self._replicas = await asyncio.to_thread(self._load_replicas)

    def _load_replicas(self) -> list[Any]:
        from .replica import Replica

        replicas, checkpoint = [], self._checkpoint
        for device in self._devices:
            processor, weights = load_processor(checkpoint), load_weights(checkpoint, device)
            prompter = LocalPrompter(processor, checkpoint.kind, use_template=self._options.chat_template)
            replica = Replica(weights, prompter, checkpoint, device, self._clock.monotonic)
            replica.choose_route()
            replica.choose_batch()
            replicas.append(replica)
        return replicas


def _by_images(requests: Sequence[Request]) -> list[list[int]]:
    """Group the places of requests to generate for: with images and without cannot share a batch, nor with videos.

    A processor takes one list of pictures for all texts of a batch, or none at all.
    """
    groups: dict[frozenset[bool], list[int]] = {}
    for place, request in enumerate(requests):
        if not request.choices:
            kinds = frozenset(is_joined(image) for turn in request.messages for image in turn.images)
            groups.setdefault(kinds, []).append(place)
    return list(groups.values())


def _drain(
    replica: Any,
    work: deque[Any],
    requests: Sequence[Request],
    prepared: Sequence[Future[Prepared]],
    answers: list[Prediction | None],
) -> None:
    """Take pieces of work until none is left; runs in the replica's thread."""
    while work:
        try:
            places, act = work.popleft()
        except IndexError:
            return
        ready: list[tuple[int, Prepared]] = []
        for place in places:
            try:
                ready.append((place, prepared[place].result()))
            except ModelError as error:
                answers[place] = _failed(requests[place], error)
        for (place, _), answer in zip(ready, act(replica, [item for _, item in ready]), strict=True):
            answers[place] = answer


def _score(replica: Any, batch: Sequence[Prepared]) -> list[Prediction]:
    return [_guarded(replica, replica.score_with_baseline, item) for item in batch]


def _generate(replica: Any, batch: Sequence[Prepared]) -> list[Prediction]:
    """Generate for a batch; if one request spoils it, answer one by one so that only that one fails."""
    if not batch:
        return []
    try:
        predictions: list[Prediction] = replica.sizer.run(batch, replica.generate)
    except (ModelError, *MODEL_ERRORS):
        return [_guarded(replica, lambda one: replica.generate([one])[0], item) for item in batch]
    return predictions


def _guarded(replica: Any, act: Callable[[Prepared], Prediction], item: Prepared, *, again: bool = True) -> Prediction:
    """Return a prediction, or this request's typed failure; when memory is short, once more without what was kept."""
    try:
        return act(item)
    except ModelError as error:
        return _failed(item.request, error)
    except MODEL_ERRORS as error:
        if not is_out_of_memory(error):
            message = f"{item.request.key.sample}: the model raised {type(error).__name__}: {first_line(error)}"
            return _failed(item.request, ModelError(FailureKind.SERVER, message))
        replica.free_memory()
        if again:
            return _guarded(replica, act, item, again=False)
        message = f"{item.request.key.sample}: one request alone does not fit in memory"
        return _failed(item.request, ModelError(FailureKind.PAYLOAD, message))


def _failed(request: Request, error: ModelError) -> Prediction:
    return Prediction(request.key, failure=Failure(error.kind, str(error)))

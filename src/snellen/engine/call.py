"""The one place where a model is called, alone or in batches: whatever it raises comes back as an error we know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, ParamSpec, TypeVar

from ..core.errors import ConfigError, ModelError, SnellenError
from ..core.protocols import BatchModel, Capability, EncodedImages, Model
from ..core.text import clean_text
from ..core.types import Failure, FailureKind, Prediction, Request

P = ParamSpec("P")
T = TypeVar("T")


def check_members(model: Model) -> None:
    """Refuse a model that lacks something its Protocol asks for, by name: before the first request, not in each."""
    protocols = (Model, BatchModel) if Capability.BATCH in model.capabilities else (Model,)
    members = {name for protocol in protocols for name in (*protocol.__annotations__, *vars(protocol))}
    missing = sorted(name for name in members if not name.startswith("_") and not hasattr(model, name))
    if missing:
        raise ConfigError(f"model {model.name} lacks {', '.join(missing)}: see docs/add-your-own-model.md")


async def call_model(call: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
    """Return what the model returns; raise ModelError for anything it raises but our own errors and TimeoutError."""
    try:
        return await call(*args, **options)
    except (SnellenError, TimeoutError):
        raise
    except Exception as error:  # a model may raise anything; it costs this trial, not the run
        raise ModelError(FailureKind.SERVER, f"the model raised {type(error).__name__}: {error}") from error


def failed(request: Request, error: ModelError, attempts: int) -> Prediction:
    """Return the Prediction that records why a trial has no reply."""
    return Prediction(
        request.key, failure=Failure(error.kind, clean_text(str(error)), error.status, attempts), detail=error.detail
    )


class Waiting(NamedTuple):
    """A request, its images, and who waits for the answer."""

    request: Request
    images: EncodedImages
    answer: asyncio.Future[Prediction]

    @property
    def length(self) -> int:
        """About how long the prompt is: requests of like length are cheap together, an image is worth many words."""
        return sum(len(turn.text) + 1000 * len(turn.images) for turn in self.request.messages)


class Batcher:
    """One batch at a time: while the model works, the next batch gathers; alike lengths go together."""

    def __init__(self, model: BatchModel) -> None:
        self._model = model
        self._waiting: list[Waiting] = []
        self._runner: asyncio.Task[None] | None = None

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request as part of the next batch."""
        answer: asyncio.Future[Prediction] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(request, images, answer))
        self._model.prefetch(request)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        await asyncio.sleep(0)  # let every worker that is ready put its request in
        while self._waiting:
            # Longest first: if the memory does not suffice, that is known at once and not at the end.
            self._waiting.sort(key=lambda waiting: waiting.length, reverse=True)
            size = max(1, self._model.batch_size)
            batch, self._waiting = self._waiting[:size], self._waiting[size:]
            await self._answer(batch)

    async def _answer(self, batch: list[Waiting]) -> None:
        """Answer a batch; an error goes to all who wait, or they would wait for ever."""
        requests = [waiting.request for waiting in batch]
        images = {image: encoded for waiting in batch for image, encoded in waiting.images.items()}
        try:
            predictions = await call_model(self._model.predict_batch, requests, images)
            if len(predictions) != len(batch):
                raise ModelError(
                    FailureKind.DECODE, f"{self._model.name} gave {len(predictions)} answers for {len(batch)} requests"
                )
        except (SnellenError, TimeoutError) as error:
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
            return
        for waiting, prediction in zip(batch, predictions, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(prediction)

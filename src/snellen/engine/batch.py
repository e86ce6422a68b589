"""Gathers requests that wait at the same time and hands them to a batch model together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..core.errors import ModelError
from ..core.protocols import BatchModel
from ..core.types import FailureKind, Prediction, Request


class Batcher:
    """One batch at a time: while the model works, the next batch gathers; alike lengths go together."""

    def __init__(self, model: BatchModel) -> None:
        self._model = model
        self._waiting: list[tuple[Request, asyncio.Future[Prediction]]] = []
        self._runner: asyncio.Task[None] | None = None
        self._prefetch: Callable[[Request], None] = getattr(model, "prefetch", lambda request: None)

    async def predict(self, request: Request) -> Prediction:
        """Answer one request as part of the next batch."""
        answer: asyncio.Future[Prediction] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._prefetch(request)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        await asyncio.sleep(0)  # let every worker that is ready put its request in
        while self._waiting:
            self._waiting.sort(key=lambda pair: _length(pair[0]), reverse=True)
            size = max(1, self._model.batch_size)
            batch, self._waiting = self._waiting[:size], self._waiting[size:]
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[Request, asyncio.Future[Prediction]]]) -> None:
        try:
            predictions = await self._model.predict_batch([request for request, _ in batch])
            if len(predictions) != len(batch):
                raise ModelError(
                    FailureKind.DECODE, f"{self._model.name} gave {len(predictions)} answers for {len(batch)} requests"
                )
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), prediction in zip(batch, predictions, strict=True):
            if not answer.done():
                answer.set_result(prediction)


def _length(request: Request) -> int:
    return sum(len(turn.text) + 1000 * len(turn.images) for turn in request.messages)

"""A load on a model of this process, a plug-in's own: its pieces are stamped as they come, by the clock of all loads.

Only who is asked differs from a load on servers: arrivals, slots, turns, stops and records are the generator's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from time import perf_counter

import msgspec

from ..core.errors import ModelError
from ..core.protocols import EncodedImage, EncodedImages, Model, StreamingModel
from ..core.types import FailureKind, Image, Request
from ..data.images.encode import ImageDoor
from ..engine.request_videos import has_videos, unfold_videos
from .collect import Collector, cancelled
from .generator import Generator, Item, LoadJob
from .workload import Dialogue, dialogue_id

HERE = "http://this.process/"
"""Where a load on no server goes; nothing is sent there."""


async def prepare_requests(
    model: Model, dialogues: Sequence[Dialogue], *, think_s: float = 0.0
) -> tuple[list[Item], EncodedImages]:
    """Return items whose turns are requests, and their pictures, encoded before the clock runs."""
    items, pictures = list[Item](), dict[Image, EncodedImage]()
    with closing(ImageDoor()) as door:
        for dialogue in dialogues:
            turns, sent = [], []
            for asked in dialogue:
                request = (await unfold_videos(asked, model)).request if has_videos(asked) else asked
                images = await door.encode_all(request, model.image_policy)
                pictures.update(images)
                turns.append(msgspec.json.encode(request))
                sent.append(tuple(images[image].sent for turn in request.messages for image in turn.images))
            items.append(Item(dialogue_id(dialogue[0]), tuple(turns), tuple(sent), think_s))
    return items, pictures


class PieceCollector(Collector):
    """What one request brought, piece by piece."""

    __slots__ = ()

    def take(self, piece: str, moment: float) -> None:
        """Add a piece of the text."""
        self._first.setdefault("event", moment)
        if piece:
            self._first.setdefault("content", moment)
            self._text_times.append(moment)
        self.reply.text = (self.reply.text or "") + piece

    def finish(self, moment: float) -> None:
        """Note the end of the reply."""
        self.end = moment
        if not self.done.done():
            self.done.set_result(None)


class ModelGenerator(Generator):
    """Runs one job on a model of this process."""

    def __init__(self, job: LoadJob, model: Model, images: EncodedImages, *, stream: bool) -> None:
        super().__init__(job, None)
        self._model, self._images, self._stream = model, images, stream
        self._asking: dict[Collector, asyncio.Task[None]] = {}

    def stop(self) -> None:
        """Send nothing more and give up what is in flight."""
        super().stop()
        for collector, task in list(self._asking.items()):
            task.cancel()
            collector.fail(cancelled(), perf_counter())

    async def _open_ahead(self) -> None:
        """Nothing is opened: there is no server."""

    async def _call(self, target: object, path: str, body: bytes) -> Collector:
        collector, request = PieceCollector(None), msgspec.json.decode(body, type=Request)
        collector.sent = perf_counter()
        task = asyncio.create_task(self._ask_model(request, collector))
        self._asking[collector] = task
        try:
            await asyncio.wait_for(asyncio.shield(collector.done), self._job.timeout_s)
        except TimeoutError:
            task.cancel()
            reason = f"no whole answer within {self._job.timeout_s:g} s"
            collector.fail(ModelError(FailureKind.TIMEOUT, reason, retryable=True), perf_counter())
        del self._asking[collector]
        return collector

    async def _ask_model(self, request: Request, collector: PieceCollector) -> None:
        try:
            if self._stream and isinstance(self._model, StreamingModel):
                async for piece in self._model.stream(request, self._images):
                    if isinstance(piece, str):
                        collector.take(piece, perf_counter())
                    else:
                        collector.reply.usage = piece
            else:
                prediction = await self._model.predict(request, self._images)
                collector.reply.text, collector.reply.usage = prediction.text, prediction.usage
                collector.reply.reasoning, collector.reply.finish = prediction.reasoning, prediction.finish
                if prediction.failure is not None:
                    raise ModelError(prediction.failure.kind, prediction.failure.message)
            collector.finish(perf_counter())
        except ModelError as error:
            collector.fail(error, perf_counter())
        except Exception as error:  # noqa: BLE001 - somebody else's code may raise anything; it costs this request
            reason = f"{self._model.name} raised {type(error).__name__}: {error}"
            collector.fail(ModelError(FailureKind.SERVER, reason), perf_counter())

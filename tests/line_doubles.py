"""Stand-ins for the two ends of the engine: models that misbehave as told, and jobs that need no dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_clock import FakeClock
from snellen.core.jobs import Ask, Item
from snellen.core.protocols import Capability, EncodedImages, ImagePolicy, Model
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Form, Image, Prediction, Request, Sample, TrialKey, Turn
from snellen.data.images.encode import ImageDoor
from snellen.engine.limits import Limits, Policy
from snellen.engine.loop import Engine
from snellen.store.cache import ResponseCache
from snellen.store.writer import RunWriter

Answer = Callable[[Request], Awaitable[Prediction]]


class Scripted:
    """A model that answers by a function and remembers what it was asked."""

    name = "scripted/model"
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = True

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        self.asked.append(request.key.sample)
        return await self._answer(request) if self._answer else Prediction(request.key, text="ok")

    async def check(self) -> None:
        pass

    def identity(self) -> Mapping[str, Any]:
        return {"model": self.name}

    async def close(self) -> None:
        pass


class ScriptedBatch(Scripted):
    """The same with batches; `answer_batch` gets the whole list."""

    capabilities = frozenset({Capability.GENERATE, Capability.BATCH})
    batch_size = 4

    def __init__(self, answer_batch: Callable[[Sequence[Request]], list[Prediction]]) -> None:
        super().__init__()
        self._answer_batch = answer_batch
        self.batches: list[list[str]] = []

    async def predict_batch(self, requests: Sequence[Request], images: EncodedImages) -> list[Prediction]:
        await asyncio.sleep(0)
        self.batches.append([request.key.sample for request in requests])
        return self._answer_batch(requests)

    def prefetch(self, request: Request) -> None:
        pass


async def ask(model: Model, request: Request) -> Prediction:
    """Ask a model as the engine does: with the images of the request encoded."""
    return await model.predict(request, await ImageDoor().encode_all(request, model.image_policy))


@dataclass(frozen=True)
class OneTrial:
    """A job of one trial."""

    number: int
    task: str = "t"
    image: Image | None = None
    settled: Prediction | None = None

    @property
    def key(self) -> TrialKey:
        return TrialKey(self.task, f"s{self.number}")

    @property
    def keys(self) -> Sequence[TrialKey]:
        return (self.key,)

    async def run(self, ask: Ask) -> None:
        sample = Sample(f"s{self.number}", self.task, Form.OPEN, "why?")
        images = (self.image,) if self.image else ()
        await ask(
            Item(self.number, sample), Request(self.key, (Turn("user", f"why {self.number}?", images),)), self.settled
        )


def jobs(count: int, **options: Any) -> Iterator[OneTrial]:
    return iter([OneTrial(number, **options) for number in range(count)])


def header(*tasks: str) -> RunHeader:
    names = tasks or ("t",)
    return RunHeader(
        "id",
        {"a": 1},
        {},
        "2026-01-01",
        tasks=[Task(name, {"loader": "table"}, Form.OPEN, scorers=("exact",)) for name in names],
    )


def work(
    folder: Path,
    model: Scripted,
    todo: Iterator[Any],
    *,
    cache: ResponseCache | None = None,
    prepare: Callable[[Engine], None] | None = None,
    limits: Limits | None = None,
    **policy: Any,
) -> Engine:
    """Run jobs to their end on a clock that does not wait; the engine is returned also when `run` raised (see `engine.problem`)."""

    async def go() -> Engine:
        writer = RunWriter(folder, header())
        how = Policy(**({"max_workers": 8, "max_retries": 0} | policy))
        engine = Engine(model, writer, how, FakeClock(), cache=cache, limits=limits)
        if prepare is not None:
            prepare(engine)
        try:
            await asyncio.wait_for(engine.run(todo), 20)
        finally:
            writer.close()
        return engine

    return asyncio.run(go())

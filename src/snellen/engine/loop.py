"""Jobs to stored predictions: workers take jobs, ask through cache(limit(retry(deadline(call)))), store, and go on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from ..core.clock import Clock
from ..core.errors import DataError, EnvironmentProblem, ModelError, Parked, SnellenError
from ..core.garbage import collect_after_faults
from ..core.ids import content_hash
from ..core.jobs import Item, Job
from ..core.protocols import BatchModel, Capability, Model
from ..core.resends import resends_paid_by
from ..core.text import clean_text
from ..core.types import FailureKind, Image, ImageSent, Prediction, Request, TrialKey
from ..data.images.encode import ImageDoor
from ..store.cache import ResponseCache, request_digest
from ..store.picture_ledger import PictureLedger
from ..store.writer import RunWriter
from .batch import Batcher
from .call import check_members, failed
from .limit import Limiter
from .pace import Pace
from .policy import Policy
from .purse import BudgetSpentError, Purse
from .request_images import ImageDesk, RequestImages
from .request_videos import has_videos, unfold_videos
from .retry import Retrier
from .spending import LimitReached, Spending
from .state import RunState

DEAD_AFTER = 20
"""So many failures in a row (or twice the workers, if that is more) mean the server is gone, not unlucky."""
OWN_FAULT = {FailureKind.TOO_LONG, FailureKind.PAYLOAD, FailureKind.REFUSED, FailureKind.TRUNCATED, FailureKind.SKIPPED}
"""What is wrong with one question says nothing of the server: a hundred of them in a row are no reason to stop."""

Observer = Callable[[Item, Request, Prediction], None]


class Engine:
    """Runs jobs against one model and one store."""

    def __init__(
        self,
        model: Model,
        writer: RunWriter,
        policy: Policy,
        clock: Clock,
        *,
        door: ImageDoor | None = None,
        cache: ResponseCache | None = None,
        ledger: PictureLedger | None = None,
        purse: Purse | None = None,
        spending: Spending | None = None,
    ) -> None:
        check_members(model)
        self.state = RunState()
        self._model = model
        self._identity = content_hash(model.identity(), 32)
        self._writer = writer
        self._ledger = ledger
        self._spending = spending
        self._predict = self._predict_now
        if spending is not None:
            self.state.spending = spending
            if spending.limit is not None:
                self._predict = partial(self._predict_affordable, spending)
        self._policy = policy
        self._clock = clock
        self._cache = cache if model.cacheable else None
        self._desk = ImageDesk(door or ImageDoor(), model.image_policy)
        workers, adaptive = policy.max_workers, policy.adaptive
        call = model.predict
        if isinstance(model, BatchModel) and Capability.BATCH in model.capabilities:
            # Waiting for one's turn in a batch is no server's silence: no timeout counts it.
            call, adaptive, policy = Batcher(model).predict, False, replace(policy, timeout_s=None)
        self._limiter = Limiter(workers, policy.max_bytes_in_flight, clock, adaptive=adaptive)
        pace = Pace(policy.per_second, clock) if policy.per_second else None
        self._retrier = Retrier(
            call, policy, self._limiter, clock, self._note_attempt, pace=pace, purse=purse or Purse()
        )
        self._finished: dict[str, set[tuple[str, str, int]]] = {}
        self._stop = asyncio.Event()
        self._problem: SnellenError | None = None
        self._lost_connections = 0
        self._failed_in_a_row = 0
        self._observe: Observer | None = None

    async def run(self, jobs: Iterator[Job], observe: Observer | None = None) -> None:
        """Run all jobs; the first alone, as a probe. Raises what stopped it; what was stored stays stored.

        `observe` is told of every trial that has a prediction, new or stored; it may call `stop`.
        """
        self._observe = observe
        try:
            with resends_paid_by(self._retrier.purse.pay):
                await self._run_workers([asyncio.create_task(self._work(jobs, probe=True))])
                if not self.stopping:
                    workers = [asyncio.create_task(self._work(jobs)) for _ in range(self._policy.max_workers)]
                    await self._run_workers(workers)
        finally:
            self._desk.door.close()
            if self._cache is not None:
                self._cache.flush()
                self.state.not_kept, self.state.why_not_kept = self._cache.not_kept, self._cache.why_not_kept
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """Take no new jobs; what is in flight may finish within the drain time."""
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Tell whether the engine was asked to stop."""
        return self._stop.is_set()

    async def _run_workers(self, workers: list[asyncio.Task[None]]) -> None:
        stopped = asyncio.create_task(self._stop.wait())
        everything: asyncio.Future[list[None]] = asyncio.gather(*workers)
        try:
            watched: set[asyncio.Future[Any]] = {everything, stopped}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                await asyncio.wait({everything}, timeout=self._policy.drain_s)
            if everything.done():
                await everything
        finally:
            for task in (*workers, stopped):
                task.cancel()
            await asyncio.gather(*workers, stopped, return_exceptions=True)
            await asyncio.gather(everything, return_exceptions=True)

    async def _work(self, jobs: Iterator[Job], *, probe: bool = False) -> None:
        while not self.stopping:
            try:
                job = next(jobs, None)
                if job is None:
                    return
                if self._observe is None and all(map(self._is_finished, job.keys)):
                    self.state.resumed += len(job.keys)
                    continue
                await job.run(self._ask)
            except BudgetSpentError:  # no halt: what others paid for comes back in its own time
                return
            except Parked:
                self.state.parked += 1
            except LimitReached:
                self.state.over_limit = True
                self.stop()
            except SnellenError as error:  # the others get their time to finish what they asked
                self._halt(error)
            if probe:
                return

    async def _ask(
        self, item: Item, request: Request, settled: Prediction | None = None, *, keep: bool = True
    ) -> Prediction:
        if self._is_finished(request.key):
            stored = self._writer.stored(request.key)
            if stored is not None:
                self.state.resumed += 1
                if self._observe is not None:
                    self._observe(item, request, stored)
                return stored
        if settled is not None:
            await self._keep(item, request, settled, "")
            return settled
        if has_videos(request):
            request, prediction, digest = await self._answer_shown(request)
        else:
            prediction, digest = await self._answer(request)
        if keep:
            await self._keep(item, request, prediction, digest)
            self._watch(prediction, reached=bool(digest))
        return prediction

    async def _answer_shown(self, request: Request) -> tuple[Request, Prediction, str]:
        """Answer a request with videos; return it as it was sent too."""
        try:
            shown = await unfold_videos(request, self._model)
        except DataError as error:
            return request, failed(request, ModelError(FailureKind.DECODE, str(error)), 1), ""
        prediction, digest = await self._answer(shown.request)
        return shown.request, shown.noted(prediction), digest

    async def _keep(self, item: Item, request: Request, prediction: Prediction, digest: str) -> None:
        await self._writer.put(item.position, item.sample, request, prediction, digest)
        self.state.count(prediction)
        if self.state.is_drawn and self.state.onlooker is not None:
            self.state.onlooker.take(item.sample, request, prediction)
        if self._observe is not None:
            self._observe(item, request, prediction)

    async def _answer(self, request: Request) -> tuple[Prediction, str]:
        """Return a prediction from the cache or the model, and the request's digest: empty where an image is bad."""
        images, digest = RequestImages(request, self._desk), ""
        try:
            await images.encode()
            if self._ledger is not None:
                self._ledger.check_sent(zip(_pictures_of(request), images.sent, strict=True))
            digest = request_digest(self._identity, request, [image.sha256 for image in images.sent])
            cached = self._cache.get(digest, request.key) if self._cache is not None else None
            prediction = cached or await self._predict(request, images, digest)
        except DataError as error:
            return failed(request, ModelError(FailureKind.DECODE, str(error)), 1), digest
        finally:
            images.let_go()
        if images.sent and not prediction.images:
            prediction = msgspec.structs.replace(prediction, images=images.sent)
        return prediction, digest

    async def _predict_affordable(
        self, spending: Spending, request: Request, images: RequestImages, digest: str
    ) -> Prediction:
        await spending.begin()
        try:
            return await self._predict_now(request, images, digest)
        finally:
            spending.end()

    async def _predict_now(self, request: Request, images: RequestImages, digest: str) -> Prediction:
        size_bytes = _size_bytes(request, images.sent)
        await self._limiter.acquire(size_bytes)
        self.state.in_flight += 1
        try:
            prediction = _storable(request, await self._retrier.predict(request, await images.take()))
        finally:
            self.state.in_flight -= 1
            self._limiter.release(size_bytes)
            self.state.slots = self._limiter.slots
            self.state.paused_until = self._limiter.paused_until
        if self._cache is not None:
            self._cache.put(digest, self._model.name, prediction)
        if self._spending is not None:  # before the next may leave: what came back counts as spent
            self._spending.count(prediction)
        return prediction

    def _is_finished(self, key: TrialKey) -> bool:
        if key.task not in self._finished:
            self._finished[key.task] = self._writer.finished_keys(key.task)
        return (key.sample, key.variant, key.repeat) in self._finished[key.task]

    def _note_attempt(self, request: Request, error: ModelError) -> None:
        self.state.retries += 1
        collect_after_faults(self.state.retries)
        self.state.last_error = str(error)
        self.state.paused_until = self._limiter.paused_until
        self._writer.put_attempt(request.key, error)
        self._lost_connections = self._lost_connections + 1 if error.kind is FailureKind.NETWORK else 0
        if self._lost_connections >= self._dead_after():
            raise EnvironmentProblem(f"stopped: the server is gone ({error}); run the same command again to continue")

    def _watch(self, prediction: Prediction, *, reached: bool) -> None:
        """Stop when nothing succeeds any more or the error budget is spent."""
        failure = prediction.failure
        if failure is None:
            self._failed_in_a_row = self._lost_connections = 0
            return
        if reached and failure.kind not in OWN_FAULT:  # an image that cannot be read says nothing about the server
            self._failed_in_a_row += 1
        if self._failed_in_a_row >= self._dead_after():
            reason = f"{self._failed_in_a_row} trials failed in a row"
        elif self._policy.max_errors.exceeded(self.state.failed, self.state.done):
            reason = f"{self.state.failed} of {self.state.done} trials failed (--max-errors)"
        else:
            return
        message = f"stopped: {reason}, the last with: {failure.message}; run the same command again to continue"
        self._halt(EnvironmentProblem(message))

    def _dead_after(self) -> int:
        return max(DEAD_AFTER, 2 * self._limiter.slots)

    def _halt(self, problem: SnellenError) -> None:
        self._problem = self._problem or problem
        self._stop.set()


def _pictures_of(request: Request) -> Iterator[Image]:
    return (image for turn in request.messages for image in turn.images)


def _size_bytes(request: Request, sent: tuple[ImageSent, ...]) -> int:
    """Return about how much the request weighs on the wire: images go as base64."""
    texts = 1024
    for turn in request.messages:
        texts += len(turn.text)
    return texts + (sum([image.size_bytes for image in sent]) * 4 // 3 if sent else 0)


def _storable(request: Request, prediction: Prediction) -> Prediction:
    """Return the prediction with text that any store and any reader can hold; JSON has no infinity and no NaN."""
    if prediction.loglikelihoods is not None and not all(map(math.isfinite, prediction.loglikelihoods)):
        values = ", ".join(map(str, prediction.loglikelihoods))
        message = f"the model gave log-likelihoods that are no finite numbers: {values}"
        return failed(request, ModelError(FailureKind.DECODE, message), 1)
    text = prediction.text and clean_text(prediction.text)
    reasoning = prediction.reasoning and clean_text(prediction.reasoning)
    if text is prediction.text and reasoning is prediction.reasoning:
        return prediction
    return msgspec.structs.replace(prediction, text=text, reasoning=reasoning)

"""Jobs to stored predictions: workers take jobs, ask through cache(limit(retry(deadline(call)))), store, and go on."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from ..core.answerer import answerer_of
from ..core.clock import Clock
from ..core.errors import DataError, EnvironmentProblem, ModelError, Parked, ServerLost, SnellenError, StopRun
from ..core.ids import rng
from ..core.jobs import Item, Job, Step, resends_paid_by
from ..core.process import collect_after_faults
from ..core.protocols import BatchModel, Capability, EncodedImage, EncodedImages, ImagePolicy, Model
from ..core.text import clean_text
from ..core.types import FailureKind, Image, ImageSent, Prediction, Request, TrialKey
from ..data.images.encode import ImageDoor, images_of
from ..store.answerers import Answerers
from ..store.cache import ResponseCache, request_digest
from ..store.picture_ledger import PictureLedger
from ..store.sent_pictures import PictureKeeper
from ..store.turns import StoredTurn
from ..store.writer import TrialWriter
from .call import Batcher, call_model, check_members, failed
from .control import Wish
from .flow import Limiter, RateLimit
from .limits import LimitReached, Limits, Policy
from .request_videos import has_videos, unfold_videos
from .state import RunState
from .trust import CacheTrust

T = TypeVar("T")


class Deadlines:
    """Cuts off what takes longer than it may."""

    def __init__(self) -> None:
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, seconds: float | None, work: Awaitable[T]) -> T:
        """Return what `work` returns, or cancel it and raise TimeoutError after so many seconds.

        A task waits for one at a time.
        """
        task = asyncio.current_task()
        if seconds is None or task is None:
            return await work
        loop = task.get_loop()
        end = self._ends[task] = loop.time() + seconds
        if self._timer is None or end < self._timer.when():
            self._wake_at(end, loop)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._late and task.cancelling() == 1:  # cancelled by us and by nobody else
                raise TimeoutError from None
            raise
        finally:
            del self._ends[task]
            if task in self._late:
                self._late.remove(task)
                task.uncancel()

    def _wake_at(self, end: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(end, self._cut_off, loop)

    def _cut_off(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for task, end in self._ends.items():
            if end <= now and task not in self._late:
                self._late.add(task)
                task.cancel()
        waiting = [end for task, end in self._ends.items() if task not in self._late]
        if waiting:
            self._wake_at(min(waiting), loop)


Call = Callable[[Request, EncodedImages], Awaitable[Prediction]]
NoteAttempt = Callable[[Request, ModelError], None]


@dataclass(slots=True)
class Retrier:
    """retry(deadline(call)): returns a Prediction, with a typed failure when all attempts failed."""

    call: Call
    policy: Policy
    limiter: Limiter
    clock: Clock
    note: NoteAttempt
    rate: RateLimit | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    limits: Limits = field(default_factory=Limits)

    @property
    def per_second(self) -> float | None:
        """Return how many requests may leave a second; None: as many as go."""
        return None if self.rate is None else self.rate.per_second

    def set_rate(self, per_second: float) -> None:
        """Send so many a second from now on; 0: as many as go."""
        if per_second <= 0:
            self.rate = None
        elif self.rate is None:
            self.rate = RateLimit(per_second, self.clock)
        else:
            self.rate.set(per_second)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Ask until it is answered or it is clear that it will not be."""
        draw: random.Random | None = None
        for attempt in range(self.policy.max_retries + 1):
            try:
                return await self._attempt(request, images)
            except StopRun:
                raise
            except ModelError as error:
                self.note(request, error)
                if not error.retryable or attempt >= self.policy.max_retries:
                    return failed(request, error, attempt + 1)
                draw = draw or rng(*msgspec.structs.astuple(request.key), "backoff")
                wait_s = self._wait_s(error, attempt, draw)
            await self.clock.sleep(wait_s)
            await self.limiter.wait_for_pause()
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, request: Request, images: EncodedImages) -> Prediction:
        if self.rate is not None:
            await self.rate.turn()
        timeout_s = self.policy.timeout_of(request.params)
        self.limits.pay()
        try:
            limit_s, work = _limit_s(timeout_s, request), call_model(self.call, request, images)
            return await (work if limit_s is None else self.deadlines.within(limit_s, work))
        except TimeoutError:
            raise ModelError(FailureKind.TIMEOUT, f"no answer within {timeout_s or 0:g} s", retryable=True) from None
        except ModelError as error:
            self._bound_rest(error)
            if error.kind is FailureKind.RATE or (error.status == 503 and error.retry_after_s):
                self.limiter.throttle(error.retry_after_s)
            raise

    def _bound_rest(self, error: ModelError) -> None:
        """Cut a rest that a server asks for to the longest that is kept, and say so."""
        asked_s, most_s = error.retry_after_s or 0.0, self.policy.retry_after_max_s
        if asked_s > most_s:
            error.retry_after_s = most_s
            error.args = (f"{error} (Retry-After asks for {asked_s:.6g} s; it is asked again after {most_s:g} s)",)

    def _wait_s(self, error: ModelError, attempt: int, draw: random.Random) -> float:
        if attempt == 0 and error.status is None and error.retry_after_s == 0.0:
            return 0.0  # our own transport knows what to do differently; no server needs a rest
        backoff = self.policy.backoff_of(attempt) * (0.5 + draw.random())
        return max(backoff, (error.retry_after_s or 0.0) * (1.0 + 0.1 * draw.random()))


def _limit_s(timeout_s: float | None, request: Request) -> float | None:
    """Return how long one attempt may take; a stream a little longer, because its reader knows what came until then."""
    if timeout_s is None or not request.params.stream:
        return timeout_s
    return timeout_s + min(1.0, 0.05 * timeout_s)


WAITING_BYTES = 256 * 2**20


@dataclass(slots=True)
class ImageDesk:
    """Where images come from, and how many bytes of them requests hold that wait for a slot.

    What is in flight is the limiter's matter. Without a bound here, every worker with a long document would hold all of
    its pages; beyond the bound a request lets go of them, and they are encoded again when it may be sent.
    """

    door: ImageDoor
    policy: ImagePolicy
    limit_bytes: int = WAITING_BYTES
    used_bytes: int = 0
    keeper: PictureKeeper | None = None


@dataclass(slots=True)
class RequestImages:
    """The images of one request, from their encoding until it is sent."""

    request: Request
    desk: ImageDesk
    sent: tuple[ImageSent, ...] = ()
    """What the images of the messages are once they are ready to be sent, in order."""
    hashes: Sequence[str] = ()
    """Of what is sent of each picture, those of a baseline last."""
    _held: dict[Image, EncodedImage] | None = field(default_factory=dict)
    _held_bytes: int = 0

    async def encode(self) -> None:
        """Encode all images and learn what they are; raise DataError when one cannot be read."""
        images = images_of(self.request)
        if not images:
            return
        records: dict[Image, ImageSent] = {}
        for image in images:
            encoded = await self.desk.door.encode(image, self.desk.policy)
            records[image] = encoded.sent
            if self.desk.keeper is not None:
                self.desk.keeper.put(encoded)
            self._hold(image, encoded)
        self.sent = tuple([records[image] for turn in self.request.messages for image in turn.images])
        baseline = [image for turn in self.request.likelihood.baseline for image in turn.images]
        self.hashes = [sent.sha256 for sent in (*self.sent, *(records[image] for image in baseline))]

    async def take(self) -> EncodedImages:
        """Return the images for sending; they no longer count as waiting."""
        held = self._held
        self.let_go()
        return held if held is not None else await self.desk.door.encode_all(self.request, self.desk.policy)

    def let_go(self) -> None:
        """Hold nothing any more; may be called again."""
        self.desk.used_bytes -= self._held_bytes
        self._held, self._held_bytes = None, 0

    def _hold(self, image: Image, encoded: EncodedImage) -> None:
        if self._held is None:
            return
        self._held[image] = encoded
        self._held_bytes += len(encoded.base64)
        self.desk.used_bytes += len(encoded.base64)
        if self.desk.used_bytes > self.desk.limit_bytes:
            self.let_go()


DEAD_AFTER = 20
"""So many failures in a row (or twice the workers, if that is more) mean the server is gone, not unlucky."""
OWN_FAULT = {FailureKind.TOO_LONG, FailureKind.PAYLOAD, FailureKind.REFUSED, FailureKind.TRUNCATED, FailureKind.SKIPPED}
"""What is wrong with one question says nothing of the server: a hundred of them in a row are no reason to stop."""

INTERRUPTED = "interrupted: the same command continues it"
OVERDUE = "stopped by --deadline: the same command continues it"

Opening = Callable[[], Awaitable[PictureLedger | None]]
"""Awaited once, before the first request that is not stored: may refuse to go on, and brings what pictures were."""


Answer = tuple[Prediction, str, Sequence[str]]
"""What a request came to, its digest (empty where an image is bad), and the hashes of its pictures."""


class Engine:
    """Runs jobs against one model and one store."""

    def __init__(
        self,
        model: Model,
        writer: TrialWriter,
        policy: Policy,
        clock: Clock,
        *,
        door: ImageDoor | None = None,
        cache: ResponseCache | None = None,
        limits: Limits | None = None,
        opening: Opening | None = None,
        answerers: Answerers | None = None,
        trust: CacheTrust | None = None,
        keeper: PictureKeeper | None = None,
    ) -> None:
        check_members(model)
        self._limits = limits or Limits()
        self.state = RunState(limits=self._limits)
        self._model = model
        self._answerer = answerer_of(model).key
        self._answerers = answerers
        self._trust = trust
        self._writer = writer
        self._opening = opening
        self._opened: asyncio.Task[None] | None = None
        self._ledger: PictureLedger | None = None
        self._predict = self._predict_reserved if self._limits.are_reserved else self._predict_now
        self._policy = policy
        self._clock = clock
        self._cache = cache if model.cacheable else None
        self._desk = ImageDesk(door or ImageDoor(), model.image_policy, keeper=keeper)
        workers, adaptive = policy.max_workers, policy.adaptive
        call = model.predict
        if isinstance(model, BatchModel) and Capability.BATCH in model.capabilities:
            # Waiting for one's turn in a batch is no server's silence: no timeout counts it.
            call, adaptive, policy = Batcher(model).predict, False, replace(policy, timeout_s=None)
        self._limiter = Limiter(workers, policy.max_bytes_in_flight, clock, adaptive=adaptive)
        rate = RateLimit(policy.per_second, clock) if policy.per_second else None
        self._retrier = Retrier(call, policy, self._limiter, clock, self._note_attempt, rate=rate, limits=self._limits)
        self._finished: dict[str, set[tuple[str, str, int]]] = {}
        self._stop = asyncio.Event()
        self._problem: SnellenError | None = None
        self._lost_connections = 0
        self._failed_in_a_row = 0

    async def run(self, jobs: Iterator[Job]) -> None:
        """Run all jobs; the first alone, as a probe. Raises what stopped it; what was stored stays stored."""
        try:
            with resends_paid_by(self._limits.pay), self._ending_in_time():
                await self._run_workers([asyncio.create_task(self._work(jobs, probe=True))])
                if not self.stopping:
                    workers = [asyncio.create_task(self._work(jobs)) for _ in range(self._policy.max_workers)]
                    await self._run_workers(workers)
        finally:
            narrow = self._limits.interval is not None and self._limits.interval.stopped
            self.state.unfinished = self.state.over_limit or (self.stopping and not narrow)
            if self._opened is not None:
                self._opened.cancel()  # whoever waited for it is gone
            self._desk.door.close()
            if self._cache is not None:
                self._cache.flush()
                self.state.not_kept, self.state.why_not_kept = self._cache.not_kept, self._cache.why_not_kept
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """Take no new jobs; what is in flight may finish within the drain time."""
        self._limits.close(INTERRUPTED)
        self._stop.set()

    def adjust(self, wish: Wish) -> dict[str, Any]:
        """Do what somebody wishes of a run that goes on, and return how things stand then.

        More workers than it began with there are none.
        """
        if wish.paused is not None:
            (self._limiter.pause if wish.paused else self._limiter.resume)()
        if wish.workers is not None:
            self._limiter.set_slots(max(1, min(wish.workers, self._policy.max_workers)))
        if wish.rate is not None:
            self._retrier.set_rate(wish.rate)
        stand = {"paused": self._limiter.paused, "workers": self._limiter.slots, "rate": self._retrier.per_second}
        return {**stand, "in_flight": self._limiter.active, "most_workers": self._policy.max_workers}

    @property
    def stopping(self) -> bool:
        """Tell whether the engine was asked to stop."""
        return self._stop.is_set()

    @contextmanager
    def _ending_in_time(self) -> Iterator[None]:
        """Stop when the time of the command is over; what is in flight drains, all is kept."""
        if self._limits.ends is None:
            yield
            return

        def end() -> None:
            self._limits.overdue = True
            self._limits.close(OVERDUE)
            self.stop()

        left_s = max(0.0, self._limits.ends - self._clock.monotonic())
        timer = asyncio.get_running_loop().call_later(left_s, end)
        try:
            yield
        finally:
            timer.cancel()

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
                if self._limits.interval is None and all(map(self._is_finished, job.keys)):
                    self.state.resumed += len(job.keys)
                    continue
                await job.run(self._ask)
            except LimitReached:  # no halt: what others paid for comes back in its own time
                return
            except Parked:
                self.state.parked += 1
            except SnellenError as error:  # the others get their time to finish what they asked
                self._halt(error)
            if probe:
                return

    async def _ask(
        self,
        item: Item,
        request: Request,
        settled: Prediction | None = None,
        *,
        keep: bool = True,
        turn: Step | None = None,
    ) -> Prediction:
        if turn is not None:
            return await self._ask_turn(item, request, turn)
        if self._is_finished(request.key):
            stored = self._writer.stored(request.key)
            if stored is not None:
                self.state.resumed += 1
                self._watch_interval(item, request, stored)
                return stored
        if settled is not None:
            await self._writer.put(item.position, item.sample, request, settled, "")
            self._count_kept(item, request, settled)
            return settled
        if self._opening is not None:
            await self._open_once(self._opening)
        if has_videos(request):
            request, (prediction, digest, _) = await self._answer_shown(request)
        else:
            prediction, digest, _ = await self._answer(request)
        if keep:
            await self._writer.put(item.position, item.sample, request, prediction, digest)
            self._count_kept(item, request, prediction)
            self._watch(prediction, reached=bool(digest))
        return prediction

    async def _ask_turn(self, item: Item, request: Request, turn: Step) -> Prediction:
        """Answer one turn from the store or the model; it is committed before the next can be asked."""
        stored = self._writer.stored_turn(request.key, turn.number)
        if stored is not None:
            return await self._take_turn(item, request, turn, stored)
        if self._opening is not None:
            await self._open_once(self._opening)
        if has_videos(request):
            request, (reply, digest, hashes) = await self._answer_shown(request)
        else:
            reply, digest, hashes = await self._answer(request)
        final = turn.settle(reply)
        if reply.failure is None:
            asked = (request, reply, request_digest("", request, hashes))
            await self._writer.put_turn(item, turn, asked, final, digest)
        elif final is not None:
            await self._writer.put(item.position, item.sample, request, final, digest)
        if final is None:
            self.state.count_tokens(reply.usage)
        else:
            self._count_kept(item, request, msgspec.structs.replace(final, usage=reply.usage))
        if final is not None or reply.failure is None:
            self._watch(reply, reached=bool(digest))
        return reply

    async def _take_turn(self, item: Item, request: Request, turn: Step, stored: StoredTurn) -> Prediction:
        """Return the stored reply of a turn, if it was asked as it would be now."""
        asked = request
        if has_videos(request):
            asked = (await unfold_videos(request, self._model)).request
        images = RequestImages(asked, self._desk)
        try:
            await images.encode()
        finally:
            images.let_go()
        stored.check(request_digest("", asked, images.hashes))
        final = turn.settle(stored.prediction)
        if final is not None and self._is_finished(request.key):
            self.state.resumed += 1
            self._watch_interval(item, request, final)
        elif final is not None:
            await self._writer.put(item.position, item.sample, asked, final, stored.digest)
            self._count_kept(item, asked, msgspec.structs.replace(final, usage=None))
        return stored.prediction

    async def _answer_shown(self, request: Request) -> tuple[Request, Answer]:
        """Answer a request with videos; return it as it was sent too."""
        try:
            shown = await unfold_videos(request, self._model)
        except DataError as error:
            return request, (failed(request, ModelError(FailureKind.DECODE, str(error)), 1), "", ())
        prediction, digest, hashes = await self._answer(shown.request)
        return shown.request, (shown.noted(prediction), digest, hashes)

    def _count_kept(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Count a stored trial; its usage is what it took since the last count: of turns, the last one's."""
        self.state.count(prediction)
        if self.state.is_drawn and self.state.onlooker is not None:
            self.state.onlooker.take(item.sample, request, prediction)
        if self._limits.interval is not None:
            self._watch_interval(item, request, prediction)

    def _watch_interval(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Let the interval hear of a trial, new or stored, and stop once it is narrow enough."""
        interval = self._limits.interval
        if interval is not None:
            interval.observe(item, request, prediction)
            if interval.stopped:
                self.stop()

    async def _open_once(self, opening: Opening) -> None:
        """Wait for what must be known before the first request; whatever refuses it refuses it to all."""

        async def once() -> None:
            self._ledger = await opening()
            self._answerer = answerer_of(self._model).key  # now the server was asked what it lists
            self._opening = None

        self._opened = self._opened or asyncio.create_task(once())
        await asyncio.shield(self._opened)

    async def _answer(self, request: Request) -> Answer:
        """Return a prediction from the cache or the model, with the request's digest: empty where an image is bad."""
        images, digest = RequestImages(request, self._desk), ""
        try:
            await images.encode()
            if self._ledger is not None:
                self._ledger.check_sent(zip(_pictures_of(request), images.sent, strict=True))
            digest = request_digest(self._answerer, request, images.hashes)
            cached = self._cache.get(digest, request.key) if self._cache is not None else None
            if cached is not None and self._trust is not None:
                cached = await self._trust.settle(request, cached, partial(self._predict, request, images, digest))
            prediction = cached or await self._predict(request, images, digest)
        except DataError as error:
            return failed(request, ModelError(FailureKind.DECODE, str(error)), 1), digest, ()
        finally:
            images.let_go()
        if images.sent and not prediction.images:
            prediction = msgspec.structs.replace(prediction, images=images.sent)
        return (prediction if self._answerers is None else self._answerers.note(prediction)), digest, images.hashes

    async def _predict_reserved(self, request: Request, images: RequestImages, digest: str) -> Prediction:
        await self._limits.begin(request.key.task)
        try:
            return await self._predict_now(request, images, digest)
        finally:
            self._limits.release(request.key.task)

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
        if self._cache is not None and self._model.cacheable:
            self._cache.put(digest, self._answerer, prediction)
        self._limits.count(prediction)  # before the next may leave: what came back counts as spent
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
            raise ServerLost(f"stopped: the server is gone ({error}); run the same command again to continue")

    def _watch(self, prediction: Prediction, *, reached: bool) -> None:
        """Stop when nothing succeeds any more or too much failed."""
        failure = prediction.failure
        if failure is None:
            self._failed_in_a_row = self._lost_connections = 0
            return
        if reached and failure.kind not in OWN_FAULT:  # an image that cannot be read says nothing about the server
            self._failed_in_a_row += 1
        problem: type[EnvironmentProblem] = EnvironmentProblem
        if self._failed_in_a_row >= self._dead_after():
            problem, reason = ServerLost, f"{self._failed_in_a_row} trials failed in a row"
        elif self._limits.has_too_many_errors(self.state.failed, self.state.done):
            reason = f"{self.state.failed} of {self.state.done} trials failed (--max-errors)"
        else:
            return
        message = f"stopped: {reason}, the last with: {failure.message}; run the same command again to continue"
        self._halt(problem(message))

    def _dead_after(self) -> int:
        return max(DEAD_AFTER, 2 * self._limiter.slots)

    def _halt(self, problem: SnellenError) -> None:
        self._problem = self._problem or problem
        self._limits.close(str(problem))
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

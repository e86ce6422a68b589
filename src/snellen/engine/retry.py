"""A call to a prediction or a typed failure: tried again when it can help, bounded, with jittered waits, all noted."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from ..core.clock import Clock
from ..core.errors import ModelError, StopRun
from ..core.ids import rng
from ..core.protocols import EncodedImages
from ..core.types import FailureKind, Prediction, Request
from .call import call_model, failed
from .deadline import Deadlines
from .flow import Limiter, RateLimit
from .limits import Limits
from .policy import Policy

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

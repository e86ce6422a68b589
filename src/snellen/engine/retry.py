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
from .limit import Limiter
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
    deadlines: Deadlines = field(default_factory=Deadlines)

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Ask until it is answered or it is clear that it will not be."""
        draw: random.Random | None = None
        started = self.clock.monotonic()
        for attempt in range(self.policy.max_retries + 1):
            try:
                return await self._attempt(request, images)
            except StopRun:
                raise
            except ModelError as error:
                self.note(request, error)
                draw = draw or rng(*msgspec.structs.astuple(request.key), "backoff")
                wait_s = self._wait_s(error, attempt, draw)
                if not self._worth_it(error, attempt, started, wait_s):
                    return failed(request, error, attempt + 1)
            await self.clock.sleep(wait_s)
            await self.limiter.wait_for_pause()
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, request: Request, images: EncodedImages) -> Prediction:
        timeout_s = self.policy.timeout_of(request.params)
        try:
            # One second more than the model was told: it knows better what it waited for, and says so.
            limit_s = None if timeout_s is None else timeout_s + 1.0
            return await self.deadlines.within(limit_s, call_model(self.call, request, images))
        except TimeoutError:
            raise ModelError(FailureKind.TIMEOUT, f"no answer within {timeout_s or 0:g} s", retryable=True) from None
        except ModelError as error:
            if error.kind is FailureKind.RATE or (error.status == 503 and error.retry_after_s):
                self.limiter.throttle(error.retry_after_s)
            raise

    def _worth_it(self, error: ModelError, attempt: int, started: float, wait_s: float) -> bool:
        if not error.retryable or attempt >= self.policy.max_retries:
            return False
        return self.policy.deadline_s is None or self.clock.monotonic() + wait_s - started < self.policy.deadline_s

    def _wait_s(self, error: ModelError, attempt: int, draw: random.Random) -> float:
        backoff = self.policy.backoff_of(attempt) * (0.5 + draw.random())
        return max(backoff, (error.retry_after_s or 0.0) * (1.0 + 0.1 * draw.random()))

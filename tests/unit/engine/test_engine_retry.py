"""Retries: which errors, how often, how long, and what is noted."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fake_clock import FakeClock
from snellen.core.errors import ModelError, StopRun
from snellen.core.protocols import EncodedImages
from snellen.core.types import FailureKind, Params, Prediction, Request, TrialKey, Turn
from snellen.engine.flow import Limiter
from snellen.engine.limits import Policy
from snellen.engine.loop import Retrier, _limit_s

REQUEST = Request(TrialKey("t", "s"), (Turn("user", "?"),))


def ask(errors: list[ModelError | None], **policy: object) -> tuple[Prediction, int, list[ModelError], float]:
    """Answer after the given errors; return prediction, calls, notes and seconds waited."""
    clock, notes, calls = FakeClock(), [], 0

    async def call(request: Request, images: EncodedImages) -> Prediction:
        nonlocal calls
        error = errors[calls] if calls < len(errors) else None
        calls += 1
        if error is not None:
            raise error
        return Prediction(request.key, text="ok")

    async def run() -> Prediction:
        limiter = Limiter(4, 10**6, clock)
        return await Retrier(call, Policy(**policy), limiter, clock, lambda _, error: notes.append(error)).predict(
            REQUEST, {}
        )

    started = clock.now
    return asyncio.run(run()), calls, notes, clock.now - started


def server_error(**options: object) -> ModelError:
    return ModelError(FailureKind.SERVER, "boom", status=500, retryable=True, **options)


def test_a_retryable_error_is_tried_again_and_noted() -> None:
    prediction, calls, notes, waited = ask([server_error(), server_error()])
    assert (prediction.text, calls, len(notes)) == ("ok", 3, 2)
    assert 0.5 * 0.5 + 0.5 * 1.0 <= waited <= 1.5 * 0.5 + 1.5 * 1.0


def test_attempts_are_bounded_and_end_in_a_typed_failure() -> None:
    prediction, calls, _, _ = ask([server_error()] * 99, max_retries=3)
    assert calls == 4
    assert prediction.failure is not None
    assert (prediction.failure.kind, prediction.failure.attempts, prediction.failure.status) == (
        FailureKind.SERVER,
        4,
        500,
    )


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_a_final_error_is_asked_exactly_once(status: int) -> None:
    prediction, calls, _, waited = ask([ModelError(FailureKind.REQUEST, "no", status=status)])
    assert (calls, waited) == (1, 0.0)
    assert prediction.failure is not None


def test_only_our_own_transport_is_asked_again_without_a_rest_and_only_once() -> None:
    at_once = ModelError(FailureKind.NETWORK, "a copy", retryable=True, retry_after_s=0.0)
    assert ask([at_once])[1:] == (2, [at_once], 0.0), "noted like any other, without a wait"
    assert ask([at_once, at_once])[3] >= 0.5, "the second time it rests"
    assert ask([server_error(retry_after_s=0.0)])[3] >= 0.25, "a server that says `at once` is not hammered"


def test_retry_after_is_the_least_wait() -> None:
    _, _, _, waited = ask([ModelError(FailureKind.RATE, "slow down", status=429, retryable=True, retry_after_s=20.0)])
    assert waited >= 20.0


@pytest.mark.parametrize("asked_s", [1e9, 1e308, 2.5e11])
def test_a_rest_that_never_ends_is_bounded_and_told(asked_s: float) -> None:
    slow = ModelError(FailureKind.RATE, "slow down", status=429, retryable=True, retry_after_s=asked_s)
    prediction, _, notes, waited = ask([slow])
    assert prediction.text == "ok"
    assert 300.0 <= waited <= 400.0
    assert "Retry-After asks for" in str(notes[0]) and "after 300 s" in str(notes[0])


def test_a_timeout_is_what_was_given_and_a_stream_gets_a_little_more() -> None:
    assert _limit_s(0.5, REQUEST) == 0.5
    assert _limit_s(None, REQUEST) is None
    stream = msgspec.structs.replace(REQUEST, params=Params(stream=True))
    assert [_limit_s(seconds, stream) for seconds in (0.5, 600.0)] == [0.525, 601.0]


def test_stop_run_is_not_swallowed() -> None:
    with pytest.raises(StopRun):
        ask([StopRun(FailureKind.AUTH, "key")])


def test_a_call_that_never_returns_is_a_timeout() -> None:
    async def hang(request: Request, images: EncodedImages) -> Prediction:
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> Prediction:
        clock = FakeClock()
        policy = Policy(timeout_s=0.01, max_retries=0)
        return await Retrier(hang, policy, Limiter(1, 10, clock), clock, lambda *_: None).predict(REQUEST, {})

    prediction = asyncio.run(run())
    assert prediction.failure is not None
    assert prediction.failure.kind is FailureKind.TIMEOUT


def test_503_with_retry_after_pauses_the_whole_pool_and_without_it_does_not() -> None:
    def paused(error: ModelError) -> float:
        clock = FakeClock()
        limiter = Limiter(4, 10**6, clock)

        async def call(request: Request, images: EncodedImages) -> Prediction:
            raise error

        asyncio.run(Retrier(call, Policy(max_retries=0), limiter, clock, lambda *_: None).predict(REQUEST, {}))
        return max(0.0, limiter.paused_until - clock.now)

    busy = {"status": 503, "retryable": True}
    assert paused(ModelError(FailureKind.SERVER, "busy", retry_after_s=7.0, **busy)) == 7.0
    assert paused(ModelError(FailureKind.SERVER, "busy", **busy)) == 0.0
    assert paused(ModelError(FailureKind.SERVER, "broken", status=500, retryable=True, retry_after_s=7.0)) == 0.0


def test_another_ones_pause_holds_for_retries_too() -> None:
    clock = FakeClock()
    limiter, sent = Limiter(4, 10**6, clock), []

    async def call(request: Request, images: EncodedImages) -> Prediction:
        sent.append(clock.now)
        if len(sent) == 1:
            raise server_error()
        return Prediction(request.key, text="ok")

    async def run() -> None:
        await Retrier(call, Policy(), limiter, clock, lambda *_: limiter.throttle(60.0)).predict(REQUEST, {})

    asyncio.run(run())
    assert sent[1] - sent[0] >= 60.0


def test_a_request_may_have_its_own_timeout_unless_waiting_is_no_fault() -> None:
    from snellen.core.types import Params

    assert Policy(timeout_s=5.0).timeout_of(Params()) == 5.0
    assert Policy(timeout_s=5.0).timeout_of(Params(timeout_s=2.0)) == 2.0
    assert Policy(timeout_s=None).timeout_of(Params(timeout_s=2.0)) is None

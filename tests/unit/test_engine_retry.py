"""Retries: which errors, how often, how long, and what is noted."""

from __future__ import annotations

import asyncio

import pytest

from fake_clock import FakeClock
from snellen.core.errors import ModelError, StopRun
from snellen.core.types import FailureKind, Prediction, Request, TrialKey, Turn
from snellen.engine.limit import Limiter
from snellen.engine.policy import ErrorBudget, Policy
from snellen.engine.retry import Retrier

REQUEST = Request(TrialKey("t", "s"), (Turn("user", "?"),))


def ask(errors: list[ModelError | None], **policy: object) -> tuple[Prediction, int, list[ModelError], float]:
    """Answer after the given errors; return prediction, calls, notes and seconds waited."""
    clock, notes, calls = FakeClock(), [], 0

    async def call(request: Request) -> Prediction:
        nonlocal calls
        error = errors[calls] if calls < len(errors) else None
        calls += 1
        if error is not None:
            raise error
        return Prediction(request.key, text="ok")

    async def run() -> Prediction:
        limiter = Limiter(4, 10**6, clock)
        return await Retrier(call, Policy(**policy), limiter, clock, lambda _, error: notes.append(error)).predict(REQUEST)

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
    assert (prediction.failure.kind, prediction.failure.attempts, prediction.failure.status) == (FailureKind.SERVER, 4, 500)


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_a_final_error_is_asked_exactly_once(status: int) -> None:
    prediction, calls, _, waited = ask([ModelError(FailureKind.REQUEST, "no", status=status)])
    assert (calls, waited) == (1, 0.0)
    assert prediction.failure is not None


def test_retry_after_is_the_least_wait() -> None:
    _, _, _, waited = ask([ModelError(FailureKind.RATE, "slow down", status=429, retryable=True, retry_after_s=20.0)])
    assert waited >= 20.0


def test_stop_run_is_not_swallowed() -> None:
    with pytest.raises(StopRun):
        ask([StopRun(FailureKind.AUTH, "key")])


def test_the_total_deadline_ends_the_attempts() -> None:
    prediction, calls, _, waited = ask([server_error()] * 99, max_retries=99, deadline_s=10.0)
    assert prediction.failure is not None
    assert waited < 10.0
    assert calls < 10


def test_a_call_that_never_returns_is_a_timeout() -> None:
    async def hang(request: Request) -> Prediction:
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> Prediction:
        clock = FakeClock()
        policy = Policy(timeout_s=-0.99, max_retries=0)
        return await Retrier(hang, policy, Limiter(1, 10, clock), clock, lambda *_: None).predict(REQUEST)

    prediction = asyncio.run(run())
    assert prediction.failure is not None
    assert prediction.failure.kind is FailureKind.TIMEOUT


def test_error_budgets() -> None:
    assert ErrorBudget.parse("3").exceeded(4, 10)
    assert not ErrorBudget.parse("3").exceeded(3, 10)
    assert ErrorBudget.parse("5%").exceeded(11, 200)
    assert not ErrorBudget.parse("5%").exceeded(50, 99)
    with pytest.raises(Exception, match="max-errors"):
        ErrorBudget.parse("many")


def test_the_worst_case_is_a_real_bound() -> None:
    policy = Policy(max_workers=2, max_retries=1, timeout_s=10.0)
    assert policy.worst_case_s(4) == pytest.approx(2 * (2 * 10.0 + 0.5))

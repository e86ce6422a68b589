"""The one place where a model is called: our own errors pass, all others become one typed failure."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from line_doubles import Scripted, ScriptedBatch, jobs, work
from snellen.core.errors import ConfigError, ModelError, StopRun
from snellen.core.types import FailureKind, Request, TrialKey
from snellen.engine.call import call_model, failed


def called(error: BaseException) -> BaseException:
    async def call(number: int) -> int:
        raise error

    with pytest.raises(type(error) if isinstance(error, OURS) else ModelError) as caught:
        asyncio.run(call_model(call, 1))
    return caught.value


OURS = (ModelError, TimeoutError, ConfigError, asyncio.CancelledError)


@pytest.mark.parametrize(
    "error",
    [ModelError(FailureKind.RATE, "slow"), StopRun(FailureKind.AUTH, "no"), TimeoutError(), ConfigError("wrong")],
)
def test_what_the_engine_knows_passes_as_it_is(error: Exception) -> None:
    assert called(error) is error


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyError("choices"), MemoryError(), OSError("gone")])
def test_anything_else_is_a_typed_failure_that_names_it(error: Exception) -> None:
    typed = called(error)
    assert isinstance(typed, ModelError)
    assert (typed.kind, typed.retryable, typed.__cause__) == (FailureKind.SERVER, False, error)
    assert type(error).__name__ in str(typed)


def test_a_call_that_fails_before_it_is_awaited_is_no_other() -> None:
    def call() -> object:
        raise ZeroDivisionError

    with pytest.raises(ModelError, match="ZeroDivisionError"):
        asyncio.run(call_model(call))  # type: ignore[arg-type]


def test_a_cancellation_is_no_failure() -> None:
    assert isinstance(called(asyncio.CancelledError()), asyncio.CancelledError)


@pytest.mark.parametrize("model", [Scripted, ScriptedBatch])
def test_one_alone_and_a_batch_fail_with_the_same_words(tmp_path: Path, model: type[Scripted]) -> None:
    def raised(*_: object) -> object:
        raise RuntimeError("boom")

    engine = work(tmp_path, model(raised), jobs(3))  # type: ignore[arg-type]
    assert engine.state.failures == {"server": 3}
    assert engine.state.last_error == "the model raised RuntimeError: boom"


def test_a_failure_keeps_what_is_known_of_it() -> None:
    error = ModelError(FailureKind.SERVER, "bad \ud800 gateway", status=502, detail={"partial": "A"})
    prediction = failed(Request(TrialKey("t", "s"), ()), error, 3)
    assert prediction.failure is not None
    assert (prediction.failure.status, prediction.failure.attempts, prediction.detail) == (502, 3, {"partial": "A"})
    prediction.failure.message.encode()  # whatever a server wrote can be stored


def test_a_model_that_lacks_a_member_is_refused_by_its_name(tmp_path: Path) -> None:
    class Old(ScriptedBatch):
        cacheable = property()

        def __getattribute__(self, name: str) -> object:
            if name in ("prefetch", "cacheable"):
                raise AttributeError(name)
            return super().__getattribute__(name)

    with pytest.raises(ConfigError, match="lacks cacheable, prefetch: see"):
        work(tmp_path, Old(lambda requests: []), jobs(1))

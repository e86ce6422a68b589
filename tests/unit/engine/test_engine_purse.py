"""A budget of requests: not one more leaves, whatever is in flight, tried again or cached; what was paid for is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_clock import FakeClock
from line_doubles import Scripted, header, jobs
from snellen.core.errors import ModelError
from snellen.core.types import FailureKind, Prediction, Request
from snellen.engine.loop import Engine
from snellen.engine.policy import Policy
from snellen.engine.purse import BudgetSpentError, Purse
from snellen.store.cache import ResponseCache
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter


def spend(folder: Path, model: Scripted, purse: Purse, count: int, cache: ResponseCache | None = None) -> Engine:
    async def go() -> Engine:
        writer = RunWriter(folder, header())
        engine = Engine(model, writer, Policy(max_workers=32, max_retries=2), FakeClock(), cache=cache, purse=purse)
        try:
            await engine.run(jobs(count))
        finally:
            writer.close()
        return engine

    return asyncio.run(go())


def stored(folder: Path) -> int:
    with RunReader(folder) as reader:
        return sum(1 for _ in reader.trials("t"))


@settings(max_examples=25)
@given(
    most=st.integers(1, 60),
    count=st.integers(1, 60),
    shaky=st.sets(st.integers(0, 59)),
    turns=st.integers(0, 3),
)
def test_never_more_requests_than_the_budget(
    tmp_path_factory: pytest.TempPathFactory, most: int, count: int, shaky: set[int], turns: int
) -> None:
    tried: set[str] = set()

    async def answer(request: Request) -> Prediction:
        for _ in range(turns):
            await asyncio.sleep(0)  # many are in flight at once
        sample = request.key.sample
        if int(sample[1:]) in shaky and sample not in tried:
            tried.add(sample)
            raise ModelError(FailureKind.SERVER, "boom", status=500, retryable=True)
        return Prediction(request.key, text="ok")

    folder, model, purse = tmp_path_factory.mktemp("run"), Scripted(answer), Purse(most)
    spend(folder, model, purse, count)
    needed = count + len([number for number in shaky if number < count])
    assert len(model.asked) == purse.sent == min(most, needed)
    assert purse.held_back == (most < needed)
    assert stored(folder) == len(model.asked) - len(tried), "every answer that was paid for is kept"
    again = Purse()
    spend(folder, model, again, count)
    assert stored(folder) == count


def test_what_is_cached_costs_nothing(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "cache.db")
    spend(tmp_path / "one", Scripted(), Purse(), 20, cache)
    model, purse = Scripted(), Purse(1)
    spend(tmp_path / "two", model, purse, 21, cache)
    assert model.asked == ["s20"] and not purse.held_back and stored(tmp_path / "two") == 21
    cache.close()


def test_a_spent_purse_refuses_and_remembers() -> None:
    purse = Purse(1)
    purse.pay()
    assert not purse.held_back
    with pytest.raises(BudgetSpentError, match="budget of 1 requests is spent"):
        purse.pay()
    assert purse.held_back and purse.sent == 1

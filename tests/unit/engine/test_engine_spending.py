"""engine.spending: nothing leaves that could pass the limit, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import EnvironmentProblem
from snellen.core.types import Prediction, TrialKey, Usage
from snellen.engine.spending import LimitReached, Spending
from snellen.model.providers.prices import Prices

KEY = TrialKey("t", "s")
ONE = Prices(1e6, 0.0)
"""One unit of money a token."""


def reply(tokens: int) -> Prediction:
    return Prediction(KEY, text="x", usage=Usage(tokens, 0))


@asynccontextmanager
async def one_more(spending: Spending) -> AsyncIterator[None]:
    await spending.begin()
    try:
        yield
    finally:
        spending.end()


async def spend(spending: Spending, costs: list[int], workers: int) -> tuple[int, int]:
    """Ask with so many workers until the limit; return how many were asked, and the most that were out at once."""
    left, asked, out, most = list(costs), 0, 0, 0

    async def work() -> None:
        nonlocal asked, out, most
        while left:
            try:
                async with one_more(spending):
                    if not left:
                        return
                    cost = left.pop()
                    out += 1
                    most = max(most, out)
                    await asyncio.sleep(0)
                    spending.count(reply(cost))
                    out -= 1
                    asked += 1
            except LimitReached:
                return

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(workers))), 20)
    return asked, most


@given(st.integers(1, 40), st.integers(1, 10), st.integers(1, 8), st.integers(0, 300))
def test_equal_replies_use_the_limit_up_and_never_pass_it(count: int, cost: int, workers: int, limit: int) -> None:
    spending = Spending(ONE, float(limit), expected=float(cost))
    asked, _ = asyncio.run(spend(spending, [cost] * count, workers))
    assert spending.spent <= limit
    assert asked == min(count, limit // cost)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 200))
def test_uneven_replies_stay_within_when_the_dearest_was_expected(costs: list[int], workers: int, limit: int) -> None:
    spending = Spending(ONE, float(limit), expected=10.0)
    asyncio.run(spend(spending, costs, workers))
    assert spending.spent <= limit


def test_without_a_limit_nobody_waits() -> None:
    spending = Spending(ONE)
    assert asyncio.run(spend(spending, [5] * 20, 8)) == (20, 8)
    assert spending.spent == 100.0


def test_a_reply_without_tokens_ends_a_limited_run() -> None:
    async def go() -> None:
        spending = Spending(ONE, 10.0)
        async with one_more(spending):
            spending.count(Prediction(KEY, text="x"))
        async with one_more(spending):
            raise AssertionError("it must not go on")

    with pytest.raises(EnvironmentProblem, match="without --max-cost continues"):
        asyncio.run(go())


def test_a_batch_takes_one_more_only_while_all_that_wait_in_it_fit() -> None:
    spending = Spending(ONE, 10.0, 2.0)
    spending.count(reply(3))  # 7 are left, the dearest seen is 3
    assert spending.affords(1, 1.0)
    assert not spending.affords(2, 1.0)
    assert spending.affords(2, 0.5), "a batch at half the price holds more"
    assert Spending(ONE, None, 2.0).affords(10**6, 1.0)

"""engine.limits: nothing leaves that could pass a limit, nobody waits for ever, and what was paid for is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_clock import FakeClock
from line_doubles import Scripted, header, jobs
from snellen.core.errors import EnvironmentProblem, ModelError, UsageError
from snellen.core.types import FailureKind, Prediction, Request, TrialKey, Usage
from snellen.engine.limits import LimitReached, Limits, Policy
from snellen.engine.loop import Engine
from snellen.model.served.prices import Prices
from snellen.store.cache import ResponseCache
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

KEY = TrialKey("t", "s")
ONE = Prices(1e6, 0.0)
"""One unit of money a token."""


def ask(folder: Path, model: Scripted, limits: Limits, count: int, cache: ResponseCache | None = None) -> None:
    async def go() -> None:
        writer = RunWriter(folder, header())
        policy = Policy(max_workers=32, max_retries=2)
        try:
            await Engine(model, writer, policy, FakeClock(), cache=cache, limits=limits).run(jobs(count))
        finally:
            writer.close()

    asyncio.run(go())


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
def test_never_more_requests_than_the_limit(
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

    folder, model, limits = tmp_path_factory.mktemp("run"), Scripted(answer), Limits(requests=most)
    ask(folder, model, limits, count)
    needed = count + len([number for number in shaky if number < count])
    assert len(model.asked) == limits.sent == min(most, needed)
    assert bool(limits.reached) == (most < needed)
    assert stored(folder) == len(model.asked) - len(tried), "every answer that was paid for is kept"
    ask(folder, model, Limits(), count)
    assert stored(folder) == count


def test_what_is_cached_costs_nothing(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "cache.db")
    ask(tmp_path / "one", Scripted(), Limits(), 20, cache)
    model, limits = Scripted(), Limits(requests=1)
    ask(tmp_path / "two", model, limits, 21, cache)
    assert model.asked == ["s20"] and not limits.reached and stored(tmp_path / "two") == 21
    cache.close()


def reply(tokens: int, task: str = "t") -> Prediction:
    return Prediction(TrialKey(task, "s"), text="x", usage=Usage(tokens, 0))


@asynccontextmanager
async def one_more(limits: Limits) -> AsyncIterator[None]:
    await limits.begin("t")
    try:
        yield
    finally:
        limits.release("t")


async def spend(limits: Limits, costs: list[int], workers: int) -> tuple[int, int]:
    """Ask with so many workers until the limit; return how many were asked, and the most that were out at once."""
    left, asked, out, most = list(costs), 0, 0, 0

    async def work() -> None:
        nonlocal asked, out, most
        while left:
            try:
                async with one_more(limits):
                    if not left:
                        return
                    cost = left.pop()
                    out += 1
                    most = max(most, out)
                    await asyncio.sleep(0)
                    limits.count(reply(cost))
                    out -= 1
                    asked += 1
            except LimitReached:
                return

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(workers))), 20)
    return asked, most


@given(st.integers(1, 40), st.integers(1, 10), st.integers(1, 8), st.integers(0, 300))
def test_equal_replies_use_the_money_up_and_never_pass_it(count: int, cost: int, workers: int, limit: int) -> None:
    limits = Limits(money=float(limit), prices=ONE, expected=float(cost))
    asked, _ = asyncio.run(spend(limits, [cost] * count, workers))
    assert limits.spent <= limit
    assert asked == min(count, limit // cost)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 200))
def test_uneven_replies_stay_within_when_the_dearest_was_expected(costs: list[int], workers: int, limit: int) -> None:
    limits = Limits(money=float(limit), prices=ONE, expected=10.0)
    asyncio.run(spend(limits, costs, workers))
    assert limits.spent <= limit


@given(st.integers(1, 40), st.integers(1, 10), st.integers(1, 8), st.integers(10, 300))
def test_tokens_are_kept_within_as_money_is(count: int, cost: int, workers: int, limit: int) -> None:
    limits = Limits(tokens=limit)
    asked, _ = asyncio.run(spend(limits, [cost] * count, workers))
    assert limits.used_tokens <= limit and asked == min(count, limit // cost)


def test_without_a_limit_nobody_waits() -> None:
    limits = Limits(prices=ONE)
    assert asyncio.run(spend(limits, [5] * 20, 8)) == (20, 8)
    assert limits.spent == 100.0


@pytest.mark.parametrize(("limits", "flag"), [({"money": 10.0}, "--max-cost"), ({"tokens": 10}, "--budget")])
def test_a_reply_without_tokens_ends_a_limited_run(limits: dict[str, int], flag: str) -> None:
    async def go() -> None:
        limited = Limits(prices=ONE, **limits)  # type: ignore[arg-type] - one of each type
        async with one_more(limited):
            limited.count(Prediction(KEY, text="x"))
        async with one_more(limited):
            raise AssertionError("it must not go on")

    with pytest.raises(EnvironmentProblem, match=f"without {flag} continues"):
        asyncio.run(go())


def test_a_free_reply_is_known_to_be_free() -> None:
    async def go() -> tuple[int, int]:
        limits = Limits(money=100.0, prices=Prices())
        limits.count(reply(1))
        return await spend(limits, [1] * 4, 4)

    assert asyncio.run(go()) == (4, 4)


def test_a_batch_takes_one_more_only_while_all_that_wait_in_it_fit() -> None:
    limits = Limits(money=10.0, prices=ONE, expected=2.0)
    limits.count(reply(3))  # 7 are left, the dearest seen is 3
    limits.check_batch(1, 1.0)
    limits.check_batch(2, 0.5)  # a batch at half the price holds more
    assert not limits.reached
    with pytest.raises(LimitReached):
        limits.check_batch(2, 1.0)
    assert limits.reached
    Limits(prices=ONE, expected=2.0).check_batch(10**6, 1.0)


def test_a_round_is_asked_whole_or_not_at_all_and_gives_back_what_it_did_not_use() -> None:
    async def go() -> None:
        limits = Limits(money=10.0, prices=ONE, expected=1.0)
        await limits.reserve_round("t", 8)
        for _ in range(3):
            async with one_more(limits):  # taken from the round
                limits.count(reply(1))
        waiting = asyncio.create_task(limits.reserve_round("t", 7))
        await asyncio.sleep(0)
        assert not waiting.done(), "five of the first round may still come"
        limits.end_round("t")
        await waiting
        with pytest.raises(LimitReached, match="10 in money"):
            limits.end_round("t")
            await limits.reserve_round("t", 8)

    asyncio.run(go())


def test_a_task_counts_by_its_own_dearest_reply() -> None:
    async def go() -> None:
        limits = Limits(tokens=100)
        limits.count(reply(40, "dear"))
        limits.count(reply(1, "cheap"))
        await limits.reserve_round("cheap", 50)
        with pytest.raises(LimitReached):
            limits.end_round("cheap")
            await limits.reserve_round("dear", 2)

    asyncio.run(go())


def test_whoever_waits_hears_that_it_is_over() -> None:
    async def go() -> Limits:
        limits = Limits(requests=8)
        await limits.reserve_round("a", 8)
        waiting = asyncio.create_task(limits.reserve_round("b", 1))
        await asyncio.sleep(0)
        limits.close("interrupted")
        with pytest.raises(LimitReached, match="interrupted"):
            await waiting
        return limits

    assert not asyncio.run(go()).reached, "nobody's limit was reached"


def test_errors_count_strictly_and_shares_only_after_a_hundred() -> None:
    assert not Limits().has_too_many_errors(10**6, 10**6)
    assert not Limits(errors="3").has_too_many_errors(3, 10)
    assert Limits(errors="3").has_too_many_errors(4, 10)
    assert not Limits(errors="10%").has_too_many_errors(50, 99)
    assert not Limits(errors="10%").has_too_many_errors(10, 100)
    assert Limits(errors="10%").has_too_many_errors(11, 100)
    assert Limits(errors="0").has_too_many_errors(1, 1)
    for wrong in ("many", "-1", "nan%", "inf%", "-5%"):
        with pytest.raises(UsageError, match="--max-errors"):
            Limits(errors=wrong)

"""Adaptive concurrency, bytes in flight and pauses, on a clock that does not wait."""

from __future__ import annotations

import asyncio
import random

import pytest

from fake_clock import FakeClock
from snellen.engine.flow import Limiter


async def is_in(waiting: asyncio.Task[None]) -> bool:
    """Whether a request was let in, once everything that could run has run."""
    for _ in range(10):
        await asyncio.sleep(0)
    return waiting.done() and not waiting.cancelled()


def test_slow_start_doubles_until_the_maximum() -> None:
    async def grow() -> list[int]:
        limiter, seen = Limiter(64, 10**9, FakeClock()), []
        for _ in range(6):
            width = limiter.slots
            for _ in range(width):
                await limiter.acquire(1)
            for _ in range(width):
                limiter.release(1)
            seen.append(limiter.slots)
        return seen

    assert asyncio.run(grow())[-1] == 64


def test_bytes_bound_what_is_in_flight_and_a_giant_goes_alone() -> None:
    async def check() -> list[bool]:
        limiter = Limiter(8, 100, FakeClock(), adaptive=False)
        await limiter.acquire(60)
        second = asyncio.create_task(limiter.acquire(60))
        seen = [await is_in(second)]
        limiter.release(60)
        seen.append(await is_in(second))
        giant = asyncio.create_task(limiter.acquire(1_000))
        seen.append(await is_in(giant))
        limiter.release(60)
        seen.append(await is_in(giant))
        small = asyncio.create_task(limiter.acquire(1))
        seen.append(await is_in(small))
        limiter.release(1_000)
        return [*seen, await is_in(small)]

    assert asyncio.run(check()) == [False, True, False, True, False, True]


def test_a_cancelled_waiter_gives_its_slot_back() -> None:
    async def check() -> tuple[bool, bool, bool]:
        limiter = Limiter(1, 100, FakeClock(), adaptive=False)
        await limiter.acquire(1)
        waiting = asyncio.create_task(limiter.acquire(1))
        before = await is_in(waiting)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        limiter.release(1)
        next_one, one_more = (asyncio.create_task(limiter.acquire(1)) for _ in range(2))
        return before, await is_in(next_one), await is_in(one_more)

    assert asyncio.run(check()) == (False, True, False), "the slot is given back once, not twice"


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_sent_inside_a_retry_after_window(seed: int) -> None:
    draw = random.Random(seed)

    async def episodes() -> list[float]:
        clock = FakeClock()
        limiter, early = Limiter(16, 10**9, clock), []
        window_end = 0.0

        async def worker() -> None:
            nonlocal window_end
            for _ in range(30):
                await limiter.acquire(1)
                early.append(min(0.0, clock.now - window_end))
                await clock.sleep(draw.uniform(0.01, 0.2))
                if draw.random() < 0.05:
                    wait = draw.uniform(0.5, 5)
                    window_end = max(window_end, clock.now + wait)
                    limiter.throttle(wait)
                limiter.release(1)

        await asyncio.gather(*(worker() for _ in range(40)))
        return early

    assert min(asyncio.run(episodes())) == 0.0


async def simulate(cap_at: dict[float, int], until: float, *, max_slots: int = 256) -> list[tuple[float, int, bool]]:
    """Run a server that refuses above a cap; return (time, slots, refused) of every request."""
    clock = FakeClock(0.0)
    limiter, active, log = Limiter(max_slots, 10**9, clock), 0, []

    async def worker() -> None:
        nonlocal active
        while clock.now < until:
            await limiter.acquire(1)
            cap = next(cap for start, cap in sorted(cap_at.items(), reverse=True) if clock.now >= start)
            refused = active >= cap
            log.append((clock.now, limiter.slots, refused))
            if refused:
                limiter.throttle(None)
                await clock.sleep(0.5)
            else:
                active += 1
                await clock.sleep(0.2)
                active -= 1
            limiter.release(1, saturated=not refused)

    await asyncio.gather(*(worker() for _ in range(max_slots)))
    return log


def test_the_limit_finds_a_server_capped_at_40_and_follows_it_down_to_10() -> None:
    log = asyncio.run(simulate({0.0: 40, 60.0: 10}, 100.0))
    before = [row for row in log if row[0] < 60]
    late = [slots for at, slots, _ in before if at > 30]
    assert sum(refused for _, _, refused in before) / len(before) <= 0.02
    assert sum(late) / len(late) >= 0.75 * 40
    settled = [slots for at, slots, _ in log if at > 90]
    assert sum(settled) / len(settled) <= 12


def test_exactly_as_many_slots_and_bytes_as_allowed() -> None:
    async def check() -> None:
        limiter = Limiter(2, 100, FakeClock(), adaptive=False)
        await asyncio.wait_for(limiter.acquire(50), 1)
        await asyncio.wait_for(limiter.acquire(50), 1)  # the budget is full to the last byte, and no fuller
        third = asyncio.create_task(limiter.acquire(0))
        await asyncio.sleep(0)
        assert not third.done()
        limiter.release(50)
        await asyncio.wait_for(third, 1)

    asyncio.run(check())


def test_one_cut_for_one_wave_of_refusals_and_another_after_the_rest() -> None:
    async def check() -> list[int]:
        clock = FakeClock()
        limiter, seen = Limiter(100, 10**9, clock, adaptive=False), []
        for _ in range(100):
            await limiter.acquire(1)
        for wait_s in (0.0, 1.0, 5.0):
            clock.now += wait_s
            limiter.throttle(None)
            seen.append(limiter.slots)
        return seen

    assert asyncio.run(check()) == [80, 80, 64]


def test_a_long_retry_after_is_also_a_long_rest() -> None:
    async def check() -> list[int]:
        clock = FakeClock()
        limiter, seen = Limiter(100, 10**9, clock, adaptive=False), []
        for _ in range(100):
            await limiter.acquire(1)
        for wait_s in (0.0, 20.0, 11.0):
            clock.now += wait_s
            limiter.throttle(30.0)
            seen.append(limiter.slots)
        return seen

    assert asyncio.run(check()) == [80, 80, 64]


def test_the_limit_does_not_grow_while_it_is_not_used() -> None:
    async def check() -> int:
        limiter = Limiter(64, 10**9, FakeClock())
        for _ in range(100):
            await limiter.acquire(1)
            limiter.release(1)
        return limiter.slots

    assert asyncio.run(check()) == 8


def test_one_cancelled_in_a_pause_gives_its_slot_back() -> None:
    class Stopped(FakeClock):
        """A clock on which nobody's sleep ends."""

        async def sleep(self, seconds: float) -> None:
            await asyncio.get_running_loop().create_future()

    async def check() -> tuple[bool, bool, bool]:
        clock = Stopped()
        limiter = Limiter(1, 100, clock, adaptive=False)
        limiter.throttle(30.0)
        waiting = asyncio.create_task(limiter.acquire(60))
        paused = await is_in(waiting)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        clock.now += 31.0
        next_one, one_more = (asyncio.create_task(limiter.acquire(60)) for _ in range(2))
        return paused, await is_in(next_one), await is_in(one_more)

    assert asyncio.run(check()) == (False, True, False), "slot and bytes are given back once, not twice"

"""One timer for many attempts: each ends at its own time, and a cancellation from outside stays one."""

from __future__ import annotations

import asyncio

import pytest

from snellen.engine.loop import Deadlines


async def forever() -> str:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def at_once() -> str:
    await asyncio.sleep(0)
    return "done"


def test_what_is_in_time_returns_and_leaves_nothing() -> None:
    async def main() -> None:
        deadlines = Deadlines()
        assert await deadlines.within(60.0, at_once()) == "done"
        assert await deadlines.within(None, at_once()) == "done"
        assert not deadlines._ends
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    asyncio.run(main())


def test_each_is_cut_off_at_its_own_time() -> None:
    async def main() -> list[tuple[int, bool]]:
        deadlines, cut_off, clock = Deadlines(), [], asyncio.get_running_loop().time

        async def ask(number: int, seconds: float) -> None:
            started = clock()
            with pytest.raises(TimeoutError):
                await deadlines.within(seconds, forever())
            cut_off.append((number, clock() - started >= seconds))
            assert await deadlines.within(60.0, at_once()) == "done"  # the task goes on as if nothing had been

        late = asyncio.create_task(ask(3, 60.0))
        await asyncio.gather(ask(2, 0.02), ask(1, 0.01), ask(0, -1.0))
        assert not late.done()
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        return cut_off

    cut_off = asyncio.run(main())
    assert sorted(cut_off) == [(0, True), (1, True), (2, True)], "none before its time"
    assert cut_off[0][0] == 0, "what is overdue is cut off first"  # 1 and 2 may be late together on a busy machine


def test_a_cancellation_from_outside_is_no_timeout_even_when_both_come() -> None:
    async def main() -> None:
        deadlines = Deadlines()
        task = asyncio.create_task(deadlines.within(-1.0, forever()))
        await asyncio.sleep(0)
        deadlines._cut_off(asyncio.get_running_loop())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_work_that_swallows_its_cancellation_returns_what_it_has() -> None:
    async def stubborn() -> str:
        try:
            return await forever()
        except asyncio.CancelledError:
            return "partial"

    async def main() -> None:
        assert await Deadlines().within(-1.0, stubborn()) == "partial"
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    asyncio.run(main())

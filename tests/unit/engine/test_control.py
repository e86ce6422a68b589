"""What is wished of a run that goes on: heard once, answered, forgotten when the run ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from snellen.core.clock import SystemClock
from snellen.engine.control import STATE, WISH, Wish, listening, read_state, read_wish, write_whole
from snellen.engine.flow import Limiter, RateLimit


class Told:
    def __init__(self) -> None:
        self.wishes: list[Wish] = []

    def adjust(self, wish: Wish) -> dict[str, Any]:
        self.wishes.append(wish)
        return {"paused": wish.paused}


def test_a_wish_is_heard_once_and_an_old_one_never(tmp_path: Path) -> None:
    write_whole(tmp_path / WISH, Wish(9, paused=True))

    async def go() -> Told:
        told = Told()
        with listening(tmp_path, told):
            assert read_wish(tmp_path) is None, "an earlier run's wish is forgotten"
            (tmp_path / WISH).write_text("{half")
            write_whole(tmp_path / WISH, Wish(1, paused=True))
            while read_state(tmp_path).get("number") != 1:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
        return told

    told = asyncio.run(go())
    assert told.wishes == [Wish(1, paused=True)]
    assert not (tmp_path / WISH).exists()
    assert not (tmp_path / STATE).exists()


def test_nothing_leaves_while_paused_and_what_waited_leaves_then() -> None:
    async def go() -> None:
        limiter = Limiter(2, 1 << 20, SystemClock(), adaptive=False)
        limiter.pause()
        waiting = [asyncio.create_task(limiter.acquire(1)) for _ in range(3)]
        await asyncio.sleep(0.02)
        assert limiter.active == 0
        limiter.resume()
        await asyncio.wait(waiting, timeout=1, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        assert limiter.active == 2
        limiter.set_slots(3)
        await asyncio.wait_for(asyncio.gather(*waiting), 1)

    asyncio.run(go())


def test_a_rate_is_changed_for_what_comes() -> None:
    rate = RateLimit(2.0, SystemClock())
    rate.set(50.0)
    assert rate.per_second == 50.0

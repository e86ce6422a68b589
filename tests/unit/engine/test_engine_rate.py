"""Requests a second: evenly spaced, retries counted, nothing caught up; on a clock that does not wait."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from line_doubles import Scripted, jobs, work
from snellen.core.errors import FailureKind, ModelError
from snellen.core.types import Prediction, Request
from snellen.engine.flow import RateLimit


@given(st.floats(0.1, 1000.0), st.lists(st.floats(0.0, 3.0), min_size=2, max_size=12))
def test_no_two_moments_are_nearer_than_the_rate_allows(rate: float, rests: list[float]) -> None:
    async def leave() -> list[float]:
        clock = FakeClock()
        pace, moments = RateLimit(rate, clock), []
        for rest in rests:
            await clock.sleep(rest)
            await pace.turn()
            moments.append(clock.now)
        return moments

    moments = asyncio.run(leave())
    assert all(later - sooner >= 1 / rate * (1 - 1e-9) for sooner, later in pairwise(moments))


def test_many_at_once_leave_one_after_another() -> None:
    async def leave() -> list[float]:
        clock = FakeClock(0.0)
        pace, moments = RateLimit(4.0, clock), []

        async def one() -> None:
            await pace.turn()
            moments.append(clock.now)

        await asyncio.gather(*(one() for _ in range(5)))
        return moments

    assert asyncio.run(leave()) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_retries_count_and_the_run_takes_its_time(tmp_path: Path) -> None:
    moments: list[float] = []
    clocks: list[FakeClock] = []

    async def answer(request: Request) -> Prediction:
        moments.append(clocks[0].now)
        if len(moments) == 1:
            raise ModelError(FailureKind.SERVER, "busy", retryable=True)
        return Prediction(request.key, text="a")

    work(
        tmp_path,
        Scripted(answer),
        jobs(6),
        prepare=lambda engine: clocks.append(engine._clock),  # type: ignore[arg-type]
        per_second=2.0,
        max_retries=1,
    )
    assert len(moments) == 7
    assert all(later - sooner >= 0.5 - 1e-9 for sooner, later in pairwise(moments))

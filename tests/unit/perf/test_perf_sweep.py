"""The search finds a known knee, in few steps, and says what it could not know."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.errors import UsageError
from snellen.perf.sweep import Point, conclude, judge, next_load, search, sweep_table
from snellen.perf.timeline import RequestRecord, Timeline


def server(knee: float, asked: list[float], limited_above: float = math.inf):
    async def measure(load: float) -> Point:
        asked.append(load)
        meets = load <= knee
        return Point(
            load, min(load, knee), 1.0 if meets else 0.2, 1.0, meets, {}, "too slow" if load > limited_above else ""
        )

    return measure


@settings(deadline=None)
@given(st.floats(0.5, 3000), st.sampled_from([0.02, 0.05, 0.1]))
def test_the_knee_is_found_within_the_precision(knee: float, precision: float) -> None:
    asked: list[float] = []
    points = asyncio.run(search(server(knee, asked), first=1.0, ceiling=4096, precision=precision))
    best = conclude(points, "requests/s", {"ttft": 1.0}, 0.9).best
    assert best is not None
    assert knee / (1 + precision) <= best <= knee
    assert len(asked) <= 22


@given(st.integers(1, 500))
def test_whole_numbers_are_found_exactly_enough(knee: int) -> None:
    asked: list[float] = []
    points = asyncio.run(search(server(knee, asked), first=1.0, ceiling=512, precision=0.01, whole=True))
    best = conclude(points, "concurrent requests", {"ttft": 1.0}, 0.9).best
    assert best is not None
    assert knee / 1.02 <= best <= knee
    assert all(load == int(load) for load in asked)


def test_no_load_is_good_enough() -> None:
    asked: list[float] = []
    points = asyncio.run(search(server(0.0, asked), first=64.0, ceiling=128))
    found = conclude(points, "requests/s", {"ttft": 1.0}, 0.9)
    assert (found.best, found.lowest_failing) == (None, min(asked))
    assert min(asked) < 64


def test_the_ceiling_is_said() -> None:
    points = asyncio.run(search(server(1e9, []), first=1.0, ceiling=16))
    found = conclude(points, "requests/s", {"ttft": 1.0}, 0.9)
    assert found.best == 16
    assert "ceiling" in found.note


def test_a_limited_generator_is_said() -> None:
    points = asyncio.run(search(server(100, [], limited_above=50), first=1.0, ceiling=256))
    assert "bottleneck" in conclude(points, "requests/s", {"ttft": 1.0}, 0.9).note


def test_wrong_bounds() -> None:
    with pytest.raises(UsageError, match="start"):
        asyncio.run(search(server(1, []), first=2.0, ceiling=1.0))
    assert next_load(1.0, 1.04, 1.0, 9.0, 0.05, whole=False) is None


def open_loop(rate: float, capacity: float, count: int = 300) -> Timeline:
    """One server that takes 1/capacity seconds a request, first come first served."""
    free, records = 0.0, []
    for number in range(count):
        due = number / rate
        begin = max(due, free)
        free = begin + 1 / capacity
        records.append(
            RequestRecord(str(number), due, free, scheduled=due, chunks=(free,), first_content=free, output_tokens=1)
        )
    return Timeline(requests=tuple(records), load={"due": [record.sent for record in records]})


def test_an_overloaded_open_loop_fails_on_its_queue_alone() -> None:
    calm = judge(open_loop(9, 10), 9, {"itl": 1.0}, 0.9)
    flooded = judge(open_loop(12, 10), 12, {"itl": 1.0}, 0.9)
    assert (calm.meets, flooded.meets) == (True, False)
    assert calm.keeping_up == pytest.approx(1.0, abs=0.02)
    assert flooded.keeping_up < 0.9
    assert flooded.good_share == 1.0


def test_rows_for_tables() -> None:
    point = judge(open_loop(5, 10), 5, {"ttft": 1.0}, 0.9)
    row = sweep_table(conclude([point], "requests/s", {"ttft": 1.0}, 0.9))[0]
    assert row["TTFT P99"] == pytest.approx(0.1)
    assert row["meets"] is True

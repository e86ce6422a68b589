"""Schedules are pure: equal seeds, equal moments; rates and shapes are what was asked for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import UsageError
from snellen.perf.arrivals import Arrivals, planned_rate, replayed, slot_starts


def test_constant_and_ramps_by_hand() -> None:
    assert Arrivals(10, burstiness=0).moments(5) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    linear = Arrivals(5, burstiness=0, ramp="linear", ramp_from=1).moments(5)
    assert linear == pytest.approx([1, 1.5, 1.8333333, 2.0833333, 2.2833333])
    exponential = Arrivals(16, burstiness=0, ramp="exponential", ramp_from=1).moments(5)
    assert exponential == pytest.approx([1, 1.5, 1.75, 1.875, 1.9375])


@given(st.integers(0, 10**6), st.floats(0.5, 500), st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_equal_seeds_give_equal_times_and_order(seed: int, rate: float, burstiness: float) -> None:
    first, again = (Arrivals(rate, burstiness, seed=seed).moments(50) for _ in range(2))
    assert first == again
    assert all(a <= b for a, b in pairwise(first))


@pytest.mark.parametrize(("burstiness", "variation"), [(0.25, 2.0), (1.0, 1.0), (4.0, 0.5)])
def test_mean_rate_and_burstiness(burstiness: float, variation: float) -> None:
    moments = Arrivals(20, burstiness, seed=3).moments(20_000)
    gaps = [b - a for a, b in pairwise([0.0, *moments])]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.05, rel=0.05)
    assert spread / mean == pytest.approx(variation, rel=0.05)


def test_a_duration_is_never_exceeded_and_filled() -> None:
    moments = Arrivals(100, seed=1).moments_until(5)
    assert max(moments) <= 5 + 1e-6
    assert len(moments) == pytest.approx(500, rel=0.15)
    ramp = Arrivals(100, burstiness=0, ramp="linear", ramp_from=1).moments_until(10)
    assert sum(moment > 5 for moment in ramp) > 2 * sum(moment <= 5 for moment in ramp)


def test_replay_starts_at_zero_keeps_order_and_speed() -> None:
    assert replayed([2.1, 2.0, 2.2], speed=2) == pytest.approx([0.0, 0.05, 0.1])


def test_slots_open_together_or_over_a_ramp() -> None:
    assert slot_starts(3) == [0, 0, 0]
    assert slot_starts(4, 1.0) == [0, 0.25, 0.5, 0.75]


def test_planned_rate_counts_every_request_once() -> None:
    bins = planned_rate([0.1, 0.2, 1.5], 1.0)
    assert bins == [(0.0, 2.0), (1.0, 1.0)]
    assert planned_rate([], 1.0) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: Arrivals(0), lambda: Arrivals(-1), lambda: Arrivals(1, burstiness=-1), lambda: Arrivals(1, ramp="steep"),
        lambda: Arrivals(1, ramp="linear"), lambda: slot_starts(0), lambda: replayed([]), lambda: replayed([1.0], 0),
    ],
)  # fmt: skip
def test_nonsense_is_a_usage_error(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]

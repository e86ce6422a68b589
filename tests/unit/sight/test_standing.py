"""Points of an exam: the share of the axis that is read, from the posterior; and who lies within a point of whom."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.sight.result import Behind, behind, mean_points, points_read, span_of, why_left_out

AXES = ([2.0, 52.0], [80.0, 2.0])


def found(ease: float, axis: list[float] = AXES[0], width: float = 0.02, **more: Any) -> dict[str, Any]:
    """Return a result whose posterior lies around that share of the axis."""
    sign = 1.0 if axis[1] > axis[0] else -1.0
    low, end = sign * math.log(axis[0]), sign * math.log(axis[1])
    middle = end - ease * (end - low)
    x = np.arange(-20, 21)
    mass = np.exp(-0.5 * (x * 0.01 / width) ** 2)
    posterior = {"x": middle - 0.2, "step": 0.01, "mass": (mass / mass.sum()).tolist()}
    return {"axis": axis, "verdict": "measured", "value": 1.0, "posterior": posterior} | more


@given(st.floats(0.05, 0.95), st.sampled_from(AXES))
def test_points_are_the_share_of_the_axis_whichever_way_it_runs(ease: float, axis: list[float]) -> None:
    mean, low, high = span_of(points_read("acuity", found(ease, axis), 0))
    assert mean == pytest.approx(100 * ease, abs=0.5) and 0 <= low <= mean <= high <= 100


def test_beyond_the_axis_is_all_of_it_and_failing_when_easy_is_none() -> None:
    assert points_read("a", found(1.3, verdict="at ceiling"), 0).min() == 100
    assert points_read("a", {"axis": AXES[0], "verdict": "not measurable", "value": None}, 0).max() == 0


def test_a_setting_is_within_a_point_only_when_its_interval_is() -> None:
    assert Behind(0.4, -0.1, 0.9).verdict == "within"
    assert Behind(0.4, -1.0, 1.8).verdict == "not settled"
    assert Behind(3.0, 1.2, 4.8).verdict == "further"
    best = mean_points({"a": found(0.6)}, ["a"], 0)
    assert behind(best, best) == (0.0, 0.0, 0.0)
    same = behind(mean_points({"a": found(0.6)}, ["a"], 1), best)
    assert same.low < 0 < same.high, "another exam of the same eyes is other trials"


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (None, "not asked in exam 2"),
        ({"verdict": "measured"}, "has no threshold"),
        (found(0.5, verdict="not settled"), "not settled in exam 2"),
        (found(0.5, retest={"consistent": False}), "re-test disagreed in exam 2"),
        (found(0.5, AXES[1]), "other levels in exam 2"),
        (found(0.5), ""),
    ],
)
def test_a_test_counts_only_where_every_exam_settled_it(second: Any, why: str) -> None:
    assert why in why_left_out([found(0.5), second]) and bool(why) == bool(why_left_out([found(0.5), second]))

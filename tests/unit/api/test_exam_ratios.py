"""`api.look.exams`: ratios of thresholds are those of the distributions behind them, the same read from either side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.api import exams
from snellen.core.errors import UsageError

STEP = 0.04


def measured(place: int, spread: float) -> dict[str, Any]:
    """Return a result whose distribution lies about a place of the grid."""
    cells = np.arange(-30, 31)
    mass = np.exp(-0.5 * (cells * STEP / spread) ** 2)
    kept = {"x": (place - 30) * STEP, "step": STEP, "mass": (mass / mass.sum()).tolist()}
    value = math.exp(place * STEP)
    ends = [value * math.exp(-1.96 * spread), value * math.exp(1.96 * spread)]
    return {"verdict": "measured", "value": value, "ci95": ends, "unit": "px", "posterior": kept, "bound": None}


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.05, 0.3))
def test_a_ratio_is_that_of_the_values_and_the_same_from_either_side(one: int, other: int, spread: float) -> None:
    a, b = measured(one, spread), measured(other, spread)
    row, back = exams._row(a, b), exams._row(b, a)
    assert row["ratio"] == pytest.approx(a["value"] / b["value"], rel=0.001)
    assert back["ratio"] == pytest.approx(1 / row["ratio"], rel=0.001)
    assert back["ci95"] == pytest.approx([1 / end for end in reversed(row["ci95"])], rel=0.001)
    assert back["p"] == pytest.approx(row["p"], rel=0.001, abs=1e-6)


def test_equal_exams_differ_by_nothing() -> None:
    row = exams._row(measured(20, 0.1), measured(20, 0.1))
    assert (row["ratio"], row["p"]) == (1.0, pytest.approx(1.0))


def test_what_is_not_compared_says_why() -> None:
    value = measured(20, 0.1)
    place = {"verdict": "measured", "value": 12.0, "ci95": [10.0, 14.0], "unit": "px"}
    assert exams._row(place, place)["words"] == "not compared: no threshold; 95 % of A 10 – 14, of B 10 – 14"
    lost = {"verdict": "not measurable", "value": None, "ci95": None, "unit": "px"}
    assert exams._row(value, lost)["words"] == "not compared: B found no threshold"
    assert exams._row(lost, lost)["words"] == "not compared: A and B found no threshold"
    ceiling = value | {"verdict": "at ceiling", "value": None, "bound": 2.0}
    assert exams._row(ceiling, ceiling)["words"] == "not compared: both are beyond the levels drawn"


def test_an_exam_is_not_compared_with_itself(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="named twice"):
        exams.compare_exams(tmp_path, tmp_path / "." / "")

"""Instability over repeats and variants, and trends along rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras import Late
from snellen.scoring.aggregates.instability import aggregate, round_trend, rounds
from snellen.scoring.tables.table_builder import read_tables

stats = Late("scipy.stats")


def test_entropy_over_all_trials_of_a_question() -> None:
    rows: Any = [
        ("q", "base", 0, "accuracy", 1.0, "cat", None, None),
        ("q", "order=1", 0, "accuracy", 0.0, "dog", None, None),
        ("q", "order=2", 0, "accuracy", None, None, None, "ambiguous"),
        ("r", "base", 0, "accuracy", 1.0, "cat", None, None),
        ("r", "order=1", 0, "accuracy", 1.0, "cat", None, None),
        ("r", "order=2", 0, "accuracy", 1.0, "cat", None, None),
    ]
    failed: Any = [("r", "order=3", 0, "timeout")]
    estimates = aggregate(read_tables(rows, failed)["accuracy"])
    assert estimates["instability"].value == pytest.approx(math.log(3) / 2)
    assert estimates["instability_flip_rate"].value == pytest.approx(0.5)
    assert estimates["accuracy_worst_variant"].value == pytest.approx(0.5)
    assert estimates["accuracy_best_variant"].value == pytest.approx(1.0)
    assert estimates["accuracy_range"].value == pytest.approx(0.5)


@given(st.dictionaries(st.integers(0, 20), st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=2, max_size=8))
def test_trend_equals_scipy(values: dict[int, list[float]]) -> None:
    x, y = list(values), [float(np.mean(found)) for found in values.values()]
    trend = round_trend(values.items())
    if np.ptp(y) > 1e-6:
        fit = stats.linregress(x, y)
        assert trend.slope == pytest.approx(fit.slope, abs=1e-9)
        assert trend.correlation == pytest.approx(fit.rvalue, abs=1e-6)


def test_trend_corners() -> None:
    assert round_trend([]) == (None, None)
    assert round_trend([(3, [1.0])]) == (None, 0.0)
    assert round_trend([(0, [1.0]), (1, [1.0])]) == (None, 0.0)
    assert round_trend([(0, []), (1, [1.0]), (2, [0.0])]) == (pytest.approx(-1.0), pytest.approx(-1.0))


def test_rounds_of_a_table_sort_as_numbers() -> None:
    rows: Any = [
        (f"d{d}r{r}", "base", 0, "accuracy", float(r < 10 or d == 0), None, None, None)
        for d in range(6)
        for r in (2, 10)
    ]
    samples = [(f"d{d}r{r}", f"d{d}", {"round": r}) for d in range(6) for r in (2, 10)]
    estimates = rounds(read_tables(rows, samples=samples)["accuracy"])
    assert list(estimates)[:2] == ["accuracy_round_2", "accuracy_round_10"]
    assert estimates["round_slope"].value == pytest.approx((1 / 6 - 1) / 8)
    assert estimates["round_correlation"].value == pytest.approx(-1.0)
    low, high = estimates["round_slope"].ci95 or (0, 0)
    assert low <= (1 / 6 - 1) / 8 <= high < 0


def test_rounds_without_the_tag_or_with_words() -> None:
    rows: Any = [("a", "base", 0, "accuracy", 1.0, None, None, None)]
    assert rounds(read_tables(rows)["accuracy"])["round_slope"].value is None
    assert rounds(read_tables(rows, samples=[("a", None, {"round": "first"})])["accuracy"])["round_slope"].value is None


def test_range_when_nothing_can_be_judged() -> None:
    rows: Any = [("q", variant, 0, "accuracy", None, None, None, "no_reference") for variant in ("base", "order=1")]
    assert aggregate(read_tables(rows)["accuracy"])["accuracy_range"].value is None

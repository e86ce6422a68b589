"""Confidence against results: errors and risks of known models, and intervals that cover them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from snellen.scoring.aggregates.calibration import calibration_error, risk_coverage
from snellen.stats.confidence import area, describe_confidence, expected_error, risk_at


def test_the_figures_are_those_of_the_likelihood_aggregates() -> None:
    draw = np.random.default_rng(0)
    sure = draw.choice([0.4, 0.6, 0.8, 1.0], 300)
    right = (draw.random(300) < sure).astype(float)
    alone = np.arange(300)
    assert expected_error(sure, right, alone).value == pytest.approx(calibration_error(sure.tolist(), right.tolist()))
    assert area(sure, right, alone).value == pytest.approx(risk_coverage(sure.tolist(), right.tolist()).area)
    assert risk_at(sure, right, 1.0) == pytest.approx(1 - right.mean())


@pytest.mark.parametrize(("too_sure", "true"), [(0.0, 0.0), (0.2, 0.2)])
def test_intervals_of_the_calibration_error_cover(too_sure: float, true: float) -> None:
    draw, covered = np.random.default_rng(1), []
    for _ in range(40):
        sure = draw.beta(6, 2, 300).clip(0.25, 1)
        right = (draw.random(300) < sure - too_sure).astype(float)
        low, high = expected_error(sure, right, np.arange(300)).ci95 or (1.0, 0.0)
        covered.append(low <= true <= high)
    assert np.mean(covered) >= 0.9


def test_the_surest_are_taken_first_and_equals_in_part() -> None:
    sure, right = np.array([0.9] * 4 + [0.5] * 4), np.array([1, 1, 1, 1, 0, 0, 1, 1.0])
    assert risk_at(sure, right, 0.5) == 0.0
    assert risk_at(sure, right, 0.75) == pytest.approx(1 / 6)


def test_too_few_answers_say_nothing_and_equal_ones_have_no_interval() -> None:
    assert describe_confidence("stated", np.ones(5), np.ones(5)) is None
    one = describe_confidence("stated", np.ones(50), np.ones(50), without=3)
    assert one is not None
    assert (one.ece.ci95, one.aurc.ci95, one.without) == (None, None, 3)


def test_draws_in_steps_are_the_same_draws_in_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    sure = draw.choice([0.2, 0.6, 1.0], 20_000)
    right, clusters = (draw.random(20_000) < sure).astype(float), np.arange(20_000) // 5
    monkeypatch.setattr("snellen.stats.confidence.WEIGHTS_AT_ONCE", 10**9)
    at_once = area(sure, right, clusters)
    monkeypatch.undo()
    tracemalloc.start()
    assert area(sure, right, clusters) == at_once
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6, "400 draws of 20,000 weights take 64 MB an array"

"""Psychometric curves."""

from __future__ import annotations

import numpy as np
import pytest

from draws import drawn
from snellen.stats.logistic import Curve, fit_curve, threshold_interval

X = np.arange(0.0, 6.0)


def test_recovers_a_curve() -> None:
    truth = Curve(3.0, -1.2, guess=0.25, lapse=0.02)
    trials = np.full(6, 1e7)
    right = np.array([truth.probability(x) for x in X]) * trials
    fitted = fit_curve(X, right, trials, guess=0.25, lapse=0.02)
    assert fitted is not None
    assert (fitted.intercept, fitted.slope) == pytest.approx((3.0, -1.2), abs=1e-4)
    where = truth.where(0.6)
    assert where is not None
    assert truth.probability(where) == pytest.approx(0.6)


def test_equals_plain_logistic_regression() -> None:
    # the likelihood equations at the fitted point, prior included, must vanish
    right, trials = np.array([9.0, 8, 6, 3, 2, 0]), np.full(6, 10.0)
    fitted = fit_curve(X, right, trials)
    assert fitted is not None
    residual = right - trials * np.array([fitted.probability(x) for x in X])
    assert abs(residual.sum()) < 0.2
    assert abs((residual * X).sum()) < 0.4


def test_separated_data_stay_finite() -> None:
    fitted = fit_curve(X, np.array([10.0, 10, 10, 0, 0, 0]), np.full(6, 10.0))
    assert fitted is not None
    assert fitted.slope < 0
    assert fitted.where(0.5) == pytest.approx(2.5, abs=0.05)


def test_undefined_where_nothing_can_be_said() -> None:
    assert fit_curve(X, np.zeros(6), np.zeros(6)) is None
    assert fit_curve(X, np.array([3.0, 0, 0, 0, 0, 0]), np.array([5.0, 0, 0, 0, 0, 0])) is None
    assert Curve(0.0, 0.0).where(0.5) is None
    assert Curve(1.0, -1.0, guess=0.5).where(0.4) is None
    with pytest.raises(ValueError, match="room"):
        fit_curve(X, np.zeros(6), np.ones(6), guess=0.5, lapse=0.5)


@drawn(60)
def test_threshold_interval_holds_the_truth(draws: int) -> None:
    truth = Curve(3.0, -1.2)
    generator = np.random.default_rng(8)
    hits = 0
    for _ in range(draws):
        right = (generator.random((80, 6)) < [truth.probability(x) for x in X]).astype(float)
        interval = threshold_interval(X, right, np.ones((80, 6)), 0.5, draws=200)
        assert interval is not None
        hits += interval[0] <= 2.5 <= interval[1]
    assert hits >= 0.88 * draws
    assert threshold_interval(X, np.ones((1, 6)), np.ones((1, 6)), 0.5) is None

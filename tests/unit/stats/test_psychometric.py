"""The psychometric fit against simulation: bias, coverage, chance, lapse, correlation, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import drawn, leeway
from snellen.stats.psychometric import Rows, Threshold, fit_threshold, log_likelihood

HEIGHTS = np.tile(np.log(np.geomspace(40, 2, 12)), 6)


def simulate(seed: int, truth: float = 7.0, guess: float = 0.1, lapse: float = 0.0, slope: float = 5.0) -> Threshold:
    draw = np.random.default_rng(seed)
    x = HEIGHTS + draw.uniform(-0.1, 0.1, HEIGHTS.size)
    chance = guess + (1 - guess - lapse) / (1 + np.exp(-slope * (x - math.log(truth))))
    trials = np.full(x.size, 8.0)
    right = draw.binomial(8, chance).astype(np.float64)
    found = fit_threshold(Rows(x, trials, right, np.full(x.size, guess), np.ones(x.size)))
    assert found is not None
    return found


@drawn(40)
@pytest.mark.parametrize(("guess", "lapse"), [(0.0, 0.0), (0.1, 0.0), (0.25, 0.05)])
def test_intervals_hold_the_truth_and_the_middle_is_not_off(guess: float, lapse: float, draws: int) -> None:
    found = [simulate(seed, guess=guess, lapse=lapse) for seed in range(draws)]
    truth = math.log(7.0)
    assert sum(one.interval[0] <= truth <= one.interval[1] for one in found) >= 0.85 * draws
    assert abs(np.median([one.value for one in found]) - truth) < leeway(0.025, 40, draws)
    assert all(one.inside > 0.99 for one in found)


def test_slope_and_lapse_are_recovered() -> None:
    found = [simulate(seed, lapse=0.1, slope=6.0) for seed in range(12)]
    assert float(np.median([one.slope for one in found])) == pytest.approx(6.0, rel=0.25)
    assert float(np.median([one.lapse for one in found])) == pytest.approx(0.1, abs=0.03)


def test_rows_read_whole_or_not_at_all_widen_the_interval() -> None:
    draw = np.random.default_rng(2)
    chance = 1 / (1 + np.exp(-5 * (HEIGHTS - math.log(7.0))))
    trials, ones = np.full(HEIGHTS.size, 8.0), np.ones(HEIGHTS.size)
    single = (draw.random(HEIGHTS.size) < chance).astype(np.float64)
    whole = fit_threshold(Rows(HEIGHTS, trials, 8 * single, 0 * ones, ones))
    alone = fit_threshold(Rows(HEIGHTS, ones, single, 0 * ones, ones))
    assert whole is not None
    assert alone is not None
    assert whole.correlation > 0.6
    assert whole.interval[1] - whole.interval[0] == pytest.approx(alone.interval[1] - alone.interval[0], rel=0.35)


def test_who_only_guesses_has_no_threshold_inside() -> None:
    draw = np.random.default_rng(4)
    trials = np.full(HEIGHTS.size, 8.0)
    right = draw.binomial(8, 0.1, HEIGHTS.size).astype(np.float64)
    found = fit_threshold(Rows(HEIGHTS, trials, right, np.full(HEIGHTS.size, 0.1), np.ones(HEIGHTS.size)))
    assert found is not None
    assert found.inside < 0.5


def test_nothing_to_fit() -> None:
    one = np.ones(3)
    assert fit_threshold(Rows(one, one, one, one * 0.1, one)) is None
    assert fit_threshold(Rows(np.arange(3.0), one * 0, one * 0, one * 0.1, one)) is None


@given(st.integers(1, 10), st.floats(0.02, 0.98), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_the_chances_of_a_row_add_up_to_one(trials: int, chance: float, correlation: float) -> None:
    right = np.arange(trials + 1.0)
    ways = np.array([math.comb(trials, int(k)) for k in right])
    logs = log_likelihood(right, np.full(right.size, float(trials)), np.full(right.size, chance), correlation)
    shares = ways * np.exp(logs)
    assert shares.sum() == pytest.approx(1.0)
    assert float(shares @ right) == pytest.approx(trials * chance)

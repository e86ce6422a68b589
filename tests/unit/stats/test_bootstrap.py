"""Resampling that respects clusters, and paired tests that keep their level."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.stats.bootstrap import (
    bootstrap_interval,
    difference_interval,
    difference_p_value,
    percentile_interval,
    ratio,
    resample,
    swap_p_value,
)
from snellen.stats.intervals import mcnemar


def test_resampling_distinct_totals_is_the_cluster_bootstrap() -> None:
    generator = np.random.default_rng(2)
    columns = np.column_stack([generator.binomial(3, 0.6, 200), np.full(200, 3)]).astype(float)
    drawn = ratio(resample(columns, 20_000, "test"))
    assert drawn.mean() == pytest.approx(columns[:, 0].sum() / 600, abs=0.002)
    assert drawn.std() == pytest.approx(columns[:, 0].std() / 3 / 200**0.5, rel=0.03)
    assert set(resample(columns, 10, "test")[:, 1]) == {600.0}


def test_same_purpose_same_draws() -> None:
    columns = np.column_stack([np.arange(50.0), np.ones(50)])
    assert np.array_equal(resample(columns, 5, "a"), resample(columns, 5, "a"))
    assert not np.array_equal(resample(columns, 5, "a"), resample(columns, 5, "b"))
    assert bootstrap_interval(columns, ratio, "a") == bootstrap_interval(columns[::-1], ratio, "a")


def test_corners() -> None:
    assert bootstrap_interval(np.empty((0, 2)), ratio) is None
    assert percentile_interval(np.array([np.nan]), 10) is None
    assert percentile_interval(np.array([0.5]), 1) is None
    assert difference_interval(np.array([0.1]), np.array([1.0])) is None
    assert difference_p_value(np.zeros(30), np.ones(30)) == 1.0
    assert swap_p_value(np.zeros(30)) == 1.0


def test_interval_of_the_difference_covers() -> None:
    generator = np.random.default_rng(11)
    hits = 0
    for i in range(400):
        change = generator.choice([-1.0, 0.0, 1.0], 80, p=[0.1, 0.7, 0.2])
        interval = difference_interval(change, np.ones(80), "cover", i, draws=1000)
        assert interval is not None
        hits += interval[0] <= 0.1 <= interval[1]
    assert 0.925 <= hits / 400 <= 0.98


@pytest.mark.parametrize("clustered", [False, True])
def test_paired_tests_rarely_find_what_is_not_there(clustered: bool) -> None:
    """2,000 null runs: two equally good models on the same questions."""
    generator = np.random.default_rng(17)
    found = {"swap": 0, "mcnemar": 0, "bootstrap": 0}
    for i in range(2000):
        sizes = np.full(50, 3 if clustered else 1)
        chance = generator.beta(2.0, 1.0, 50)
        change = (generator.binomial(sizes, chance) - generator.binomial(sizes, chance)).astype(float)
        found["swap"] += swap_p_value(change, "null", i, draws=999) < 0.05
        found["bootstrap"] += difference_p_value(change, sizes.astype(float), "null", i, draws=999) < 0.05
        found["mcnemar"] += not clustered and mcnemar(int((change < 0).sum()), int((change > 0).sum())) < 0.05
    assert all(count / 2000 <= 0.055 for count in found.values()), found


def test_a_real_difference_is_found() -> None:
    change = np.r_[np.ones(30), -np.ones(8), np.zeros(62)]
    assert swap_p_value(change, "x") < 0.01
    assert difference_p_value(change, np.ones(100), "x") < 0.01


def test_swap_test_of_single_trials_is_mcnemar() -> None:
    change = np.r_[np.ones(14), -np.ones(5), np.zeros(10)]
    assert swap_p_value(change, "same", draws=200_000) == pytest.approx(mcnemar(5, 14), abs=0.004)


def test_many_distinct_values_fall_back_to_the_normal_law() -> None:
    change = np.random.default_rng(4).normal(0.02, 1.0, 30_000)
    interval = difference_interval(change, np.ones(30_000))
    assert interval is not None
    assert interval[0] < change.mean() < interval[1]
    assert interval[1] - interval[0] == pytest.approx(2 * 1.96 / 30_000**0.5, rel=0.05)
    expected = swap_p_value(change)
    assert difference_p_value(change, np.ones(30_000)) == pytest.approx(expected, rel=0.05)

"""Intervals that cover, exact tests, and defined corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import drawn, leeway
from extras import Late
from snellen.stats.intervals import estimate_mean, estimate_ratio, holm, mcnemar, ratio_moments, wilson

stats = Late("scipy.stats")


def test_wilson_equals_scipy() -> None:
    for right, trials in ((0, 7), (1, 50), (25, 50), (49, 50), (50, 50), (870, 1000)):
        expected = stats.binomtest(right, trials).proportion_ci(0.95, method="wilson")
        assert wilson(right / trials, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_clustered_error_by_hand() -> None:
    values, clusters = np.array([1.0, 1.0, 0.0, 1.0, 0.0]), np.array([7, 7, 3, 3, 9])
    # p = 0.6; residual sums: 2 - 1.2, 1 - 1.2, 0 - 0.6; variance = 3/2 * (0.64 + 0.04 + 0.36) / 25
    estimate = estimate_mean(values, clusters)
    assert estimate.value == pytest.approx(0.6)
    assert estimate.stderr == pytest.approx((1.5 * 1.04) ** 0.5 / 5)


def test_error_of_single_trials_is_the_textbook_one() -> None:
    values = np.array([1.0] * 30 + [0.0] * 20)
    assert estimate_mean(values).stderr == pytest.approx(values.std(ddof=1) / 50**0.5)


def test_unbounded_values_get_the_t_interval() -> None:
    values = np.random.default_rng(1).normal(5.0, 3.0, 12)
    low, high = stats.t.interval(0.95, 11, values.mean(), values.std(ddof=1) / 12**0.5)
    estimate = estimate_mean(values)
    assert estimate.ci95 is not None
    # fewer degrees of freedom are taken only where a few values carry the spread
    assert estimate.ci95[0] <= low + 1e-9
    assert estimate.ci95[1] >= high - 1e-9
    assert estimate.ci95[1] - estimate.ci95[0] < 1.15 * (high - low)


def test_corners_are_defined() -> None:
    nothing = estimate_mean(np.empty(0), unscored=3, failed=2)
    assert (nothing.value, nothing.stderr, nothing.ci95, nothing.n, nothing.unscored, nothing.failed) == (
        None,
        None,
        None,
        0,
        3,
        2,
    )
    one = estimate_mean(np.array([1.0]))
    assert (one.value, one.stderr, one.n) == (1.0, None, 1)
    assert one.ci95 == pytest.approx((0.20654931, 1.0))
    assert estimate_mean(np.array([7.5])).ci95 is None
    whole = estimate_mean(np.array([1.0] * 10), np.array([1] * 10))
    assert whole.ci95 is not None
    assert whole.ci95[0] < 0.05, "one cluster says next to nothing"
    assert estimate_ratio(np.array([0.0]), np.array([0.0]), bounded=True, n=0).value is None


@given(st.lists(st.tuples(st.floats(-1e100, 1e100) | st.sampled_from([0.0, 1.0]), st.integers(0, 4)), max_size=40))
def test_no_nan_and_the_interval_holds_the_value(rows: list[tuple[float, int]]) -> None:
    values, clusters = np.array([row[0] for row in rows], dtype=np.float64), np.array([row[1] for row in rows])
    for estimate in (estimate_mean(values), estimate_mean(values, clusters)):
        numbers = [x for x in (estimate.value, estimate.stderr, *(estimate.ci95 or ())) if x is not None]
        assert all(np.isfinite(numbers))
        if estimate.ci95 and estimate.value is not None:
            slack = 1e-9 * max(1.0, abs(estimate.value))
            assert estimate.ci95[0] - slack <= estimate.value <= estimate.ci95[1] + slack


def test_mcnemar_equals_the_binomial_test() -> None:
    for left, right in ((0, 0), (1, 0), (3, 11), (20, 20), (450, 530)):
        expected = stats.binomtest(left, left + right).pvalue if left + right else 1.0
        assert mcnemar(left, right) == pytest.approx(expected, abs=1e-9)
        assert mcnemar(left, right) == mcnemar(right, left)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


BANDS = {"middle": (0.3, 0.7), "high": (0.75, 0.9), "extreme": (0.9, 0.99)}


def coverage_of_single_trials(n: int, band: tuple[float, float], points: int = 201) -> float:
    """Exact: every count, weighed by its binomial chance, averaged over true shares in a band."""
    counts = np.arange(n + 1)
    intervals = np.array([estimate_mean(np.r_[np.ones(k), np.zeros(n - k)]).ci95 for k in counts])
    shares = np.linspace(*band, points)
    chances = stats.binom.pmf(counts[None, :], n, shares[:, None])
    inside = (intervals[None, :, 0] <= shares[:, None]) & (shares[:, None] <= intervals[None, :, 1])
    return float((chances * inside).sum(axis=1).mean())


@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("band", BANDS)
def test_single_trials_cover(n: int, band: str) -> None:
    assert 0.94 <= coverage_of_single_trials(n, BANDS[band]) <= 0.96


def coverage_of_clusters(
    clusters: int, size: int, icc: float, band: tuple[float, float], runs: int, *, unequal: bool, seed: int = 5
) -> float:
    """Simulate clusters of 0/1 trials that share a beta-distributed chance."""
    generator = np.random.default_rng(seed)
    hits = 0
    for share in np.linspace(*band, runs):
        sizes = generator.integers(1, 2 * size, clusters) if unequal else np.full(clusters, size)
        chances = (
            generator.beta(share * (1 - icc) / icc, (1 - share) * (1 - icc) / icc, clusters)
            if icc
            else np.full(clusters, share)
        )
        right = generator.binomial(sizes, chances).astype(np.float64)
        interval = estimate_ratio(right, sizes.astype(np.float64), bounded=True, n=int(sizes.sum())).ci95
        assert interval is not None
        hits += interval[0] <= share <= interval[1]
    return hits / runs


@drawn(6000)
@pytest.mark.parametrize(("clusters", "size"), [(50, 4), (100, 5), (400, 5)])
@pytest.mark.parametrize("icc", [0.0, 0.2, 0.5])
def test_clustered_trials_cover(clusters: int, size: int, icc: float, draws: int) -> None:
    covered = coverage_of_clusters(clusters, size, icc, (0.25, 0.85), draws, unequal=clusters != 100)
    assert abs(covered - 0.95) <= leeway(0.01, 6000, draws)


@drawn(6000)
def test_few_clusters_cover_at_least(draws: int) -> None:
    covered = coverage_of_clusters(10, 5, 0.2, (0.25, 0.75), draws, unequal=False)
    assert abs(covered - 0.955) <= leeway(0.015, 6000, draws)


@drawn(6000)
def test_rare_errors_in_clusters_cover_nearly(draws: int) -> None:
    covered = coverage_of_clusters(100, 5, 0.3, (0.95, 0.98), draws, unequal=False)
    assert abs(covered - 0.95) <= leeway(0.02, 6000, draws)


@drawn(4000)
def test_continuous_values_cover(draws: int) -> None:
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(draws):
        interval = estimate_mean(generator.beta(2.0, 1.0, 60)).ci95
        assert interval is not None
        hits += interval[0] <= 2 / 3 <= interval[1]
    assert abs(hits / draws - 0.95) <= leeway(0.01, 4000, draws)


def test_degrees_fall_when_one_cluster_carries_the_spread() -> None:
    even = ratio_moments(np.array([1.0, 0.0] * 20), np.ones(40))
    uneven = ratio_moments(np.array([0.5] * 39 + [30.0]), np.ones(40))
    assert even.degrees() == pytest.approx(39.0)
    assert uneven.degrees() < 5.0


def test_two_clusters_have_an_error_and_wide_limits() -> None:
    estimate = estimate_mean(np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1]))
    assert estimate.stderr == pytest.approx((2 * (0.5**2 + 0.5**2)) ** 0.5 / 4)
    assert estimate.ci95 is not None
    assert estimate.ci95[0] < 0.05
    assert estimate.ci95[1] > 0.95

"""A judge corrected by a few human labels: right on average whatever the judge, and its intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import drawn, leeway
from snellen.stats.intervals import estimate_mean
from snellen.stats.prediction_powered import FEWEST_LABELS, prediction_powered_mean


def made(seed: int, *, count: int, known: int, truth: float, miss: float, invent: float, group: int = 1):
    """Labels, and a judge that calls right answers wrong (`miss`) and wrong ones right (`invent`)."""
    draw = np.random.default_rng(seed)
    ability = draw.beta(truth * 4, (1 - truth) * 4, size=-(-count // group)) if group > 1 else np.full(count, truth)
    clusters = np.repeat(np.arange(ability.size), group)[:count]
    labels = (draw.random(count) < ability[clusters]).astype(float)
    flips = draw.random(count) < np.where(labels == 1.0, miss, invent)
    verdicts = np.where(flips, 1.0 - labels, labels)
    hidden = labels.copy()
    hidden[draw.permutation(count)[known:]] = np.nan
    return verdicts, hidden, clusters


CASES = {
    "generous judge": {"count": 600, "known": 100, "truth": 0.5, "miss": 0.02, "invent": 0.3},
    "severe judge": {"count": 600, "known": 60, "truth": 0.7, "miss": 0.25, "invent": 0.01},
    "a coin": {"count": 400, "known": 80, "truth": 0.4, "miss": 0.5, "invent": 0.5},
    "nearly perfect, few labels": {"count": 500, "known": 30, "truth": 0.8, "miss": 0.02, "invent": 0.02},
    "rare right answers": {"count": 800, "known": 100, "truth": 0.1, "miss": 0.1, "invent": 0.05},
    "clusters of five": {"count": 600, "known": 100, "truth": 0.5, "miss": 0.05, "invent": 0.2, "group": 5},
}


@drawn(600)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_truth_is_inside_95_percent_of_the_intervals(case: dict[str, float], draws: int) -> None:
    estimates = [prediction_powered_mean(*made(seed, **case)) for seed in range(draws)]
    covered = np.mean([low <= case["truth"] <= high for low, high in (one.ci95 for one in estimates)])
    assert 0.95 - leeway(0.02, 600, draws) <= covered <= 0.995
    assert abs(np.mean([one.value for one in estimates]) - case["truth"]) < leeway(0.008, 600, draws)


def test_the_judge_alone_is_confidently_wrong_where_the_corrected_figure_is_not() -> None:
    verdicts, labels, clusters = made(1, **CASES["generous judge"])
    alone, corrected = estimate_mean(verdicts), prediction_powered_mean(verdicts, labels, clusters)
    assert alone.ci95[0] > 0.5
    assert corrected.ci95[0] < 0.5 < corrected.ci95[1]


def test_a_good_judge_makes_labels_go_further_and_a_coin_does_no_harm() -> None:
    def width(of: dict[str, float]) -> float:
        low, high = prediction_powered_mean(*made(3, **of)).ci95
        return high - low

    base = {"count": 2000, "known": 100, "truth": 0.5}
    labels_alone = 2 * 1.96 * 0.5 / 10
    assert width(base | {"miss": 0.03, "invent": 0.03}) < 0.6 * labels_alone
    assert width(base | {"miss": 0.5, "invent": 0.5}) < 1.1 * labels_alone


def test_a_judge_never_caught_is_not_taken_for_infallible() -> None:
    verdicts = np.tile([0.0, 1.0, 1.0, 1.0], 100)
    labels = np.full(400, np.nan)
    labels[::20] = verdicts[::20]
    low, high = prediction_powered_mean(verdicts, labels).ci95
    assert high - low > 0.1


@pytest.mark.parametrize("known", [0, 1, FEWEST_LABELS - 1])
def test_too_few_labels_give_no_number(known: int) -> None:
    labels = np.full(100, np.nan)
    labels[:known] = 1.0
    estimate = prediction_powered_mean(np.ones(100), labels)
    assert (estimate.value, estimate.ci95, estimate.n, estimate.left_out) == (None, None, known, 100 - known)


def test_labels_on_everything_need_no_judge() -> None:
    labels = np.array([0.0, 1.0, 1.0, 1.0] * 5)
    estimate = prediction_powered_mean(1.0 - labels, labels)
    assert estimate.value == 0.75
    assert estimate.ci95[0] < 0.75 < estimate.ci95[1]


@given(st.integers(0, 10_000), st.integers(20, 120), st.floats(0.05, 0.95), st.floats(0, 0.6), st.floats(0, 0.6))
def test_estimate_and_interval_stay_on_the_scale(seed: int, count: int, truth: float, miss: float, inv: float) -> None:
    data = made(seed, count=count, known=max(FEWEST_LABELS, count // 4), truth=truth, miss=miss, invent=inv)
    estimate = prediction_powered_mean(*data)
    low, high = estimate.ci95
    assert 0.0 <= low <= estimate.value <= high <= 1.0


def test_grades_on_another_scale_are_estimated_on_it() -> None:
    draw = np.random.default_rng(5)
    truth = draw.integers(1, 11, 300).astype(float)
    verdicts = np.clip(truth + draw.integers(0, 3, 300), 1, 10).astype(float)
    labels = np.where(np.arange(300) < 60, truth, np.nan)
    estimate = prediction_powered_mean(verdicts, labels, scale=(1.0, 10.0))
    assert estimate.ci95[0] < truth.mean() < estimate.ci95[1]
    assert abs(estimate.value - truth.mean()) < abs(verdicts.mean() - truth.mean())

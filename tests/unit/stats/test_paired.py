"""Paired differences and ratios: exact identities, the rule for equals, and absence instead of a ratio of nothing."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.stats.intervals import paired_share_interval, unseen_interval
from snellen.stats.paired import paired_difference, paired_ratio


def test_single_outcomes_have_the_interval_of_compare() -> None:
    first, second = np.array([0.0, 0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    found = paired_difference(first, second)
    assert found.value == pytest.approx(0.2)
    assert found.ci95 == paired_share_interval(2, 1, 5)
    assert found.n == 5


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_pairs_that_are_all_equal_have_an_interval_with_a_width(value: float) -> None:
    same = np.full(50, value)
    low, high = paired_difference(same, same).ci95 or (0.0, 0.0)
    assert low < 0.0 < high


def test_equal_partial_scores_take_the_rule_for_what_was_never_seen() -> None:
    for count in (2, 40):
        first = np.full(count, 0.25)
        found = paired_difference(first, first + 0.5, None, "test").ci95
        assert found == pytest.approx(unseen_interval(0.5, count))
    assert paired_difference(np.array([0.25]), np.array([0.75]), None, "test").ci95 is None, "one pair has no spread"


def test_equal_differences_of_unbounded_values_have_no_interval() -> None:
    first = np.full(40, 3.0)
    assert paired_difference(first, first, None, "test").ci95 is None


def test_nothing_to_pair_is_said() -> None:
    nothing = np.empty(0)
    assert paired_difference(nothing, nothing).value is None
    assert paired_ratio(nothing, nothing).value is None


def test_questions_of_one_cluster_count_once() -> None:
    draw = np.random.default_rng(3)
    first, second = draw.random(60).round(), draw.random(60).round()
    alone = paired_difference(first, second, np.arange(60), "test", single=False)
    many = paired_difference(np.repeat(first, 4), np.repeat(second, 4), np.repeat(np.arange(60), 4), "test")
    assert many.value == pytest.approx(alone.value or 0.0)
    assert width(many.ci95) == pytest.approx(width(alone.ci95), rel=0.1)


def test_a_ratio_has_its_value_and_widens_as_the_bottom_nears_nothing() -> None:
    draw = np.random.default_rng(4)
    bottoms = 1.0 + draw.normal(0.0, 1.0, 400)
    tops = 0.5 * bottoms + draw.normal(0.0, 0.2, 400)
    clear = paired_ratio(tops, bottoms)
    dim = paired_ratio(tops - 0.4, bottoms - 0.8)
    assert clear.value == pytest.approx(0.5, abs=0.05)
    assert clear.ci95 is not None and clear.ci95[0] < 0.5 < clear.ci95[1]
    assert width(dim.ci95) > 3 * width(clear.ci95)
    assert paired_ratio(tops, bottoms - bottoms.mean()).value is None
    assert paired_ratio(tops, -bottoms).value is None


def width(interval: tuple[float, float] | None) -> float:
    assert interval is not None
    return interval[1] - interval[0]

"""P-values of a few numbers, worked out by hand: the observed one counts among the draws, and never beyond 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snellen.stats.bootstrap import difference_p_value
from snellen.stats.distributions import normal_cdf
from snellen.stats.exchange import TO_DETECT, beside_references, exchange_test, order_test


def test_a_difference_that_no_draw_reaches_has_the_smallest_p_there_is() -> None:
    assert difference_p_value(np.ones(10), np.ones(10), "x", draws=99) == pytest.approx(1 / 100)


def test_no_difference_and_a_single_cluster_have_a_p_of_one() -> None:
    assert difference_p_value(np.zeros(10), np.ones(10), "x") == 1.0
    assert difference_p_value(np.ones(1), np.ones(1), "x") == 1.0


def test_forms_that_are_all_alike_are_exchangeable() -> None:
    assert exchange_test(np.ones(8), np.ones((8, 2)), "x", draws=50).p == 1.0


def test_a_drop_is_set_against_the_spread_of_honest_models() -> None:
    whole = math.sqrt(0.1**2 + 0.005 * (1 + 1 / 2))
    p, found = beside_references(0.3, 0.1, [0.0, 0.1])
    assert p == pytest.approx(1 - normal_cdf(0.25 / whole))
    assert found == pytest.approx(TO_DETECT * whole)
    alone = math.sqrt(0.1**2 * 3)
    assert beside_references(0.3, 0.1, [0.05])[0] == pytest.approx(1 - normal_cdf(0.25 / alone))
    assert beside_references(0.3, 0.0, [0.1]) == (1.0, 0.0)


def test_the_order_of_options_is_tested_from_two_questions_on() -> None:
    values, places = np.array([[1.0, 0.0], [1.0, 1.0]]), np.zeros((2, 2), dtype=np.int64)
    assert order_test(values[:1], places[:1]).p is None
    assert order_test(values, places).p is not None

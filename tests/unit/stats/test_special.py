"""Own numerics against scipy."""

from __future__ import annotations

from itertools import product

import pytest

from extras import Late
from snellen.stats.distributions import (
    beta_cdf,
    binomial_cdf,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
)

stats = Late("scipy.stats")


def test_t_quantile_equals_scipy() -> None:
    degrees = [1, 1.5, 2, 5, 9.37, 30, 200, 1_999, 2_001, 1e4, 1e6, 1e9]
    table = list(product([1e-4, 0.025, 0.4, 0.5, 0.6, 0.9, 0.975, 0.9999], degrees))
    expected = {case: float(stats.t.ppf(*case)) for case in table}
    assert {case: t_quantile(*case) for case in table} == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_t_cdf_equals_scipy() -> None:
    table = list(product([-40.0, -3.0, -0.1, 0.0, 0.7, 5.0, 100.0], [1, 3.5, 60, 1_500]))
    expected = {case: float(stats.t.cdf(*case)) for case in table}
    assert {case: t_cdf(*case) for case in table} == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("a", [0.5, 1, 3, 50, 1e4])
@pytest.mark.parametrize("b", [0.5, 2, 70, 1e5])
def test_beta_equals_scipy(a: float, b: float) -> None:
    for x in (0.0, 0.001, 0.2, 0.5, 0.9, 0.999, 1.0):
        assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), abs=1e-9)


@pytest.mark.parametrize("trials", [1, 10, 101, 10_000, 1_000_000])
def test_binomial_equals_scipy(trials: int) -> None:
    for successes in (-1, 0, 1, trials // 2 - int(trials**0.5), trials // 2, trials - 1, trials):
        for probability in (0.02, 0.5):
            assert binomial_cdf(successes, trials, probability) == pytest.approx(
                stats.binom.cdf(successes, trials, probability), abs=1e-9
            )


def test_normal_equals_scipy() -> None:
    for x in (-37.0, -8.0, -1.0, 0.0, 2.5, 9.0):
        assert normal_cdf(x) == pytest.approx(stats.norm.cdf(x), rel=1e-9)
    for probability in (1e-12, 0.025, 0.5, 0.999):
        assert normal_quantile(probability) == pytest.approx(stats.norm.ppf(probability), rel=1e-9, abs=1e-12)

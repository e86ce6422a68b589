"""Small numerics: probabilities and quantiles of the normal, t, beta and binomial laws, without scipy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_MAX_STEPS = 20_000


def normal_cdf(x: float) -> float:
    """Return P(Z ≤ x) for a standard normal Z."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normal_quantile(probability: float) -> float:
    """Return x with P(Z ≤ x) = probability, 0 < probability < 1 (Wichura's AS 241)."""
    return _NORMAL.inv_cdf(probability)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta_tail(1.0 - x, b, a)
    return _beta_tail(x, a, b)


def _beta_tail(x: float, a: float, b: float) -> float:
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _continued_fraction(x, a, b) / a


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Evaluate the fraction of I_x(a, b) by the modified Lentz method (NIST DLMF 8.17.22)."""
    c, d = 1.0, 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1.0))
    result = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _off_zero(1.0 + term * d)
            c = _off_zero(1.0 + term / c)
            result *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return result


def _off_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY


def t_cdf(x: float, degrees: float) -> float:
    """Return P(T ≤ x) for Student's t with `degrees` of freedom."""
    tail = 0.5 * beta_cdf(degrees / (degrees + x * x), degrees / 2.0, 0.5)
    return 1.0 - tail if x > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: float) -> float:
    """Return x with P(T ≤ x) = probability; `degrees` may be any number ≥ 1."""
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1.0 - probability, degrees)
    if degrees > 2_000:
        return _t_quantile_expanded(normal_quantile(probability), degrees)
    low, high = 0.0, 2.0
    while t_cdf(high, degrees) < probability:
        low, high = high, 2.0 * high
    return _bisect(lambda x: t_cdf(x, degrees) - probability, low, high)


def _t_quantile_expanded(z: float, degrees: float) -> float:
    """Cornish-Fisher expansion (Abramowitz & Stegun 26.7.5), where log-gamma would lose digits."""
    first = (z**3 + z) / 4.0
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384.0
    return z + first / degrees + second / degrees**2 + third / degrees**3


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """Return P(X ≤ successes) for X binomial."""
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    return beta_cdf(1.0 - probability, trials - successes, successes + 1.0)


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the root of an increasing function to the last bit; robust, and cheap enough behind a cache."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if function(middle) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)

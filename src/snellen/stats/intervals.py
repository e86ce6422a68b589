"""Clustered values in, an estimate with an interval that really covers out; and the tests that compare two models.

The interval rules and the simulations that chose them: docs/adr/0016-interval-methods.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.types import Estimate
from .distributions import binomial_cdf, normal_quantile, t_quantile

Floats = NDArray[np.float64]
Integers = NDArray[Any]
Interval = tuple[float, float]

Z95 = normal_quantile(0.975)
TAIL95 = 0.975
MEAN_DEGREES = (1.0, 3.0)
SHARE_DEGREES = (1.5, 4.0)
"""Degrees of freedom for each cluster but one, and for each cluster that carries the variance: the fewer of both count.
A share has more of them, because p(1-p) is known from p itself and only the design effect is estimated."""


class Moments(NamedTuple):
    """A ratio of cluster totals: its value, the standard error, and what the error itself rests on."""

    value: float
    stderr: float | None
    """None with a single cluster: one cluster says nothing of the spread between clusters."""
    carrying: float
    """How many clusters carry the variance: (Σr²)²/Σr⁴ of their residuals; a third of them where these are normal."""
    clusters: float
    """The effective number of clusters (Kish): equal to their number when they weigh the same."""

    def degrees(self, of: tuple[float, float] = MEAN_DEGREES) -> float:
        """Return the degrees of freedom of a mean, or of a share."""
        return max(1.0, min(of[0] * (self.clusters - 1.0), of[1] * self.carrying))


def wilson(share: float, trials: float, z: float = Z95) -> Interval:
    """Return the Wilson score interval of a proportion seen in `trials` (which may be an effective number)."""
    squared = z * z / trials
    center = share + squared / 2.0
    half = z * math.sqrt(share * (1.0 - share) / trials + squared / (4.0 * trials))
    low, high = (center - half) / (1.0 + squared), (center + half) / (1.0 + squared)
    return (0.0 if share == 0.0 else max(0.0, low)), (1.0 if share == 1.0 else min(1.0, high))


def cluster_totals(values: Floats, clusters: Integers | None) -> tuple[Floats, Floats]:
    """Return per cluster the sum of its values and the number of them."""
    if clusters is None:
        return values, np.ones_like(values)
    _, codes = np.unique(clusters, return_inverse=True)
    return np.bincount(codes, weights=values).astype(np.float64), np.bincount(codes).astype(np.float64)


def ratio_moments(sums: Floats, sizes: Floats) -> Moments:
    """Return Σsums/Σsizes with its cluster-robust standard error (linearised ratio, factor G/(G-1))."""
    total = float(sizes.sum())
    value = float(sums.sum()) / total
    kish = total * total / float((sizes * sizes).sum())
    if sums.size < 2:
        return Moments(value, None, 1.0, kish)
    squares = (sums - value * sizes) ** 2
    spread = float(squares.sum())
    stderr = math.sqrt(sums.size / (sums.size - 1) * spread) / total
    top = float(squares.max())
    carrying = (spread / top) ** 2 / float(((squares / top) ** 2).sum()) if top > 0.0 else kish
    return Moments(value, stderr, carrying, kish)


def share_interval(moments: Moments) -> Interval:
    """Return the 95 % interval of a clustered mean of values in [0, 1]: Wilson with the effective number of trials."""
    share = min(1.0, max(0.0, moments.value))
    variance = (moments.stderr or 0.0) ** 2
    trials = share * (1.0 - share) / variance if variance > 1e-24 and 0.0 < share < 1.0 else moments.clusters
    return wilson(share, max(trials, 1e-9), _t95(moments.degrees(SHARE_DEGREES)))


def _t95(degrees: float) -> float:
    """Return the 97.5 % quantile; three digits of the degrees are kept, so that a cache can hold them all."""
    return t_quantile(TAIL95, float(f"{degrees:.3g}"))


def mean_interval(moments: Moments) -> Interval | None:
    """Return the 95 % t interval of a clustered mean of unbounded values; None with a single cluster."""
    if moments.stderr is None:
        return None
    half = _t95(moments.degrees()) * moments.stderr
    return moments.value - half, moments.value + half


def estimate_ratio(
    sums: Floats, sizes: Floats, *, bounded: bool, n: int, unscored: int = 0, failed: int = 0
) -> Estimate:
    """Return Σsums/Σsizes over clusters as an Estimate; undefined (None) when nothing was scored."""
    if not sizes.size or float(sizes.sum()) == 0.0:
        return Estimate(None, n=n, unscored=unscored, failed=failed)
    moments = ratio_moments(sums, sizes)
    interval = share_interval(moments) if bounded else mean_interval(moments)
    return Estimate(moments.value, moments.stderr, interval, n, unscored, failed)


def estimate_mean(
    values: Floats,
    clusters: Integers | None = None,
    *,
    n: int | None = None,
    unscored: int = 0,
    failed: int = 0,
    is_share: bool = True,
) -> Estimate:
    """Return the mean of `values` with standard error and 95 % interval clustered by `clusters`.

    Values that all lie in [0, 1] get Wilson intervals: plain ones when they are single 0/1 trials, by the
    effective number of trials otherwise. Other values, and those that are no shares, get t intervals.
    """
    count = int(values.size) if n is None else n
    if not values.size:
        return Estimate(None, n=count, unscored=unscored, failed=failed)
    sums, sizes = cluster_totals(values, clusters)
    if is_share and sums.size == values.size and bool(np.all((values == 0.0) | (values == 1.0))):
        return _estimate_trials(values, count, unscored, failed)
    bounded = is_share and bool(np.all((values >= 0.0) & (values <= 1.0)))
    return estimate_ratio(sums, sizes, bounded=bounded, n=count, unscored=unscored, failed=failed)


def _estimate_trials(values: Floats, n: int, unscored: int, failed: int) -> Estimate:
    """Single independent 0/1 trials: their variance follows from the share, so no t quantile is due."""
    share = float(values.mean())
    stderr = math.sqrt(share * (1.0 - share) / (values.size - 1)) if values.size > 1 else None
    return Estimate(share, stderr, wilson(share, values.size), n, unscored, failed)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value that the two discordant counts come from a fair coin."""
    total = only_first + only_second
    return min(1.0, 2.0 * binomial_cdf(min(only_first, only_second), total, 0.5)) if total else 1.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the number of tests (Holm 1979), in the order given; None stays None."""
    tested = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(tested):
        running = max(running, min(1.0, p * (len(tested) - rank)))
        adjusted[index] = running
    return adjusted

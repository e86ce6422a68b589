"""Clustered values in, an estimate with an interval that really covers out; and the tests that compare two models.

The interval rules and the simulations that chose them: docs/adr/statistics.md.
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


NO_SPREAD = 1e-12
"""Relative to the value: what rounding makes of values that are all the same."""


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
    low, high = float((center - half) / (1.0 + squared)), float((center + half) / (1.0 + squared))
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
    carrying = _carrying(squares, spread, top) if top > 0.0 else kish
    return Moments(value, stderr, carrying, kish)


def macro_moments(parts: Sequence[tuple[Floats, Integers]]) -> Moments:
    """Return the mean of the means of groups, each (values, clusters), with the error that the clusters within give.

    The groups are fixed. A group of m clusters shows (m-1)/m of its spread, which is made up for; one of a single
    cluster shows none, and is taken to be as far off as it lies from the mean of all groups.
    """
    value = float(np.mean([values.mean() for values, _ in parts]))
    residuals, weights = [], []
    for values, clusters in parts:
        weight, inside = 1.0 / (len(parts) * values.size), np.unique(clusters).size
        center, stretch = (values.mean(), math.sqrt(inside / (inside - 1))) if inside > 1 else (value, 1.0)
        residuals.append((values - center) * (weight * stretch))
        weights.append(np.full(values.size, weight))
    clusters = np.concatenate([clusters for _, clusters in parts])
    squares = cluster_totals(np.concatenate(residuals), clusters)[0] ** 2
    kish = 1.0 / float((cluster_totals(np.concatenate(weights), clusters)[0] ** 2).sum())
    if squares.size < 2:
        return Moments(value, None, 1.0, kish)
    spread, top = float(squares.sum()), float(squares.max())
    return Moments(value, math.sqrt(spread), _carrying(squares, spread, top) if top > 0.0 else kish, kish)


def _carrying(squares: Floats, spread: float, top: float) -> float:
    return (spread / top) ** 2 / float(((squares / top) ** 2).sum())


def sum_interval(parts: Sequence[tuple[float, float, Interval]]) -> Interval:
    """Return the 95 % interval of Σ weight · value of independent figures from their own (Zou & Donner 2008).

    Each part is (weight from 0, value, interval). A figure of 0 % or 100 % has an interval though its error is 0.
    """
    total = math.fsum(weight * value for weight, value, _ in parts)
    below = math.sqrt(math.fsum((weight * (value - low)) ** 2 for weight, value, (low, _) in parts))
    above = math.sqrt(math.fsum((weight * (high - value)) ** 2 for weight, value, (_, high) in parts))
    return total - below, total + above


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
    """Return the 95 % t interval of a clustered mean of unbounded values; None with a single cluster or no spread.

    Values that are all the same say nothing of how far the next may lie: an interval without width would be a claim.
    """
    if moments.stderr is None or moments.stderr <= NO_SPREAD * abs(moments.value):
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


def unseen_interval(difference: float, clusters: float) -> Interval:
    """Return the interval of a mean difference, from -1 to 1, that is the same in all clusters seen.

    As many others may differ as Wilson's interval allows for something never seen, and by as much as there is.
    """
    _, unseen = wilson(0.0, clusters, _t95(max(1.0, clusters - 1.0)))
    return difference - unseen * (difference + 1.0), difference + unseen * (1.0 - difference)


def paired_share_interval(gained: int, lost: int, pairs: int) -> Interval:
    """Return the 95 % interval of the difference of two shares of the same single 0/1 trials (Bonett & Price 2012).

    One pair is added to either side: what changed once in one direction may change in the other.
    """
    up, down = (gained + 1.0) / (pairs + 2.0), (lost + 1.0) / (pairs + 2.0)
    half = Z95 * math.sqrt((up + down - (up - down) ** 2) / (pairs + 2.0))
    return max(-1.0, up - down - half), min(1.0, up - down + half)


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

"""Two results of the same questions to their difference, or to a ratio of two such differences, with a paired interval.

Questions of one cluster go together. Where every question differs by the same, the interval has a width all the same:
questions that were not seen may differ otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.types import Estimate
from .bootstrap import ANYWHERE, Matrix, difference_interval, has_no_spread
from .distributions import t_quantile
from .intervals import (
    TAIL95,
    Floats,
    Integers,
    Interval,
    cluster_totals,
    paired_share_interval,
    ratio_moments,
    unseen_interval,
)

CLEAR = 2.0
"""So many standard errors the bottom of a ratio must lie above 0: a share of nothing cannot be told."""
NO_PSEUDO = np.zeros((0, 2))


def paired_difference(
    first: Floats, second: Floats, clusters: Integers | None = None, *purpose: str | int, single: bool | None = None
) -> Estimate:
    """Return the mean of second - first with its 95 % interval; `n` counts the questions.

    Single 0/1 outcomes, each its own cluster (`single`; looked for where it is not told), by Bonett & Price, others by
    the bootstrap of clusters, and equal differences of shares by the rule for what was never seen.
    """
    change = second - first
    if not change.size:
        return Estimate(None, unit="questions")
    sums, sizes = cluster_totals(change, clusters)
    if single is None:
        single = sums.size == change.size and _is_binary(first) and _is_binary(second)
    error = ratio_moments(sums, sizes).stderr
    interval = _interval(first, second, sums, sizes, purpose, single=single)
    return Estimate(float(change.mean()), error, interval, int(change.size), unit="questions")


def _interval(
    first: Floats, second: Floats, sums: Floats, sizes: Floats, purpose: tuple[str | int, ...], *, single: bool
) -> Interval | None:
    change = second - first
    if single:
        gained, lost = int((change > 0).sum()), int((change < 0).sum())
        return paired_share_interval(gained, lost, change.size) if change.size > 1 else None
    shares = _are_shares(first) and _are_shares(second)
    found = difference_interval(sums, sizes, *purpose, limits=(-1.0, 1.0) if shares else ANYWHERE)
    if found is not None or sums.size < 2 or not shares or not has_no_spread(change):
        return found
    return unseen_interval(float(change.mean()), sums.size)


def _is_binary(values: Floats) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))


def _are_shares(values: Floats) -> bool:
    return bool(values.min() >= 0.0 and values.max() <= 1.0)


def paired_ratio(
    tops: Floats, bottoms: Floats, clusters: Integers | None = None, pseudo: Matrix = NO_PSEUDO
) -> Estimate:
    """Return Σtops / Σbottoms with Fieller's 95 % interval; None where the bottom does not clearly lie above 0.

    `pseudo`: rows of (top, bottom) that stand in the variance beside those seen, so that questions which are all alike
    have an interval with a width (Agresti & Min 2005). `n` counts the questions.
    """
    count, total = int(tops.size), float(bottoms.sum())
    above, _ = cluster_totals(tops, clusters)
    below, _ = cluster_totals(bottoms, clusters)
    groups = above.size
    if count < 2 or groups < 2 or total <= 0.0:
        return Estimate(None, n=count, unit="questions")
    sums = np.vstack([np.column_stack([above, below]), pseudo])
    mean = sums.mean(axis=0)
    spread = (sums - mean).T @ (sums - mean) * (groups / (groups - 1.0))
    if total < CLEAR * math.sqrt(spread[1, 1]):
        return Estimate(None, n=count, unit="questions")
    ratio = float(tops.sum()) / total
    error = math.sqrt(max(0.0, spread[0, 0] - 2.0 * ratio * spread[0, 1] + ratio**2 * spread[1, 1])) / total
    interval = _fieller(ratio, total, spread, t_quantile(TAIL95, float(groups - 1)))
    return Estimate(ratio, error, interval, count, unit="questions")


def _fieller(ratio: float, total: float, spread: Matrix, quantile: float) -> Interval | None:
    """Return where (top - r·bottom)² ≤ t²·var(top - r·bottom); None where the bottom may be nothing."""
    v00, v01, v11 = (quantile**2 / total**2 * float(value) for value in (spread[0, 0], spread[0, 1], spread[1, 1]))
    leading = 1.0 - v11
    if leading <= 0.0:
        return None
    middle = ratio - v01
    inside = middle**2 - leading * (ratio**2 - v00)
    half = math.sqrt(max(0.0, inside))
    return (middle - half) / leading, (middle + half) / leading

"""Two results of the same questions to their difference, a ratio of differences, or the share that needs evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..core.types import Estimate
from .bootstrap import ANYWHERE, Matrix, difference_interval, has_no_spread
from .distributions import binomial_cdf, t_quantile
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


PSEUDO = 0.5
"""How often each of the four outcomes of a pair (wrong or right, with and without) is supposed to have been seen beside
those that were: an interval of questions that are all alike has a width then (Agresti & Min 2005)."""
FALSE_DISCOVERY = 0.05


def kept_share(
    with_it: Floats,
    without: Floats,
    chance: Floats | float = 0.0,
    clusters: Integers | None = None,
    *,
    chance_without: Floats | float | None = None,
) -> Estimate:
    """Return which share of the score above `chance` is kept without the evidence, with its paired 95 % interval.

    None where the score does not clearly lie above guessing. `n` counts the questions. `chance_without`: what guessing
    earns without the evidence, where that is less (who declines to answer does not guess). Fieller's interval of a
    ratio of two paired means, clustered, with half a pseudo pair of each kind in its variance.
    """
    count = int(with_it.size)
    first, second = with_it - chance, without - (chance if chance_without is None else chance_without)
    if count < 2:
        return Estimate(None, n=count, unit="questions")
    level = float(np.mean(chance))
    pseudo = PSEUDO * np.array([[right - level, left - level] for left in (0.0, 1.0) for right in (0.0, 1.0)])
    return paired_ratio(second, first, clusters, pseudo)


@cache
def fewer_by_chance(right: int, asked: int, right_without: int, asked_without: int) -> float:
    """Return the chance of so few right replies without the evidence if it made no difference (Fisher, one-sided)."""
    total = right + right_without
    ways = math.comb(asked + asked_without, total)
    low = max(0, total - asked)
    found = sum(math.comb(asked_without, k) * math.comb(asked, total - k) for k in range(low, right_without + 1))
    return found / ways


@cache
def guessed_by_chance(right: int, asked: int, chance: float) -> float:
    """Return the chance that guessing alone gets so many of a question's replies right, or more (binomial)."""
    return 1.0 - binomial_cdf(right - 1, asked, chance) if right > 0 else 1.0


@cache
def sign_by_chance(lost: int, won: int) -> float:
    """Return the chance that of so many changes as many or more are losses, if either way is as likely (sign test)."""
    return 1.0 - binomial_cdf(lost - 1, lost + won, 0.5) if lost > 0 else 1.0


def discoveries(p_values: Sequence[float], rate: float = FALSE_DISCOVERY) -> NDArray[np.bool_]:
    """Return which p-values are found at this rate of false discoveries (Benjamini & Hochberg 1995)."""
    p = np.asarray(p_values, dtype=np.float64)
    if not p.size:
        return np.zeros(0, np.bool_)
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= rate * np.arange(1, p.size + 1) / p.size)
    return p <= ordered[passing[-1]] if passing.size else np.zeros(p.size, np.bool_)

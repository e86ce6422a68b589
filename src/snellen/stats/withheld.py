"""Two results of the same questions, with and without a piece of evidence, to the share of the score that needs it.

Kept is Σ(without - chance) / Σ(with - chance): what is left of the score above guessing. Questions are paired, so that
what both have in common is no part of the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..core.types import Estimate
from .distributions import binomial_cdf, t_quantile
from .intervals import TAIL95, Floats, Integers, cluster_totals

PSEUDO = 0.5
"""How often each of the four outcomes of a pair (wrong or right, with and without) is supposed to have been seen beside
those that were: an interval of questions that are all alike has a width then (Agresti & Min 2005)."""
CLEAR = 2.0
"""So many standard errors the score must lie above guessing: a share of nothing cannot be told."""
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
    total = float(first.sum())
    if count < 2 or total <= 0.0:
        return Estimate(None, n=count, unit="questions")
    tops, _ = cluster_totals(second, clusters)
    bottoms, _ = cluster_totals(first, clusters)
    groups = tops.size
    level = float(np.mean(chance))
    pseudo = PSEUDO * np.array([[right - level, left - level] for left in (0.0, 1.0) for right in (0.0, 1.0)])
    sums = np.vstack([np.column_stack([tops, bottoms]), pseudo])
    mean = sums.mean(axis=0)
    spread = (sums - mean).T @ (sums - mean) * (groups / max(1.0, groups - 1.0))
    ratio = float(second.sum()) / total
    if total < CLEAR * math.sqrt(spread[1, 1]) or groups < 2:
        return Estimate(None, n=count, unit="questions")
    error = math.sqrt(max(0.0, spread[0, 0] - 2.0 * ratio * spread[0, 1] + ratio**2 * spread[1, 1])) / total
    interval = _fieller(ratio, total, spread, t_quantile(TAIL95, float(groups - 1)))
    return Estimate(ratio, error, interval, count, unit="questions")


def _fieller(ratio: float, total: float, spread: Floats, quantile: float) -> tuple[float, float] | None:
    """Return where (top - r·bottom)² ≤ t²·var(top - r·bottom); None where the bottom may be nothing."""
    v00, v01, v11 = (quantile**2 / total**2 * float(value) for value in (spread[0, 0], spread[0, 1], spread[1, 1]))
    leading = 1.0 - v11
    if leading <= 0.0:
        return None
    middle = ratio - v01
    inside = middle**2 - leading * (ratio**2 - v00)
    half = math.sqrt(max(0.0, inside))
    return (middle - half) / leading, (middle + half) / leading


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

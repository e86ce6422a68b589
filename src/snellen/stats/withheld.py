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
from .distributions import binomial_cdf
from .intervals import Floats, Integers
from .paired import paired_ratio

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

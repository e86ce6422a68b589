"""Paired values at several points in time to differences with a simultaneous band, and to an alarm that stays valid.

The band is a sup-t band: one factor for all points, the 95 % quantile of the largest studentized difference over all of
them, by normal multipliers of clusters (Montiel Olea and Plagborg-Møller, 2019, "Simultaneous confidence bands").
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.ids import derive_seed

Floats = NDArray[np.float64]
DRAWS, AT_ONCE = 4_000, 100
LEVEL = 0.95


class Band(NamedTuple):
    """Differences to the first point, and a band that holds all of them at once with the stated chance."""

    difference: Floats
    low: Floats
    high: Floats
    factor: float
    """Standard errors on either side: 1.96 for one point, more for several."""


def cluster_means(values: Floats, clusters: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Return the sums of each cluster (row) at each point (column), and the number of questions in each."""
    codes, place = np.unique(clusters, return_inverse=True)
    sums = np.zeros((codes.size, values.shape[1]))
    np.add.at(sums, place, values)
    return sums, np.bincount(place).astype(np.float64)


def simultaneous_band(values: Floats, clusters: NDArray[np.integer], *purpose: str | int) -> Band:
    """Return the band of the differences of every later column to the first.

    `values` has a row a question and a column a point in time; questions of one cluster are drawn together. Where no
    question changed, the standard error counts as that of one question in all: nobody has seen how rare a change is.
    """
    sums, sizes = cluster_means(values - values[:, :1], clusters)
    difference = sums.sum(0) / sizes.sum()
    if values.shape[1] == 1:
        return Band(difference, difference.copy(), difference.copy(), 0.0)
    generator = np.random.default_rng(derive_seed("sup-band", *purpose))
    influence = (sums - np.outer(sizes, difference)) / sizes.sum() * math.sqrt(sizes.size / max(1, sizes.size - 1))
    error = np.maximum(np.sqrt((influence**2).sum(0)), 1.0 / sizes.sum())
    error[0] = 0.0
    largest = np.empty(DRAWS)
    for start in range(0, DRAWS, AT_ONCE):  # some at a time: multipliers of a large run are gigabytes
        drawn = generator.standard_normal((AT_ONCE, sizes.size)) @ influence
        largest[start : start + AT_ONCE] = np.abs(drawn[:, 1:] / error[1:]).max(1)
    factor = max(float(np.quantile(largest, LEVEL)), NormalDist().inv_cdf(0.5 + LEVEL / 2))
    return Band(difference, difference - factor * error, difference + factor * error, factor)


def share_of_level(look: int, pairs: int, level: float = 0.05) -> float:
    """Return the level of one test of the `look`-th point (from 1) against one of `pairs` earlier ones.

    The shares of all looks and pairs add up to the level however long it goes on: a false alarm ever has at most that
    chance.
    """
    return level * 6.0 / (math.pi**2 * look**2) / max(1, pairs)


def fall(best: Floats, now: Floats, clusters: NDArray[np.integer], level: float) -> tuple[float, float]:
    """Return how much lower the mean is now than at its best, and the lower bound of that at a one-sided level."""
    sums, sizes = cluster_means((best - now)[:, None], clusters)
    mean = float(sums.sum() / sizes.sum())
    count = sizes.size
    spread = sums[:, 0] - mean * sizes
    total = float(sizes.sum())
    error = max(math.sqrt(float(spread @ spread) * count / max(1, count - 1)), 1.0) / total
    return mean, mean - NormalDist().inv_cdf(1.0 - level) * error

"""Cluster totals in, resampled statistics out: percentile intervals and paired tests that respect clusters.

Equal clusters are drawn together: one multinomial over the distinct totals replaces a draw for every cluster,
which is the same law and makes a million clusters as cheap as a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.ids import derive_seed
from .distributions import normal_cdf, t_quantile
from .intervals import NO_SPREAD, TAIL95, Floats, Interval, mean_interval, ratio_moments

Matrix = NDArray[np.float64]
DRAWS = 2_000
FEW_CLUSTERS = 10
ANYWHERE = (-math.inf, math.inf)
_CELLS_AT_ONCE = 4_000_000
_MAX_DISTINCT = 20_000
"""With more distinct cluster totals than this, the normal law is closer than 2,000 draws can tell."""


def resample(columns: Matrix, draws: int, *purpose: str | int) -> Matrix:
    """Return `draws` × columns: the column totals of clusters (rows) drawn with replacement."""
    distinct, counts = _distinct_rows(columns)
    generator = np.random.default_rng(derive_seed("bootstrap", *purpose))
    shares = counts / counts.sum()
    step = max(1, _CELLS_AT_ONCE // counts.size)
    parts = [
        generator.multinomial(int(counts.sum()), shares, size=min(step, draws - start)) @ distinct
        for start in range(0, draws, step)
    ]
    return np.concatenate(parts)


def _distinct_rows(columns: Matrix) -> tuple[Matrix, NDArray[np.int64]]:
    distinct, counts = np.unique(columns, axis=0, return_counts=True)
    return distinct, counts.astype(np.int64)


def percentile_interval(statistics: Floats, clusters: int, limits: Interval = ANYWHERE) -> Interval | None:
    """Return the 95 % percentile interval, widened for few clusters (Hesterberg 2015, expanded percentiles).

    No draw lies beyond what was seen: of fewer than ten clusters the t interval of the draws' spread counts where it is
    wider, within the `limits` that the statistic has. None where every draw gives the same: clusters that are all alike
    cannot tell how others would differ.
    """
    finite = statistics[np.isfinite(statistics)]
    if not finite.size or clusters < 2 or has_no_spread(finite):
        return None
    tail = normal_cdf(-math.sqrt(clusters / (clusters - 1)) * t_quantile(TAIL95, clusters - 1))
    low, high = np.quantile(finite, [tail, 1.0 - tail]).tolist()
    if clusters < FEW_CLUSTERS:
        spread = math.sqrt(clusters / (clusters - 1)) * float(np.std(finite))
        half, center = t_quantile(TAIL95, clusters - 1) * spread, float(np.mean(finite))
        low, high = min(low, center - half), max(high, center + half)
    return max(limits[0], low), min(limits[1], high)


def has_no_spread(values: Floats) -> bool:
    """Tell whether values are all the same but for rounding."""
    low, high = float(values.min()), float(values.max())
    return high - low <= NO_SPREAD * max(abs(low), abs(high))


def bootstrap_interval(
    columns: Matrix,
    statistic: Callable[[Matrix], Floats],
    *purpose: str | int,
    draws: int = DRAWS,
    limits: Interval = ANYWHERE,
) -> Interval | None:
    """Return the interval of `statistic`, a function of column totals (rows of its argument are draws)."""
    if not columns.shape[0]:
        return None
    return percentile_interval(statistic(resample(columns, draws, *purpose)), columns.shape[0], limits)


def ratio(totals: Matrix) -> Floats:
    """Return first column / second column; NaN where the second is 0 (dropped by the interval)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(totals[:, 0] / totals[:, 1], dtype=np.float64)


def difference_interval(
    differences: Floats, sizes: Floats, *purpose: str | int, draws: int = DRAWS, limits: Interval = ANYWHERE
) -> Interval | None:
    """Return the 95 % interval of the mean paired difference, clusters drawn together."""
    if differences.size < 2:
        return None
    columns = np.column_stack([differences, sizes])
    if np.unique(columns, axis=0).shape[0] > _MAX_DISTINCT:
        return mean_interval(ratio_moments(differences, sizes))
    return bootstrap_interval(columns, ratio, *purpose, draws=draws, limits=limits)


def difference_p_value(differences: Floats, sizes: Floats, *purpose: str | int, draws: int = DRAWS) -> float:
    """Return the two-sided paired bootstrap p-value of "no difference".

    The resampled differences are moved to the null; the observed one is set against them after dividing by the
    widening factor of `percentile_interval`, so that few clusters do not make false finds.
    """
    if differences.size < 2 or not np.any(differences):
        return 1.0
    observed = float(differences.sum() / sizes.sum())
    count = differences.size
    widen = math.sqrt(count / (count - 1)) * t_quantile(TAIL95, count - 1) / t_quantile(TAIL95, 1e9)
    columns = np.column_stack([differences, sizes])
    if np.unique(columns, axis=0).shape[0] > _MAX_DISTINCT:
        return 2.0 * normal_cdf(-abs(observed) / (ratio_moments(differences, sizes).stderr or math.inf))
    drawn = ratio(resample(columns, draws, *purpose)) - observed
    beyond = int(np.count_nonzero(np.abs(drawn) >= abs(observed) / widen - 1e-12))
    return (1.0 + beyond) / (1.0 + draws)


def swap_p_value(differences: Floats, *purpose: str | int, draws: int = DRAWS) -> float:
    """Return the p-value of the paired randomisation test: each cluster's two results swapped by a fair coin.

    For one 0/1 trial a cluster this is McNemar's exact test; here any values and cluster sizes are allowed.
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0.0]), return_counts=True)
    if not sizes.size:
        return 1.0
    observed = abs(float(differences.sum()))
    if sizes.size > _MAX_DISTINCT:
        return 2.0 * normal_cdf(-observed / math.sqrt(float((differences**2).sum())))
    generator = np.random.default_rng(derive_seed("swap", *purpose))
    step = max(1, _CELLS_AT_ONCE // sizes.size)
    beyond = 0
    for start in range(0, draws, step):
        heads = generator.binomial(counts, 0.5, size=(min(step, draws - start), sizes.size))
        beyond += int(np.count_nonzero(np.abs((2.0 * heads - counts) @ sizes) >= observed * (1.0 - 1e-12)))
    return (1.0 + beyond) / (1.0 + draws)

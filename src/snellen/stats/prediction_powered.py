"""A machine's verdicts on everything and people's labels on a few to one estimate: prediction-powered inference.

The machine's mean is corrected by how far it was off where people looked (Angelopoulos et al. 2023), with the weight of
the machine chosen so that a bad one cannot hurt (PPI++, 2023). The few must have been drawn at random.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.types import Estimate
from .distributions import t_quantile
from .intervals import TAIL95, Floats, Integers, cluster_totals

FEWEST_LABELS = 10
"""With fewer the spread of the labels says nothing, and no estimate is given."""
FOLDS = 5
IMAGINED = 1.0
"""One disagreement each way is imagined when the spread is estimated: a machine that was never caught may still err."""


def prediction_powered_mean(
    verdicts: Floats,
    labels: Floats,
    clusters: Integers | None = None,
    *,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Return the mean label of all items, of which `labels` knows a random part (NaN: nobody looked).

    `verdicts` are the machine's on all items; both lie on `scale`, and so does the interval.
    """
    seen = ~np.isnan(labels)
    known, count = int(seen.sum()), int(verdicts.size)
    if known < FEWEST_LABELS or known == count:
        return _of_labels_alone(labels[seen], None if clusters is None else clusters[seen], count - known, scale)
    weights = _machine_weights(verdicts, labels[seen], verdicts[seen])
    trust, rest = float(weights.mean()), verdicts[~seen]
    errors = labels[seen] - weights * verdicts[seen]
    value = trust * float(rest.mean()) + float(errors.mean())
    influence = np.where(seen, 0.0, trust * (verdicts - rest.mean()) / rest.size)
    influence[seen] = (errors - errors.mean()) / known
    sums, _ = cluster_totals(influence, clusters)
    variance = sums.size / (sums.size - 1) * float((sums**2).sum()) + _imagined_variance(known, scale)
    degrees = _clusters(clusters, seen, known) - 1.0
    return _bounded(value, math.sqrt(variance), degrees, scale, count)


def _machine_weights(verdicts: Floats, labels: Floats, judged: Floats) -> Floats:
    """Return how far the machine is trusted on each labelled item, 0 to 1: what makes the variance smallest.

    It is learned from the labels of the other folds: learned from the item's own it would shift the mean.
    """
    spread, few = float(np.var(verdicts, ddof=1)), labels.size / max(1, verdicts.size - labels.size)
    folds = np.arange(labels.size) % FOLDS
    weights = np.zeros(labels.size)
    for fold in range(FOLDS) if spread > 0.0 else ():
        others = folds != fold
        shared = float(np.cov(labels[others], judged[others], ddof=1)[0, 1])
        weights[~others] = min(1.0, max(0.0, shared / ((1.0 + few) * spread)))
    return weights


def _imagined_variance(known: int, scale: tuple[float, float]) -> float:
    """Return the variance that one disagreement each way would add to the mean of the labels' corrections."""
    return 2.0 * IMAGINED * (scale[1] - scale[0]) ** 2 / (known + 2.0) ** 2


def _clusters(clusters: Integers | None, seen: np.ndarray[tuple[int], np.dtype[np.bool_]], known: int) -> float:
    return float(known if clusters is None else np.unique(clusters[seen]).size)


def _of_labels_alone(
    labels: Floats, clusters: Integers | None, unlabelled: int, scale: tuple[float, float]
) -> Estimate:
    """Return the mean of the labels where all are known; None where they are too few to say anything of the rest."""
    if unlabelled or not labels.size:
        return Estimate(None, n=int(labels.size), left_out=unlabelled)
    sums, sizes = cluster_totals(labels - labels.mean(), clusters)
    if sums.size < 2:
        return Estimate(float(labels.mean()), n=int(labels.size))
    variance = sums.size / (sums.size - 1) * float((sums**2).sum()) / float(sizes.sum()) ** 2
    variance += _imagined_variance(int(labels.size), scale)
    return _bounded(float(labels.mean()), math.sqrt(variance), float(sums.size - 1), scale, int(labels.size))


def _bounded(value: float, stderr: float, degrees: float, scale: tuple[float, float], count: int) -> Estimate:
    half = t_quantile(TAIL95, float(f"{max(1.0, degrees):.3g}")) * stderr
    low, high = max(scale[0], value - half), min(scale[1], value + half)
    return Estimate(min(scale[1], max(scale[0], value)), stderr, (low, high), count)

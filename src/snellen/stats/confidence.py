"""Confidences and results to how far they agree, and what is risked at each share answered, with intervals.

Intervals draw whole clusters. The calibration error of a sample lies above the true one, because the gaps of bins are
taken without their sign: its interval allows for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.ids import derive_seed
from ..core.types import Estimate
from .bootstrap import DRAWS, has_no_spread
from .intervals import NO_SPREAD, Z95, Floats, Integers, Interval

BINS = 15
FEW_DRAWS, MANY = 400, 4_000
"""Draws of a risk–coverage curve, and how many answers are too many to draw more."""
WEIGHTS_AT_ONCE = 1_000_000
"""Of draws × answers, so that memory does not grow with a run."""
SHOWN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FEWEST = 20
"""Answers below which nothing is said."""


class Confidence(Struct, frozen=True):
    """How sure, how right, and what is risked by answering only the surest."""

    source: str
    """Where the confidence comes from: repeats, stated or likelihood."""
    n: int
    confidence: float
    accuracy: float
    ece: Estimate
    aurc: Estimate
    """The mean risk over all shares answered; by chance it is 1 - accuracy, lower is better."""
    risk: tuple[tuple[float, float], ...]
    """(share answered, error among them), the surest first."""
    without: int = 0
    """Replies that have no such confidence."""


def describe_confidence(
    source: str, sure: Floats, right: Floats, clusters: Integers | None = None, *, without: int = 0
) -> Confidence | None:
    """Return calibration and risk of answers with their confidences (both 0…1); None of too few."""
    if sure.size < FEWEST:
        return None
    codes = np.arange(sure.size) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return Confidence(
        source,
        int(sure.size),
        float(sure.mean()),
        float(right.mean()),
        expected_error(sure, right, codes),
        area(sure, right, codes),
        tuple((share, risk_at(sure, right, share)) for share in SHOWN),
        without,
    )


def expected_error(sure: Floats, right: Floats, clusters: Integers) -> Estimate:
    """Return the expected calibration error over 15 equal bins with a cautious 95 % interval.

    Noise adds to the value, so the interval reaches down from it less the noise (a bin's gap g with error s counts as
    √max(0, g² - s²)); to 0 where a perfectly calibrated model would show as much as was seen.
    """
    place = np.clip(np.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
    count = int(clusters.max()) + 1
    gaps = np.zeros((count, BINS + 1))
    np.add.at(gaps, (clusters, place), sure - right)
    gaps[:, BINS] = np.bincount(clusters, minlength=count)
    total = float(gaps[:, BINS].sum())
    mean = gaps[:, :BINS].sum(axis=0) / total
    noise = np.maximum(0.0, (gaps[:, :BINS] ** 2).sum(axis=0) / total**2 - mean**2 / count)
    least = float(np.sqrt(np.maximum(0.0, mean**2 - noise)).sum())
    drawn = np.random.default_rng(derive_seed("ece")).normal(mean, np.sqrt(noise), (DRAWS, BINS))
    spread = float(np.abs(drawn).sum(axis=1).std())
    plain = float(np.abs(mean).sum())
    low = 0.0 if plain <= _by_noise(sure, place) else max(0.0, least - Z95 * spread)
    ends = (low, min(1.0, plain + Z95 * spread))
    return Estimate(plain, spread, ends if spread > NO_SPREAD else None, int(sure.size), unit="trials")


def _by_noise(sure: Floats, place: Integers) -> float:
    """Return the calibration error that a perfectly calibrated model exceeds once in forty samples of this size."""
    generator = np.random.default_rng(derive_seed("calibrated"))
    wide = np.sqrt(np.bincount(place, weights=sure * (1.0 - sure), minlength=BINS))  # of sums of many: normal
    drawn = np.abs(generator.normal(size=(DRAWS, BINS)) * wide).sum(axis=1) / sure.size
    return float(np.quantile(drawn, 0.975))


def risk_at(sure: Floats, right: Floats, share: float) -> float:
    """Return the error among the surest share of answers; equally sure ones at its edge count in part."""
    order = np.argsort(-sure, kind="stable")
    wanted = share * sure.size
    levels, place = np.unique(-sure[order], return_inverse=True)
    counts = np.bincount(place)
    wrong = np.bincount(place, weights=1.0 - right[order])
    before = np.cumsum(counts) - counts
    taken = np.clip((wanted - before) / counts, 0.0, 1.0)
    return float((taken * wrong).sum() / wanted) if levels.size else 0.0


def area(sure: Floats, right: Floats, clusters: Integers) -> Estimate:
    """Return the area under the risk–coverage curve (AURC) with its 95 % interval."""
    levels, place = np.unique(-sure, return_inverse=True)
    value = _areas(np.ones((1, sure.size)), place, levels.size, right)[0]
    draws = FEW_DRAWS if sure.size > MANY else DRAWS // 2
    generator = np.random.default_rng(derive_seed("aurc"))
    count = int(clusters.max()) + 1
    shares, step = np.full(count, 1 / count), max(1, WEIGHTS_AT_ONCE // sure.size)
    weights = (generator.multinomial(count, shares, min(step, draws - start)) for start in range(0, draws, step))
    drawn = np.concatenate(
        [_areas(some[:, clusters].astype(np.float64), place, levels.size, right) for some in weights]
    )
    ends: Interval = (float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975)))
    interval = None if has_no_spread(drawn) else ends  # answers that are all alike cannot tell how others would differ
    return Estimate(float(value), float(drawn.std()), interval, int(sure.size), unit="trials")


def _areas(weights: NDArray[np.float64], place: Integers, levels: int, right: Floats) -> Floats:
    """Return the area for each row of weights: equally sure answers are taken together."""
    counts, wrong = np.zeros((len(weights), levels)), np.zeros((len(weights), levels))
    np.add.at(counts.T, place, weights.T)
    np.add.at(wrong.T, place, (weights * (1.0 - right)).T)
    risk = np.cumsum(wrong, axis=1) / np.maximum(np.cumsum(counts, axis=1), 1e-12)
    return np.asarray((risk * counts).sum(axis=1) / counts.sum(axis=1), dtype=np.float64)


def softmax(loglikelihoods: Sequence[float], temperature: float = 1.0) -> Floats:
    """Return the probabilities of the choices; a choice of -inf gets 0."""
    values = np.asarray(loglikelihoods, dtype=np.float64) / temperature
    if not values.size or np.isnan(values).any() or not np.isfinite(values.max()):
        raise DataError(
            f"log-likelihoods {list(loglikelihoods)} have no largest finite value: no confidence can be computed"
        )
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)

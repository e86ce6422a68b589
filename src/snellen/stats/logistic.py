"""Graded trials in, a psychometric curve out: where along a severity or size does a model start to fail.

P(right at x) = guess + (1 - guess - lapse) · logistic(intercept + slope·x), fitted by damped Fisher scoring with a
weak normal prior on the standardised coefficients, so that perfectly separated data have a finite curve too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .bootstrap import percentile_interval, resample
from .intervals import Floats, Interval

_PRIOR_VARIANCE = 25.0
_PRIOR_INFORMATION = np.eye(2) / _PRIOR_VARIANCE
_STEPS = 100
_FLAT_SLOPE = 1e-9


class Curve(Struct, frozen=True):
    """A fitted psychometric curve; `slope` is negative when a larger x is harder."""

    intercept: float
    slope: float
    guess: float = 0.0
    lapse: float = 0.0

    def probability(self, x: float) -> float:
        """Return the chance of a right answer at `x`."""
        return self.guess + (1.0 - self.guess - self.lapse) / (
            1.0 + math.exp(-_bounded(self.intercept + self.slope * x))
        )

    def where(self, probability: float) -> float | None:
        """Return the x at which the curve passes `probability`; None where it never does."""
        share = (probability - self.guess) / (1.0 - self.guess - self.lapse)
        if abs(self.slope) < _FLAT_SLOPE or not 0.0 < share < 1.0:
            return None
        return (math.log(share / (1.0 - share)) - self.intercept) / self.slope


def fit_curve(x: Floats, right: Floats, trials: Floats, *, guess: float = 0.0, lapse: float = 0.0) -> Curve | None:
    """Fit the curve to `right` of `trials` at each `x`; None when there are no trials or only one x."""
    if not 0.0 <= guess < 1.0 or not 0.0 <= lapse < 1.0 - guess:
        raise ValueError(f"guess {guess} and lapse {lapse} must leave room for a curve")
    seen = trials > 0
    if np.unique(x[seen]).size < 2:
        return None
    center, scale = float(x[seen].mean()), float(x[seen].std())
    design = np.column_stack([np.ones(int(seen.sum())), (x[seen] - center) / scale])
    intercept, slope = _newton(_Data(design, right[seen], trials[seen], guess, 1.0 - guess - lapse))
    return Curve(intercept - slope * center / scale, slope / scale, guess, lapse)


class _Data(NamedTuple):
    design: NDArray[np.float64]
    right: Floats
    trials: Floats
    guess: float
    span: float


def _newton(data: _Data) -> tuple[float, float]:
    weights = np.zeros(2)
    for _ in range(_STEPS):
        step = _scoring_step(weights, data)
        size = float(np.abs(step).max())
        weights = weights + step / max(1.0, size)
        if size < 1e-12:
            break
    return float(weights[0]), float(weights[1])


def _scoring_step(weights: NDArray[np.float64], data: _Data) -> NDArray[np.float64]:
    """Return one step of Fisher scoring for the binomial likelihood and the prior."""
    design, right, trials, guess, span = data
    # `np.clip` is these two in a wrapper that takes longer than they do: an interval is a thousand steps.
    share = 1.0 / (1.0 + np.exp(-np.minimum(np.maximum(design @ weights, -30.0), 30.0)))
    chance = np.minimum(np.maximum(guess + span * share, 1e-12), 1.0 - 1e-12)
    slope = span * share * (1.0 - share)
    variance = chance * (1.0 - chance)
    gradient = design.T @ ((right - trials * chance) * slope / variance) - weights / _PRIOR_VARIANCE
    information = (design * (trials * slope * slope / variance)[:, None]).T @ design + _PRIOR_INFORMATION
    return np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)


def threshold_interval(
    x: Floats,
    right: NDArray[np.float64],
    trials: NDArray[np.float64],
    probability: float,
    *,
    guess: float = 0.0,
    lapse: float = 0.0,
    draws: int = 200,
) -> Interval | None:
    """Return the 95 % interval of `Curve.where(probability)`; rows of `right` and `trials` are clusters, columns x."""
    if right.shape[0] < 2:
        return None
    totals = resample(np.hstack([right, trials]), draws, "threshold")
    columns = right.shape[1]
    curves = (fit_curve(x, row[:columns], row[columns:], guess=guess, lapse=lapse) for row in totals)
    found = [curve.where(probability) for curve in curves if curve is not None]
    return percentile_interval(
        np.array([value for value in found if value is not None], dtype=np.float64), right.shape[0]
    )


def _bounded(value: float) -> float:
    return min(700.0, max(-700.0, value))

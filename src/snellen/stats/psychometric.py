"""Rows of graded trials in, a threshold with its interval out: a psychometric model with chance, lapse and correlation.

P(right | x) = g + (1 - g - lapse) · logistic(slope · (x - threshold)), with g known for every row: what a guess gives.
The trials of a row are not independent: a row counts as one beta-binomial draw whose correlation is part of the model.
Everything unknown lies on a grid, so that the interval is a statement of the posterior and not of an approximation:
first a coarse one over the whole axis, then a fine one where the mass is. The threshold is where half of what can be
read above chance is read (Wichmann & Hill 2001; Kontsevich & Tyler 1999 for the grid).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .intervals import Floats, Interval

MARGIN = 0.6
"""How far beyond the tested x a threshold is thought of, so that "outside" is a statement of the posterior."""
USUAL_SLOPE, SLOPE_SPREAD = 5.5, 0.9
"""Prior of the slope: log-normal, wide."""
USUAL_LAPSE = 0.02
"""Prior of the lapse: exponential, its mean."""
NO_CORRELATION = 0.5
"""Prior probability that the trials of a row are independent; else any correlation is as likely as another."""
LUCK = (1.0, 0.0)
LUCK_PRIOR = (0.95, 0.05)
"""Whether guesses hit as often as chance says, or never: a reader may know only wrong answers."""
_NEVER = 1e-3
_TINY = 1e-9


FAR = math.log(19.0)
"""Slope times the way from the threshold to where 95 % of what can be right is right, of the logistic law."""


def logistic_curve(reach: Floats) -> Floats:
    """Return the logistic function, for any finite reach."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(reach, -40.0, 40.0))))


class Law(NamedTuple):
    """A curve from 0 to 1 that is one half at 0 and as steep there as the logistic, and where it reaches 95 %."""

    curve: Callable[[Floats], Floats]
    far: float


_LN2 = math.log(2.0)
LOGISTIC = Law(logistic_curve, FAR)
OTHER_LAWS = (
    Law(
        lambda reach: np.asarray(1.0 - np.exp(-_LN2 * np.exp(np.clip(reach / (2 * _LN2), -40.0, 5.0)))),
        2 * _LN2 * math.log(math.log(20.0) / _LN2),
    ),
    Law(
        lambda reach: np.asarray(np.exp(-_LN2 * np.exp(-np.clip(reach / (2 * _LN2), -5.0, 40.0)))),
        -2 * _LN2 * math.log(-math.log(0.95) / _LN2),
    ),
)
"""Weibull, whose upper end is short, and Gumbel, whose upper end is long: what an observer may be like instead."""


def right_share(reach: Floats, slope: Floats, guess: float | Floats, lapse: Floats, law: Law = LOGISTIC) -> Floats:
    """Return P(right) at `reach` = x - threshold: the model of all that is fitted here."""
    return np.asarray(guess + (1.0 - guess - lapse) * law.curve(slope * reach))


class Rows(NamedTuple):
    """Parallel columns: where, how many trials, how many right, the chance of a guess, and what the row weighs."""

    x: Floats
    trials: Floats
    right: Floats
    guess: Floats
    weight: Floats


class Threshold(Struct, frozen=True):
    """What the posterior says: medians, and the 95 % interval of the threshold in the units of x."""

    value: float
    interval: Interval
    slope: float
    lapse: float
    correlation: float
    inside: float
    """The probability that the threshold lies within the tested x."""


class _Axes(NamedTuple):
    threshold: Floats
    slope: Floats
    lapse: Floats
    correlation: Floats
    luck: Floats


Cube = NDArray[np.float64]
"""Log posterior over (luck, correlation, threshold, slope, lapse)."""


def fit_threshold(rows: Rows) -> Threshold | None:
    """Return the posterior of the threshold; None where there are no trials, or they were all made at one x."""
    seen = (rows.trials > 0) & (rows.weight > 0)
    rows = Rows(*(column[seen] for column in rows))
    if np.unique(rows.x).size < 2:
        return None
    low, high = float(rows.x.min()), float(rows.x.max())
    axes = _Axes(
        np.linspace(low - MARGIN, high + MARGIN, max(25, math.ceil((high - low + 2 * MARGIN) / 0.1))),
        np.geomspace(1.0, 40.0, 8),
        np.array([0.005, 0.08]),
        np.array([0.0, 0.2]),
        np.array(LUCK if rows.guess.any() else LUCK[:1]),
    )
    fine = _zoom(axes, _share(_posterior(rows, axes)))
    return _summary(fine, _share(_posterior(rows, fine)), (low, high))


def log_likelihood(right: Floats, trials: Floats, chance: Cube, correlation: float) -> Cube:
    """Return ln P of `right` of `trials` for a beta-binomial row of mean `chance`, without the constant ways to do it.

    The first axis of `chance` runs over the rows; others may follow.
    """
    chance = np.clip(chance, _TINY, 1.0 - _TINY)
    shape = (-1, *(1,) * (chance.ndim - 1))
    if correlation == 0.0:
        hits = right.reshape(shape)
        return np.asarray(hits * np.log(chance) + (trials.reshape(shape) - hits) * np.log1p(-chance))
    total = np.zeros_like(chance)
    own = 1.0 - correlation
    for row, (hit, tried) in enumerate(zip(right, trials, strict=True)):
        missed = tried - hit
        for place in range(math.ceil(tried)):
            step = place * correlation
            total[row] -= math.log(own + step)
            if place < hit:
                total[row] += np.log(chance[row] * own + step)
            if place < missed:
                total[row] += np.log((1.0 - chance[row]) * own + step)
    return total


def _posterior(rows: Rows, axes: _Axes) -> Cube:
    reach = (rows.x[:, None, None] - axes.threshold[:, None]) * axes.slope
    curve = (1.0 / (1.0 + np.exp(-np.clip(reach, -30.0, 30.0))))[..., None]
    cube = np.empty((axes.luck.size, axes.correlation.size, *curve.shape[1:3], axes.lapse.size))
    for place, luck in enumerate(axes.luck):
        guess = (rows.guess * luck)[:, None, None, None]
        chance = guess + np.maximum(1.0 - guess - axes.lapse, _NEVER) * curve
        for other, correlation in enumerate(axes.correlation):
            log_rows = log_likelihood(rows.right, rows.trials, chance, float(correlation))
            cube[place, other] = np.tensordot(rows.weight, log_rows, axes=1)
    prior = -0.5 * ((np.log(axes.slope) - math.log(USUAL_SLOPE)) / SLOPE_SPREAD) ** 2
    lucky = np.log([LUCK_PRIOR[LUCK.index(float(luck))] for luck in axes.luck])
    cube += prior[:, None] + lucky[:, None, None, None, None]
    lapses = _widths(axes.lapse) * np.exp(-axes.lapse / USUAL_LAPSE)
    return cube + np.log(lapses) + np.log(_belief(axes.correlation))[:, None, None, None]


def _belief(correlation: Floats) -> Floats:
    """Return the prior of the correlation: some of it on none, the rest flat."""
    spread = _widths(correlation) * (correlation > 0)
    return np.asarray((correlation == 0) * NO_CORRELATION + (1 - NO_CORRELATION) * spread / spread.sum())


def _widths(values: Floats) -> Floats:
    """Return how much of a flat prior each point of an uneven axis stands for."""
    edges = np.r_[values[0], (values[1:] + values[:-1]) / 2, values[-1]]
    return np.maximum(np.diff(edges), _TINY) if values.size > 1 else np.ones(1)


def _share(cube: Cube) -> Cube:
    share = np.exp(cube - cube.max())
    return np.asarray(share / share.sum())


def _zoom(axes: _Axes, share: Cube) -> _Axes:
    """Return finer axes over all that the coarse posterior leaves possible."""
    place = share.sum(axis=(0, 1, 3, 4))
    mean = float(place @ axes.threshold)
    step = float(axes.threshold[1] - axes.threshold[0])
    spread = max(step * 0.7, math.sqrt(float(place @ (axes.threshold - mean) ** 2)))
    low, high = max(axes.threshold[0], mean - 4.5 * spread), min(axes.threshold[-1], mean + 4.5 * spread)
    steep = _kept(axes.slope, share.sum(axis=(0, 1, 2, 4)))
    correlated = float(share[:, 1:].sum()) > _NEVER
    return _Axes(
        np.linspace(low, high, 41),
        np.geomspace(steep[0], steep[1], 9),
        np.array([0.0, 0.01, 0.03, 0.08, 0.18]),
        np.array([0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9] if correlated else [0.0, 0.03, 0.08]),
        np.array([luck for luck, mass in zip(axes.luck, share.sum(axis=(1, 2, 3, 4)), strict=True) if mass > _NEVER]),
    )


def _kept(values: Floats, mass: Floats) -> tuple[float, float]:
    """Return the ends of the part of an axis that has mass, a step wider on either side."""
    places = np.flatnonzero(mass > _NEVER)
    return float(values[max(0, places[0] - 1)]), float(values[min(values.size - 1, places[-1] + 1)])


def _summary(axes: _Axes, share: Cube, tested: tuple[float, float]) -> Threshold:
    place = share.sum(axis=(0, 1, 3, 4))
    low, middle, high = (_quantile(axes.threshold, place, part) for part in (0.025, 0.5, 0.975))
    slope = math.exp(float(share.sum(axis=(0, 1, 2, 4)) @ np.log(axes.slope)))
    lapse = float(share.sum(axis=(0, 1, 2, 3)) @ axes.lapse)
    correlation = float(share.sum(axis=(0, 2, 3, 4)) @ axes.correlation)
    inside = _below(axes.threshold, place, tested[1]) - _below(axes.threshold, place, tested[0])
    return Threshold(middle, (low, high), slope, lapse, correlation, inside)


def _quantile(values: Floats, mass: Floats, part: float) -> float:
    edges, total = _cumulative(values, mass)
    return float(np.interp(part, total, edges))


def _below(values: Floats, mass: Floats, limit: float) -> float:
    edges, total = _cumulative(values, mass)
    return float(np.interp(limit, edges, total))


def _cumulative(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return the edges of the cells around evenly spaced points, and the mass below each edge."""
    half = (values[1] - values[0]) / 2
    return np.r_[values - half, values[-1] + half], np.r_[0.0, np.cumsum(mass)]

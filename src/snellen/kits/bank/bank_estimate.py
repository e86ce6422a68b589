"""Outcomes of a few questions and a bank's predictions of all to the score of the whole, with an interval that holds.

The questions asked are a random prefix. Predictions of a question come from the other four fifths of what was asked,
and what they miss is added back (cross-fitted difference estimator), so the bank's errors cost width and never truth;
how far the bank is trusted is learned from its predictions of the questions asked. Simulations: docs/benchmarks.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from ...stats.distributions import t_quantile
from ...stats.intervals import TAIL95, Interval, wilson
from .item_bank import Array, Booleans, Indices, Predictor

FOLDS = 5
PRIOR_UNITS = 10.0
"""The variance of what the bank left is pulled to that of the outcomes by so many 0/1 questions; partial scores vary
less than these, and pull less."""
LEAST_EFFECT = 0.02
FEWEST_ASKED, FEWEST_OF_A_TAG = 50, 50
LOOK_EVERY = 25
"""`--until-ci` looks at the width after so many questions, from the fewest on: then a fixed interval still covers."""


class WholeEstimate(Struct, frozen=True):
    """The score of the whole benchmark from the part that was asked."""

    value: float
    interval: Interval | None
    """None where everything was asked: then the score is exact."""
    trust: float
    """How far the bank's predictions are used, 0 to 1."""
    asked: int
    items: int
    mean: float
    """Of what was asked; not the score of the whole."""
    plain: Interval | None
    """The interval that the same questions give without a bank."""
    alike: float
    """Questions without a bank for an interval as narrow, at most all."""

    @property
    def half_width(self) -> float:
        """Return half of the interval's width, 0 where the score is exact."""
        return 0.0 if self.interval is None else (self.interval[1] - self.interval[0]) / 2.0


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Asked outcomes of t models, the fold of each, and what every fold's predictor says of all items."""

    index: Indices
    values: Array
    units: Indices
    predictions: Array
    """(t, folds, items): fold k's come from the outcomes of the other folds."""

    @property
    def folds(self) -> Indices:
        """Return the fold of every asked item."""
        return np.asarray(self.units % FOLDS)


def cross_fit(predictor: Predictor | None, index: Indices, values: Array, units: Indices | None = None) -> CrossFit:
    """Fit the predictor to what was asked, fold by fold: `index` and `values` are (t, n) in the order of the draw.

    `units` numbers the groups in that order; questions alone are groups of one. Without a predictor none is predicted.
    """
    if units is None:
        units = np.broadcast_to(np.arange(index.shape[1]), index.shape)
    if predictor is None:
        return CrossFit(index, values, units, np.zeros((len(index), FOLDS, 0)))
    weight = (units[:, None] % FOLDS != np.arange(FOLDS)[:, None]).astype(np.float64)
    return CrossFit(index, values, units, predictor.predict(index, values, weight))


@dataclass(frozen=True, slots=True)
class Estimates:
    """Of t models each: value, what the interval rests on, and the same without the bank."""

    value: Array
    mean: Array
    trust: Array
    asked: Array
    groups: Array
    effect: Array
    """The variance of one question's contribution in units of that of a plain 0/1 question."""
    plain_effect: Array
    items: int

    def interval(self, row: int, *, plain: bool = False) -> Interval | None:
        """Return the 95 % interval of one model; None where all was asked or one group is all there is."""
        left = 1.0 - self.asked[row] / self.items
        if left <= 0.0 or self.groups[row] < 2:
            return None
        effect = self.plain_effect[row] if plain else self.effect[row]
        value = self.mean[row] if plain else self.value[row]
        trials = self.asked[row] / (effect * left)
        return wilson(min(1.0, max(0.0, value)), trials, t_quantile(TAIL95, self.groups[row] - 1.0))


def estimates(fit: CrossFit, items: int, within: Booleans | None = None) -> Estimates:
    """Return the estimates of the mean over all items, or over those `within` (one tag)."""
    use = np.ones(fit.values.shape) if within is None else within[fit.index].astype(np.float64)
    total = items if within is None else int(within.sum())
    asked = use.sum(axis=1)
    mean = (use * fit.values).sum(axis=1) / asked
    outcome, groups = _spread(fit.values, use, fit.units)
    if fit.predictions.shape[2] == 0:
        trust, value, variance = np.zeros(len(mean)), mean, outcome
    else:
        own = np.take_along_axis(fit.predictions, fit.index[:, None], axis=2)  # (t, k, n)
        out = np.take_along_axis(own, fit.folds[:, None], axis=1)[:, 0]
        trust = _trust(fit.values, out, use)
        value = (1.0 - trust) * mean + trust * _corrected(fit, own, use, within, total)
        left, _ = _spread(fit.values - trust[:, None] * out, use, fit.units)
        variance = np.minimum(left * (groups - 1.0) / np.maximum(groups - 2.0, 1.0), outcome)
    pull = PRIOR_UNITS * np.minimum(1.0, _in_plain_units(outcome, mean, asked))
    variance = (groups * variance + pull * outcome) / (groups + pull)
    largest = _by_unit(use, fit.units).max(axis=1)
    effects = [_effect(one, mean, asked, asked / groups, largest) for one in (variance, outcome)]
    return Estimates(value, mean, trust, asked, groups, effects[0], effects[1], total)


def _corrected(fit: CrossFit, own: Array, use: Array, within: Booleans | None, total: int) -> Array:
    """Return Σ n_k/n · θ_k: outcomes where seen, predictions elsewhere, plus what a fold's predictions miss."""
    chosen = fit.predictions if within is None else fit.predictions[..., within]
    in_fold = (fit.folds[:, None] == np.arange(FOLDS)[:, None]) * use[:, None]  # (t, k, n)
    elsewhere = use[:, None] - in_fold
    size = in_fold.sum(axis=2)
    seen = (elsewhere * fit.values[:, None]).sum(axis=2)
    predicted = chosen.sum(axis=2) - (elsewhere * own).sum(axis=2)
    missed = (in_fold * (fit.values[:, None] - own)).sum(axis=2)
    stretch = (total - elsewhere.sum(axis=2)) / np.maximum(size, 1.0)
    theta = (seen + predicted + stretch * missed) / total
    return np.asarray((size * theta).sum(axis=1) / size.sum(axis=1))


def _trust(values: Array, out: Array, use: Array) -> Array:
    """Return the slope of outcomes on predictions made without them, from 0 to 1."""
    asked = use.sum(axis=1, keepdims=True)
    beyond = (out - (use * out).sum(axis=1, keepdims=True) / asked) * use
    spread = (beyond * out).sum(axis=1)
    shared = (beyond * values).sum(axis=1)
    slope = np.divide(shared, spread, out=np.zeros_like(shared), where=spread > 1e-12)
    return np.asarray(np.clip(slope, 0.0, 1.0))


def _spread(values: Array, use: Array, units: Indices) -> tuple[Array, Array]:
    """Return the variance that one question contributes, by residual totals of groups, and the number of groups."""
    asked = use.sum(axis=1, keepdims=True)
    residual = (values - (use * values).sum(axis=1, keepdims=True) / asked) * use
    groups, totals = _by_unit(use, units), _by_unit(residual, units)
    count = (groups > 0).sum(axis=1).astype(np.float64)
    return (totals**2).sum(axis=1) * count / np.maximum(count - 1.0, 1.0) / asked[:, 0], count


def _by_unit(values: Array, units: Indices) -> Array:
    rows, most = len(values), int(units.max()) + 1
    at = units + np.arange(rows)[:, None] * most
    totals = np.bincount(at.ravel(), weights=values.ravel(), minlength=rows * most)
    return totals.astype(np.float64).reshape(rows, most)


def _effect(variance: Array, mean: Array, asked: Array, usual: Array, largest: Array) -> Array:
    """Return the variance in units of a 0/1 question's; of outcomes all alike it is that of groups all alike."""
    found = _in_plain_units(variance, mean, asked, usual)
    return np.clip(found, LEAST_EFFECT, np.maximum(largest, 1.0))


def _in_plain_units(variance: Array, mean: Array, asked: Array, alike: Array | None = None) -> Array:
    """Return a variance in units of that of 0/1 outcomes of the same mean; `alike` (1) where these are all the same."""
    plain = mean * (1.0 - mean) * asked / np.maximum(asked - 1.0, 1.0)
    start = np.ones_like(plain) if alike is None else alike.copy()
    return np.asarray(np.divide(variance, plain, out=start, where=plain > 1e-12))


def whole_estimate(fit: CrossFit, items: int, within: Booleans | None = None) -> WholeEstimate:
    """Return the estimate of one model: the first of the fit."""
    found = estimates(fit, items, within)
    asked, total = int(found.asked[0]), found.items
    if asked >= total:
        return WholeEstimate(float(found.mean[0]), None, 0.0, asked, total, float(found.mean[0]), None, float(total))
    alike = asked / (asked + (total - asked) * found.effect[0] / found.plain_effect[0]) * total
    value = float(min(1.0, max(0.0, found.value[0])))
    return WholeEstimate(
        value,
        found.interval(0),
        float(found.trust[0]),
        asked,
        total,
        float(found.mean[0]),
        found.interval(0, plain=True),
        float(alike),
    )


def repetition_error(spreads: Array, repeats: int, items: int) -> float:
    """Return how far a full run may lie from its expectation by sampling alone: spreads are s² of asked questions."""
    return float(np.sqrt(spreads.mean() / repeats / items)) if spreads.size else 0.0

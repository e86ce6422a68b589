"""Many models' results on the same questions to what another model, asked a few of them, will do on the rest.

Half of a prediction is a logistic model with a few factors, half a ridge on principal components of the results. Either
is fitted to the bank once; a new model costs a few linear systems. Predictions are never a score: `bank_estimate` is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.intp]

MOST_FACTORS, MOST_COMPONENTS = 3, 30
MODELS_A_FACTOR = 8
SLOPE = 0.8
"""The prior mean of an item's slope on the first factor: better models are mostly better on every question."""
INTERCEPT_VARIANCE = 10.0
ROUNDS, STEPS = 24, 9
"""Rounds of the fit to the bank; Newton steps for a new model."""
FIRST_PRECISION = 0.25
"""Of a new model on the first factor: it may be stronger than all of the bank."""
SHIFT_PRECISION = 0.1
LEAST_NOISE = 0.01
OUTSIDE_WEIGHT = 5.0
"""Pseudo-questions that pull the mean of questions outside the bank to that of all that were asked."""
_FAR = 30.0


@dataclass(frozen=True, slots=True)
class Factors:
    """A logistic factor model: P(right) = σ(slopes · ability + easiness); a row an item."""

    slopes: Array
    easiness: Array
    abilities: Array
    """Of the models it was fitted to."""

    def fit(self, index: Indices, values: Array, weight: Array) -> Array:
        """Return the abilities of new models from their outcomes: shapes (t, n), (t, n) and (t, k, n) to (t, k, d)."""
        slopes, easiness = self.slopes[index], self.easiness[index]
        squares = (slopes[..., :, None] * slopes[..., None, :]).reshape(*index.shape, -1)
        size = slopes.shape[-1]
        precision = np.ones(size)
        precision[0] = FIRST_PRECISION
        ability = np.zeros((*weight.shape[:2], size))
        for _ in range(STEPS):
            share = sigmoid(ability @ slopes.swapaxes(1, 2) + easiness[:, None])
            gradient = ((values[:, None] - share) * weight) @ slopes - precision * ability
            information = ((share * (1.0 - share) * weight) @ squares).reshape(*ability.shape, size)
            ability += np.linalg.solve(information + np.diag(precision), gradient[..., None])[..., 0]
        return ability

    def predict(self, ability: Array) -> Array:
        """Return the chance of every item for abilities (…, d)."""
        return sigmoid(ability @ self.slopes.T + self.easiness)


@dataclass(frozen=True, slots=True)
class Components:
    """Item means and scaled principal components of what the bank's models did beyond them."""

    means: Array
    loadings: Array
    noise: float

    def fit(self, index: Indices, values: Array, weight: Array) -> Array:
        """Return the shift and the coordinates of new models from their outcomes, by ridge."""
        design = np.concatenate([np.ones((*index.shape, 1)), self.loadings[index]], axis=-1)
        size = design.shape[-1]
        precision = np.ones(size)
        precision[:2] = SHIFT_PRECISION, FIRST_PRECISION
        beyond = (values - self.means[index])[:, None] * weight
        weighted = weight[..., None] * design[:, None]  # (t, k, n, size)
        information = weighted.swapaxes(-1, -2) @ design[:, None] / self.noise + np.diag(precision)
        moment = beyond @ design / self.noise
        return np.linalg.solve(information, moment[..., None])[..., 0]

    def predict(self, place: Array) -> Array:
        """Return what every item would give, from 0 to 1."""
        return np.clip(place[..., 1:] @ self.loadings.T + place[..., :1] + self.means, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Predictor:
    """What a bank knows of a task's items; `known` are those in the bank."""

    factors: Factors
    components: Components
    known: Booleans

    @property
    def items(self) -> int:
        """Return the number of the task's items, those outside the bank included."""
        return int(self.known.size)

    def predict(self, index: Indices, values: Array, weight: Array) -> Array:
        """Return predictions of all items: of t models with n asked items each, from k selections of these.

        `index` and `values` are (t, n), `weight` is (t, k, n) with 0 for outcomes that must not be used; the result is
        (t, k, items). Items outside the bank are predicted by the mean of those that were asked, pulled to that of all.
        """
        inside = weight * self.known[index][:, None]
        found = 0.5 * self.factors.predict(self.factors.fit(index, values, inside))
        found += 0.5 * self.components.predict(self.components.fit(index, values, inside))
        if not self.known.all():
            found[..., ~self.known] = _outside_mean(values, weight, inside)[..., None]
        return found

    def for_items(self, columns: Indices) -> Predictor:
        """Return the predictor of other items: those at `columns` of this one, -1 for one outside the bank."""
        at = np.maximum(columns, 0)
        factors = Factors(self.factors.slopes[at], self.factors.easiness[at], self.factors.abilities)
        components = Components(self.components.means[at], self.components.loadings[at], self.components.noise)
        return Predictor(factors, components, (columns >= 0) & self.known[at])


def _outside_mean(values: Array, weight: Array, inside: Array) -> Array:
    outside = weight - inside
    overall = (weight @ values[..., None])[..., 0] / np.maximum(weight.sum(-1), 1.0)
    total = (outside @ values[..., None])[..., 0] + OUTSIDE_WEIGHT * overall
    return np.asarray(total / (outside.sum(-1) + OUTSIDE_WEIGHT))


def fit_predictor(results: Array) -> Predictor:
    """Fit both halves to a bank: models × items, values from 0 to 1, NaN where a model was not asked."""
    factors = fit_factors(results)
    seen = ~np.isnan(results)
    filled = np.where(seen, results, factors.predict(factors.abilities))
    return Predictor(factors, fit_components(filled), np.asarray(seen.any(axis=0)))


def fit_factors(results: Array, most: int = MOST_FACTORS) -> Factors:
    """Fit the factor model by alternating Newton steps: the mode under normal priors. Holes are masked."""
    models, items = results.shape
    size = max(1, min(most, models // MODELS_A_FACTOR))
    seen = ~np.isnan(results)
    known = np.where(seen, results, 0.0)
    abilities = _first_abilities(results, seen, size)
    item_prior = np.zeros(size + 1)
    item_prior[0] = SLOPE
    item_precision = np.ones(size + 1)
    item_precision[-1] = 1.0 / INTERCEPT_VARIANCE
    theta = np.tile(item_prior, (items, 1))
    for _ in range(ROUNDS):
        design = np.concatenate([abilities, np.ones((models, 1))], axis=1)
        share = sigmoid(design @ theta.T)
        theta += _newton_step(
            (share * (1.0 - share) * seen).T,
            ((known - share) * seen).T,
            design,
            item_precision,
            theta - item_prior,
        )
        share = sigmoid(design @ theta.T)
        weight, error = share * (1.0 - share) * seen, (known - share) * seen
        abilities = abilities + _newton_step(weight, error, theta[:, :-1], np.ones(size), abilities)
    return Factors(theta[:, :-1], theta[:, -1], abilities)


def _newton_step(weight: Array, error: Array, design: Array, precision: Array, off: Array) -> Array:
    """Return the step of every row: (rows, n) weights and errors, a design (n, d), distances from the prior."""
    size = design.shape[1]
    squares = (design[:, :, None] * design[:, None, :]).reshape(-1, size * size)
    information = (weight @ squares).reshape(-1, size, size) + np.diag(precision)
    gradient = error @ design - precision * off
    step = np.linalg.solve(information, gradient[..., None])[..., 0]
    return np.clip(step, -2.0, 2.0)


def _first_abilities(results: Array, seen: Booleans, size: int) -> Array:
    """Return a start: the standardised mean of each model, then the directions of what the means leave."""
    counts = np.maximum(seen.sum(axis=1), 1)
    means = np.where(seen, results, 0.0).sum(axis=1) / counts
    per_item = np.where(seen, results, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    first = means - means.mean()
    beyond = np.where(seen, results - per_item - first[:, None], 0.0)
    start = np.zeros((results.shape[0], size))
    start[:, 0] = first / (first.std() or 1.0)
    if size > 1:
        left, *_ = np.linalg.svd(beyond, full_matrices=False)
        start[:, 1:] = left[:, : size - 1] * np.sqrt(results.shape[0])
    return start


def fit_components(results: Array) -> Components:
    """Return the leading principal components of a matrix without holes, scaled by what they have beyond noise."""
    models = results.shape[0]
    count = min(MOST_COMPONENTS, max(1, models // 2))
    means = results.mean(axis=0)
    _, singular, right = np.linalg.svd(results - means, full_matrices=False)
    eigenvalues = singular**2 / models
    rest = eigenvalues[count : models - 1]
    scale = np.sqrt(np.maximum(eigenvalues[:count] - (np.median(rest) if rest.size else 0.0), 0.0))
    loadings = right[:count].T * scale
    explained = float((loadings**2).sum(axis=1).mean())
    noise = max(float((means * (1.0 - means)).mean()) - explained, LEAST_NOISE)
    return Components(means, np.ascontiguousarray(loadings), noise)


def sigmoid(x: Any) -> Array:
    """Return 1/(1+e^-x), safe far from zero."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(x, -_FAR, _FAR))))

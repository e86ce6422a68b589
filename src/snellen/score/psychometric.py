"""Counts of successes at stimulus strengths -> the threshold of a logistic curve, with a bootstrap interval over clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.ids import derive_seed

Array = NDArray[np.float64]

RIDGE = 1e-3
"""Weight of a faint pull of the slope towards SLOPE_PRIOR, so that data without a single slip still have a finite curve."""
SLOPE_PRIOR = 4.0
ITERATIONS = 60


@dataclass(frozen=True, slots=True)
class Curve:
    """Chance of success = guess + (1 − guess) · logistic(slope · ln(strength / threshold))."""

    threshold: float
    slope: float
    guess: float = 0.0

    def at(self, strength: float) -> float:
        """Return the chance of success at a strength."""
        return float(self.guess + (1 - self.guess) / (1 + np.exp(-self.slope * np.log(strength / self.threshold))))


def fit_curve(strength: Array, trials: Array, successes: Array, guess: float = 0.0) -> Curve | None:
    """Fit threshold and slope by maximum likelihood (Newton with step halving); None without any slip or any success."""
    if successes.sum() <= guess * trials.sum() or successes.sum() >= trials.sum():
        return None
    x = np.log(strength)
    centre = float(np.average(x, weights=trials))
    design = np.column_stack([np.ones_like(x), x - centre])
    weights = np.array([0.0, SLOPE_PRIOR])
    value = _objective(weights, design, trials, successes, guess)
    for _ in range(ITERATIONS):
        step = _newton_step(weights, design, trials, successes, guess)
        while np.abs(step).max() > 1e-9 and _objective(weights + step, design, trials, successes, guess) > value:
            step = step / 2
        weights = weights + step
        value = _objective(weights, design, trials, successes, guess)
        if np.abs(step).max() < 1e-8:
            break
    slope = max(float(weights[1]), 1e-3)
    return Curve(float(np.exp(np.clip(centre - weights[0] / slope, -50, 50))), slope, guess)


def _chance(weights: Array, design: Array, guess: float) -> tuple[Array, Array]:
    core = 1 / (1 + np.exp(-np.clip(design @ weights, -40, 40)))
    return core, np.clip(guess + (1 - guess) * core, 1e-12, 1 - 1e-12)


def _objective(weights: Array, design: Array, trials: Array, successes: Array, guess: float) -> float:
    _, chance = _chance(weights, design, guess)
    misfit = -float(successes @ np.log(chance) + (trials - successes) @ np.log(1 - chance))
    return misfit + RIDGE * float((weights[1] - SLOPE_PRIOR) ** 2)


def _newton_step(weights: Array, design: Array, trials: Array, successes: Array, guess: float) -> Array:
    core, chance = _chance(weights, design, guess)
    inner = (1 - guess) * core * (1 - core)
    score = inner * (successes / chance - (trials - successes) / (1 - chance))
    information = trials * inner**2 / (chance * (1 - chance))
    pull = np.array([0.0, 2 * RIDGE * (weights[1] - SLOPE_PRIOR)])
    hessian = design.T @ (design * information[:, None]) + np.diag([1e-9, 2 * RIDGE])
    step: Array = np.linalg.solve(hessian, design.T @ score - pull)
    return step


def bootstrap_thresholds(
    counts: Sequence[Array], guess: float = 0.0, *, draws: int = 400, seed: int = 0
) -> list[float]:
    """Refit on charts drawn with replacement; each item of `counts` is one chart's rows (strength, trials, successes)."""
    generator = np.random.default_rng(derive_seed(seed, "acuity-bootstrap", len(counts)))
    found = []
    for _ in range(draws):
        picked = np.concatenate([counts[index] for index in generator.integers(0, len(counts), len(counts))])
        curve = fit_curve(*pool(picked), guess)
        if curve is not None:
            found.append(curve.threshold)
    return found


def pool(rows: Array) -> tuple[Array, Array, Array]:
    """Add up the rows of equal strength: (strength, trials, successes), strengths rising."""
    strength, place = np.unique(rows[:, 0], return_inverse=True)
    return strength, np.bincount(place, rows[:, 1]).astype(np.float64), np.bincount(place, rows[:, 2]).astype(np.float64)

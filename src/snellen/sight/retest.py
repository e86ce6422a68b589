"""A belief and trials made after it in, whether they agree out: the predictive distribution of the count."""

from __future__ import annotations

import numpy as np

from ..stats.curve_laws import right_share
from ..stats.threshold_grid import CORRELATIONS, LAPSES, SLOPES, Belief, Places, ThresholdGrid

DRAWS = 2000


def compare_with_expected(
    grid: ThresholdGrid, belief: Belief, places: Places, right: float, draw: np.random.Generator
) -> tuple[float, float, float]:
    """Return the share right, the share expected, and how often chance is as far off: both sides, from draws."""
    mass = np.exp(belief[0] - belief[0].max())
    chosen = draw.choice(mass.size, DRAWS, p=(mass / mass.sum()).ravel())
    threshold, inner, correlation = np.unravel_index(chosen, mass.shape)
    reach = grid.x_of(places)[None, :] - grid.thresholds[threshold][:, None]
    slope, lapse = SLOPES[inner // LAPSES.size][:, None], LAPSES[inner % LAPSES.size][:, None]
    share = np.clip(right_share(np.asarray(reach, np.float64), slope, grid.guess, lapse), 1e-6, 1 - 1e-6)
    rho = (CORRELATIONS if grid.glyphs > 1 else CORRELATIONS[:1])[correlation][:, None]
    weight = (1 - rho) / np.maximum(rho, 1e-3)
    drawn = np.where(rho > 0, draw.beta(share * weight, (1 - share) * weight), share)
    counts = draw.binomial(grid.glyphs, drawn).sum(1)
    below, above = float(np.mean(counts <= right)), float(np.mean(counts >= right))
    total = places.size * grid.glyphs
    return right / total, float(counts.mean()) / total, min(1.0, 2 * min(below, above))

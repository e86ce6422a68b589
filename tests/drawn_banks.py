"""Drawn models and questions: a bank whose truth is known."""

from __future__ import annotations

import numpy as np


def drawn_bank(models: int = 40, items: int = 300, seed: int = 1, stronger: float = 0.0) -> np.ndarray:
    """Return right and wrong answers of models that differ in ability and in taste; the first are the weakest."""
    draw = np.random.default_rng(seed)
    ability = np.c_[np.sort(draw.normal(0.3 + stronger, 1.0, models)), draw.normal(0.0, 1.0, (models, 2))]
    slopes = np.c_[draw.normal(0.9, 0.4, items), draw.normal(0.0, 0.5, (items, 2))]
    chance = 1.0 / (1.0 + np.exp(-(ability @ slopes.T + draw.normal(0.0, 1.5, items))))
    return (draw.random(chance.shape) < chance).astype(float)

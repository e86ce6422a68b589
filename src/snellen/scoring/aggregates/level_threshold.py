"""A task whose samples have a level to the level at which half of what chance leaves is told, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.types import Estimate
from ...stats.psychometric import Rows, fit_threshold
from ..table import ScoredTask, ScoreTable
from .document_ladder import main_table
from .means import in_unit

LEVEL = "level"


def threshold_of_level(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return `threshold` (and one a variant, where there are several) in the units of the tag `level`.

    Without two levels, or where the threshold is not clearly among those tested, the value is None.
    """
    table = main_table(scored)
    if table is None or LEVEL not in table.tags:
        return {}
    chance = {sample.id: 1 / len(sample.options) if sample.options else 0.0 for sample in scored.samples()}
    found = {}
    for code, variant in enumerate(table.variants):
        name = "threshold" if len(table.variants) == 1 else f"threshold:{variant}"
        found[name] = _estimate(table.take(np.flatnonzero(table.variant == code)), chance)
    return in_unit("trials", found)


def _estimate(table: ScoreTable, chance: Mapping[str, float]) -> Estimate:
    codes, levels = table.tags[LEVEL]
    kept = table.scored & (codes[table.sample] >= 0)
    places = codes[table.sample][kept]
    x = np.array([math.log(float(levels[place])) for place in places])
    guess = np.array([chance.get(table.samples[place], 0.0) for place in table.sample[kept]])
    right = (table.value[kept] >= 1.0).astype(np.float64)
    n, unscored, failed = int(kept.sum()), int(table.unscored.sum()), int(table.failed.sum())
    ones = np.ones_like(right)
    fitted = fit_threshold(Rows(x, ones, right, guess, ones)) if x.size else None
    if fitted is None or fitted.inside < 0.5:  # outside of what was tested nobody knows
        return Estimate(None, n=n, unscored=unscored, failed=failed)
    low, high = fitted.interval
    return Estimate(math.exp(fitted.value), None, (math.exp(low), math.exp(high)), n, unscored, failed)

"""A task whose samples have a level to the level at which half of what chance leaves is told, with its interval.

The same over variants `fps=…`: the lowest frame rate at which it is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import DataError
from ...core.text import NO_TAG
from ...core.types import Estimate
from ...scoring.aggregates.means import axes_of, in_unit
from ...scoring.tables.table import ScoredTask, ScoreTable
from ...stats.intervals import Floats
from ...stats.psychometric import Rows, fit_threshold

LEVEL = "level"
RATE = "fps"


def threshold_of_level(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return `threshold` (and one a variant, where there are several) in the units of the tag `level`.

    Variants `fps=1`, `fps=4` also give `threshold_fps`, over all levels. Without two levels or rates, or where the
    threshold is not clearly among those tested, the value is None.
    """
    table = scored.main
    if table is None or LEVEL not in table.tags:
        return {}
    chance = {sample.id: 1 / len(sample.options) if sample.options else 0.0 for sample in scored.samples()}
    found = {}
    for code, variant in enumerate(table.variants):
        name = "threshold" if len(table.variants) == 1 else f"threshold:{variant}"
        rows = np.flatnonzero(table.variant == code)
        found[name] = _estimate(table.take(rows), _levels_of(table)[rows], chance)
    rates = _rates_of(table)
    if np.unique(rates[np.isfinite(rates)]).size > 1:
        rows = np.flatnonzero(np.isfinite(rates))
        found["threshold_fps"] = _estimate_rate(table.take(rows), rates[rows], chance)
    return in_unit("trials", found)


def _levels_of(table: ScoreTable) -> Floats:
    """Return the level of every trial; NaN where its sample has none."""
    codes, texts = table.tags[LEVEL]
    levels = np.array([*map(_level, texts), math.nan])
    return levels[codes[table.sample]]


def _level(text: str) -> float:
    """Return a level as a number; NaN of a sample without one. A threshold lies on a logarithmic axis."""
    if text in ("", NO_TAG):
        return math.nan
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0.0 < level < math.inf:
        raise DataError(f"tag level {text!r}: a threshold needs levels that are numbers above 0")
    return level


def _rates_of(table: ScoreTable) -> Floats:
    """Return the frames a second of every trial whose variant says nothing else; NaN for the others."""
    axes = [axes_of(variant) for variant in table.variants]
    rates = [float(one[RATE]) if set(one) == {RATE} else math.nan for one in axes]
    return np.array([*rates, math.nan])[table.variant]


def _estimate(table: ScoreTable, levels: Floats, chance: Mapping[str, float]) -> Estimate:
    kept = table.scored & np.isfinite(levels)
    guess = np.array([chance.get(table.samples[place], 0.0) for place in table.sample[kept]])
    right = (table.value[kept] >= 1.0).astype(np.float64)
    ones = np.ones_like(right)
    return _fitted(Rows(np.log(levels[kept]), ones, right, guess, ones), table)


def _estimate_rate(table: ScoreTable, rates: Floats, chance: Mapping[str, float]) -> Estimate:
    """Return the lowest rate; films of one level at one rate are one row, as they are alike: the fit allows for it."""
    kept = table.scored & np.isfinite(rates)
    cells = np.column_stack([np.log(rates[kept]), np.nan_to_num(_levels_of(table)[kept])])
    found, cell = np.unique(cells, axis=0, return_inverse=True)
    cell, size = cell.reshape(-1), len(found)
    guess = np.array([chance.get(table.samples[place], 0.0) for place in table.sample[kept]])
    trials = np.bincount(cell, minlength=size).astype(np.float64)
    right = np.bincount(cell, weights=table.value[kept] >= 1.0, minlength=size).astype(np.float64)
    mean_guess = np.bincount(cell, weights=guess, minlength=size) / np.maximum(trials, 1)
    return _fitted(Rows(found[:, 0], trials, right, mean_guess, np.ones(size)), table)


def _fitted(rows: Rows, table: ScoreTable) -> Estimate:
    n, unscored, failed = int(rows.trials.sum()), int(table.unscored.sum()), int(table.failed.sum())
    fitted = fit_threshold(rows) if rows.x.size else None
    if fitted is None or fitted.inside < 0.5:  # outside of what was tested nobody knows
        return Estimate(None, n=n, unscored=unscored, failed=failed)
    low, high = fitted.interval
    return Estimate(math.exp(fitted.value), None, (math.exp(low), math.exp(high)), n, unscored, failed)

"""The mean of the groups of a task: what benchmarks quote that average their tasks, not their questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

from ...core.types import Estimate
from ...stats.intervals import TAIL95, estimate_mean
from ..table import ScoredTask
from .document_ladder import main_table
from .means import in_unit


def macro(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return `macro`: every group of the first `group_by` counts the same, however many questions it has.

    Its error is that of a mean of independent groups; None where a group has no scored trial.
    """
    table = main_table(scored)
    key = next(iter(scored.task.group_by), None)
    if table is None or key is None or key not in table.tags:
        return {}
    codes, _ = table.tags[key]
    of_trial = codes[table.sample]
    parts = []
    for code in np.unique(of_trial):
        rows = table.take(np.flatnonzero(of_trial == code))
        parts.append(estimate_mean(rows.value[rows.scored], rows.cluster[rows.scored], n=int(rows.scored.sum())))
    counts = int(table.scored.sum()), int(table.unscored.sum()), int(table.failed.sum())
    values = [part.value for part in parts if part.value is not None]
    if len(values) < len(parts):
        return in_unit("trials", {"macro": Estimate(None, None, None, *counts)})
    value = sum(values) / len(values)
    errors = [part.stderr for part in parts if part.stderr is not None]
    if len(errors) < len(parts):
        return in_unit("trials", {"macro": Estimate(value, None, None, *counts)})
    stderr = math.sqrt(sum(error**2 for error in errors)) / len(parts)
    reach = NormalDist().inv_cdf(TAIL95) * stderr
    low, high = max(0.0, value - reach), min(1.0, value + reach)
    return in_unit("trials", {"macro": Estimate(value, stderr, (low, high), *counts)})

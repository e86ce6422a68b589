"""The mean of the groups of a task: what benchmarks quote that average their tasks, not their questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.types import Estimate
from ..tables.table import ScoredTask, ScoreTable
from .document_ladder import main_table
from .means import bounded, macro_estimate


def macro(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return `macro`: every group of the first `group_by` counts the same, however many trials it has.

    The groups are fixed; None where a group has no trial that counts.
    """
    table = main_table(scored)
    key = next(iter(scored.task.group_by), None)
    if table is None or key is None or key not in table.tags:
        return {}
    codes, _ = table.tags[key]
    of_trial = codes[table.sample]

    def of(table: ScoreTable) -> Estimate:
        groups = [table.scored & (of_trial == code) for code in np.unique(of_trial)]
        known = groups if all(rows.any() for rows in groups) else []
        return macro_estimate(table, [(table.value[rows], table.cluster[rows]) for rows in known])

    return {"macro": bounded(table, of)}

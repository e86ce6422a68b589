"""Scored records of ReForm-Eval in, what its program prints beside the score out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs

from ...core.types import Estimate
from ...scoring.aggregates.instability import answer_entropy, round_number, round_trend
from ...scoring.aggregates.means import split
from ...scoring.tables.table import ScoredTask, ScoreTable
from ...stats.intervals import estimate_mean

ROUND_AXIS = "round"
"""The axis of a variant that says in which round of a dialogue a record stands."""


def format_hit_rate(table: ScoreTable) -> Estimate:
    """Return the share of trials whose reply had the form looked for; each counts on its own, as in ReForm-Eval."""
    return structs.replace(estimate_mean((table.reason < 0).astype(np.float64)), unit="trials")


def trend_of_rounds(table: ScoreTable) -> dict[str, Estimate]:
    """Return `round_correlation` and `round_slope` as ReForm-Eval does: each round of the axis `round` is one point."""
    varied = any(variant.startswith(f"{ROUND_AXIS}=") for variant in table.variants)
    parts = [(round_number(text), part) for text, part in split(table, ROUND_AXIS)] if varied else []
    known = [(number, part) for number, part in parts if number is not None and part.scored.any()]
    means = [(number, [float(part.value[part.scored].mean())]) for number, part in known]
    trend = round_trend(sorted(means))
    return {
        "round_correlation": Estimate(trend.correlation, n=len(means)),
        "round_slope": Estimate(trend.slope, n=len(means)),
    }


def reform_figures(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Aggregate `reform`: what ReForm-Eval prints beside the score of a file of predictions.

    The share of replies in the form looked for; with option `eval_stability` the entropy of the answers as they are
    written, with `multi_round_eval` correlation and slope over rounds.
    """
    table = next(iter(scored.tables.values()))
    found = {"format_hit_rate": format_hit_rate(table)}
    if options.get("eval_stability"):
        found["instability"] = answer_entropy(table)
    return found | (trend_of_rounds(table) if options.get("multi_round_eval") else {})

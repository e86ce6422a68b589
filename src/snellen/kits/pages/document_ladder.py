"""A scored task into what long-document reports add: compensated score, variants in pairs, what pages save."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from msgspec import Struct

from ...core.types import Estimate
from ...scoring.aggregates.means import in_unit
from ...scoring.tables.table import ScoredTask, ScoreTable
from ...stats.bootstrap import difference_interval, swap_p_value
from ...stats.intervals import cluster_totals, estimate_mean, estimate_ratio, holm

_NOTHING_READ = 0.25


class VariantDifference(Struct, frozen=True):
    """The second variant minus the first on questions both answered; intervals and tests treat a document as one."""

    first: str
    second: str
    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    p_holm: float | None
    paired: int
    left_out: int
    """Questions that at least one of the two failed to answer: no pages, too long, an error."""


def compensated(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return LongBench's compensated accuracy and the null rate.

    A reply without a readable letter earns the chance of its own question, a failed one nothing: all are in `n`.
    """
    table = scored.main
    if table is None:
        return {}
    chance = {sample.id: 1.0 / len(sample.options) for sample, _ in scored.scores() if sample.options}
    earned = np.array([chance.get(name, _NOTHING_READ) for name in table.samples] or [_NOTHING_READ])
    nothing = table.unread | table.unscored
    values = np.where(nothing, earned[table.sample], table.value)
    estimates = {
        "compensated": estimate_mean(values, table.cluster, n=len(table)),
        "null_rate": estimate_mean(nothing.astype(np.float64), table.cluster, n=len(table)),
    }
    return in_unit("trials", estimates)


def compare_variants(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return every pairwise difference as an estimate `difference:SECOND-FIRST`; none for a single variant."""
    table = scored.main
    if table is None or len(table.variants) < 2:
        return {}
    found = variant_differences(table)
    return {
        f"difference:{pair.second}-{pair.first}": Estimate(
            pair.difference, None, pair.ci95, pair.paired, unit="questions"
        )
        for pair in found
    }


def ladder(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the mean of every rung below the headline (contains, exact, ANLS …), kept in each score's detail."""
    rungs: dict[str, list[float]] = {}
    clusters: list[str] = []
    for sample, score in scored.scores():
        if "ladder" in score.detail:
            clusters.append(sample.group or sample.id)
            for name, value in score.detail["ladder"].items():
                rungs.setdefault(name, []).append(float(value))
    estimates = {name: estimate_mean(np.array(values), np.array(clusters)) for name, values in rungs.items()}
    return in_unit("trials", estimates)


def page_cost(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return text tokens per visual token by model family (`compression:FAMILY`): what pages save."""
    text: dict[str, list[float]] = {}
    visual: dict[str, list[float]] = {}
    documents = {sample.group or sample.id: sample for sample, _ in scored.scores()}
    for sample in documents.values():
        tokens = sample.tags.get("context_tokens")
        costs: Mapping[str, int] = next(iter(sample.meta.get("visual_tokens", {}).values()), {})
        for family, cost in costs.items() if isinstance(tokens, int) else ():
            text.setdefault(family, []).append(float(tokens or 0))
            visual.setdefault(family, []).append(float(cost))
    pairs = {f"compression:{family}": (np.array(text[family]), np.array(visual[family])) for family in text}
    return {name: estimate_ratio(*pair, bounded=False, n=len(pair[0])) for name, pair in pairs.items()}


def variant_differences(table: ScoreTable) -> list[VariantDifference]:
    """Compare all variants pairwise on the same questions; p-values are adjusted over all pairs (Holm)."""
    values = {name: _question_values(table, code) for code, name in enumerate(table.variants)}
    pairs = [_difference(table, first, second, values) for first, second in combinations(table.variants, 2)]
    adjusted = holm([pair.p for pair in pairs])
    return [_adjusted(pair, p) for pair, p in zip(pairs, adjusted, strict=True)]


def _question_values(table: ScoreTable, variant: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows = table.scored & (table.variant == variant)
    count = np.bincount(table.sample[rows], minlength=len(table.samples))
    total = np.bincount(table.sample[rows], weights=table.value[rows], minlength=len(table.samples))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _difference(table: ScoreTable, first: str, second: str, values: Mapping[str, Any]) -> VariantDifference:
    change = values[second] - values[first]
    both = np.isfinite(change)
    left_out = int((~both).sum())
    if not both.any():
        return VariantDifference(first, second, None, None, None, None, 0, left_out)
    sums, sizes = cluster_totals(change[both], table.cluster_of_sample[: change.size][both])
    interval = difference_interval(sums, sizes, "variants", first, second)
    p = swap_p_value(sums, "variants", first, second)
    return VariantDifference(first, second, float(change[both].mean()), interval, p, None, int(both.sum()), left_out)


def _adjusted(pair: VariantDifference, p: float | None) -> VariantDifference:
    fields = {name: getattr(pair, name) for name in pair.__struct_fields__} | {"p_holm": p}
    return VariantDifference(**fields)

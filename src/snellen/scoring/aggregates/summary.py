"""The tables of one task in, its metrics and groups out: every aggregate that the trials allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ...core.registry import resolve_target
from ...core.types import Estimate
from ..tables.table import ScoredTask, ScoreTable
from .counts import TaskCounts
from .means import groups, headline_of, macro_over_groups, rates
from .robustness import read_level

AggregateFunction = Callable[[ScoreTable, Mapping[str, Any]], Mapping[str, Estimate]]


def _named(name: str) -> AggregateFunction:
    """Return an aggregate of one table by its module here and its name; what is not asked for is not imported."""
    function: AggregateFunction = resolve_target(f"{__package__}.{name}")
    return function


def _has_tags(*tags: str) -> Callable[[ScoreTable], bool]:
    return lambda table: set(tags) <= set(table.tags)


FITTING: Sequence[tuple[Callable[[ScoreTable], bool], str]] = (
    (lambda table: not table.is_repeated, "means:mean"),
    (lambda table: table.is_repeated, "repeats:aggregate"),
    (lambda table: table.asks_again, "instability:aggregate"),
    (lambda table: table.asks_again, "variance:aggregate"),
    (lambda table: any(map(read_level, table.variants)), "robustness:aggregate"),
    (_has_tags("round"), "instability:rounds"),
    (_has_tags("role", "step", "steps"), "consistency:chain_estimates"),
    (lambda table: {"role", "step"} <= set(table.tags) and "steps" not in table.tags, "consistency:aggregate"),
)
"""What the design of the trials allows, in the order of the figures: when, and which aggregate."""


def fitting_aggregates(table: ScoreTable) -> Iterator[AggregateFunction]:
    """Yield what fits the trials: repeats, variants, perturbations, dialogue rounds, chains."""
    return (_named(name) for fits, name in FITTING if fits(table))


def summarize(
    tables: Mapping[str, ScoreTable],
    *,
    group_by: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    counts: TaskCounts | None = None,
) -> dict[str, Any]:
    """Return `{"metrics": …, "groups": …}`, one task's part of results.json, as plain dicts.

    By the aggregates that fit the trials. The rates are those of the metric that left most trials unscored.
    With several metrics, names that are not the metric's own get it as a suffix from the second metric on.
    """
    metrics: dict[str, Estimate] = {}
    grouped: dict[str, dict[str, dict[str, Estimate]]] = {key: {} for key in group_by}
    if not tables:
        return {"metrics": metrics, "groups": grouped}
    counts = counts or TaskCounts(next(iter(tables.values())))
    for name in sorted(tables):
        table = tables[name]
        for aggregate in fitting_aggregates(table):
            _add(metrics, aggregate(table, options or {}), table.metric)
        for key in group_by:
            metrics |= macro_over_groups(table, key) if key in table.tags else {}
            for value, estimates in group_estimates(table, key, counts).items():
                grouped[key].setdefault(value, {}).update(estimates)
    metrics |= rates(max(tables.values(), key=lambda table: table.counts[1]))
    shape: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode({"metrics": counts.settle_all(metrics), "groups": grouped})
    )
    return shape


def group_estimates(table: ScoreTable, key: str, counts: TaskCounts) -> dict[str, dict[str, Estimate]]:
    """Return the headline of every group of a key, those included of which nothing was asked yet."""
    found = groups(table, [key])[key]
    nothing = headline_of(table.take(table.sample < 0))
    found |= dict.fromkeys(counts.unseen_groups(key), nothing)
    return {value: counts.settle_group(key, value, found[value]) for value in sorted(found)}


def _add(metrics: dict[str, Estimate], new: Mapping[str, Estimate], metric: str) -> None:
    for name, estimate in new.items():
        metrics[name if name not in metrics or metrics[name] == estimate else f"{name}_{metric}"] = estimate


def _for_all(name: str) -> Callable[[ScoredTask, Mapping[str, Any]], dict[str, Estimate]]:
    """Make a registered aggregate of a function of one table."""

    def over_tables(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
        metrics: dict[str, Estimate] = {}
        for metric in sorted(scored.tables):
            _add(metrics, _named(name)(scored.tables[metric], options), metric)
        return metrics

    return over_tables


mean_of_tables = _for_all("means:mean")
repeats_of_tables = _for_all("repeats:aggregate")
instability_of_tables = _for_all("instability:aggregate")
rounds_of_tables = _for_all("instability:rounds")
consistency_of_tables = _for_all("consistency:aggregate")
robustness_of_tables = _for_all("robustness:aggregate")
variance_of_tables = _for_all("variance:aggregate")

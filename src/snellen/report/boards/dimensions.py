"""Results of many tasks to one row a dimension, and of many models to their average rank and score."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any, NamedTuple

PREFERRED = ("accuracy", "cider")
SIDE = ("_rate", "_share", "_tokens", "latency_s")


class Standing(NamedTuple):
    """One model over all dimensions: the mean of its ranks (1 is best) and the mean of its scores."""

    average_rank: float
    average_score: float


def main_metric(task: Mapping[str, Any]) -> float | None:
    """Return the metric a task stands for: accuracy, else CIDEr, else its first that is no side figure."""
    metrics = task["metrics"]
    first = [name for name in metrics if not name.endswith(SIDE)][:1]
    name = next((name for name in (*PREFERRED, *first) if name in metrics), None)
    value: float | None = metrics[name]["value"] if name else None
    return value


def dimension_means(
    tasks: Mapping[str, Mapping[str, Any]], dimensions: Mapping[str, str]
) -> dict[str, tuple[float, int]]:
    """Return dimension -> (mean of its tasks' main metrics, number of tasks); every task weighs the same."""
    values: dict[str, list[float]] = {}
    for name, task in tasks.items():
        value = main_metric(task)
        if value is not None and dimensions.get(name):
            values.setdefault(dimensions[name], []).append(value)
    return {dimension: (fmean(each), len(each)) for dimension, each in values.items()}


def rank_models(scores: Mapping[str, Mapping[str, float]]) -> dict[str, Standing]:
    """Return model -> standing from model -> dimension -> score; ties share the mean of their ranks, missing ones are left out."""
    ranks: dict[str, list[float]] = {model: [] for model in scores}
    for dimension in sorted({name for table in scores.values() for name in table}):
        present = {model: table[dimension] for model, table in scores.items() if dimension in table}
        for model, value in present.items():
            above = sum(other > value for other in present.values())
            equal = sum(other == value for other in present.values())
            ranks[model].append(above + (equal + 1) / 2)
    return {model: Standing(fmean(ranks[model]), fmean(table.values())) for model, table in scores.items() if table}

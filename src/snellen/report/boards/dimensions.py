"""Results of many tasks to one row a dimension."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

PREFERRED = ("accuracy", "cider")
SIDE = ("_rate", "_share", "_tokens", "latency_s")


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

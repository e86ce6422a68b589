"""Results of several tasks to one line each, and to means of dimensions: what a terminal shows at the end."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from rich.table import Table

from ...scoring.aggregates.headline import headline
from ...scoring.tables.table import lower_is_better
from ..terminal import count_text, plain
from ..written import RESTS_ON, percent_metric, rests_on, written, written_interval


def summary_table(results: Mapping[str, Any]) -> Table:
    """Return one line a task: its headline with the interval, on how many trials it rests, and how many were lost."""
    table = Table(title="all tasks", title_justify="left", title_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("metric", overflow="fold")
    for name in ("value", "95 % interval", *RESTS_ON):
        table.add_column(name, justify="right", no_wrap=True)
    for task, result in results["tasks"].items():
        metric, estimate = headline(result)
        cells = (written(metric or "", estimate), written_interval(metric or "", estimate))
        table.add_row(plain(task), plain(metric or "–"), *cells, *map(count_text, rests_on(estimate)))
    return table


def dimension_means(
    tasks: Mapping[str, Mapping[str, Any]], dimensions: Mapping[str, str]
) -> dict[str, tuple[float, int]]:
    """Return dimension -> (mean of its tasks' headlines, number of tasks); every task weighs the same.

    Tasks whose headline is better when lower (pixels, error rates) or no share (CIDEr, points) are left out: they have
    no place in a mean.
    """
    values: dict[str, list[float]] = {}
    for task, result in tasks.items():
        name, estimate = headline(result)
        if name is None or estimate["value"] is None or not dimensions.get(task):
            continue
        if percent_metric(name, {"value": estimate["value"]}) and not lower_is_better(name):
            values.setdefault(dimensions[task], []).append(estimate["value"])
    return {dimension: (fmean(of_tasks), len(of_tasks)) for dimension, of_tasks in values.items()}

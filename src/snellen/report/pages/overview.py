"""A run folder to what a page needs to know of it: header, results, columns and figures of every task."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from msgspec import Struct
from rich.table import Table

from ...core.tasks import Task
from ...scoring.aggregates.counted import counted
from ...scoring.aggregates.headline import headline
from ...scoring.aggregates.variance import advise, split_variance
from ...scoring.tables.gathered import GatheredTask
from ...scoring.tables.table import ScoreTable, TrialColumns, lower_is_better
from ...store.reader import RunReader
from ..stored_results import Results
from ..terminal import count_text, plain
from ..written import RESTS_ON, percent_metric, rests_on, written, written_interval
from .figures import LATENCY, Figure, figures_of


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


class TaskOverview(Struct, frozen=True):
    """One task, ready to be shown."""

    task: Task
    result: dict[str, Any]
    columns: TrialColumns
    figures: list[Figure]
    advice: str
    shares: tuple[tuple[str, float], ...]
    """Parts of the variance of single trials, adding up to 1; empty when they cannot be told."""

    @property
    def main_figure(self) -> Figure | None:
        """Return the figure that stands beside the headline: the most telling, never how long replies take."""
        return next((figure for figure in self.figures if figure.name != LATENCY), None)

    @property
    def other_figures(self) -> list[Figure]:
        """Return the figures below the headline."""
        return [figure for figure in self.figures if figure is not self.main_figure]


def overview_of(
    reader: RunReader, columns: TrialColumns, results: Results, gathered: GatheredTask | None = None
) -> TaskOverview:
    """Return one task with its figures; what was gathered while it was scored is not read again."""
    task = columns.task
    table = counted(columns.by_sample) if columns.metrics else None
    advice, shares = _spread(table)
    result = results["tasks"].get(task.name) or {"metrics": {}, "groups": {}}
    figures = figures_of(reader, columns, table, gathered)
    return TaskOverview(task, result, counted(columns), figures, advice, shares)


def _spread(table: ScoreTable | None) -> tuple[str, tuple[tuple[str, float], ...]]:
    if table is None or not len(table):
        return "", ()
    split = split_variance(table)
    parts = [("questions", split.question), ("variants", split.variant), ("sampling", split.sampling)]
    known = [(name, part) for name, part in parts if part is not None]
    total = sum(part for _, part in known)
    shares = tuple((name, part / total) for name, part in known) if total > 0 and len(known) > 1 else ()
    return advise(split), shares

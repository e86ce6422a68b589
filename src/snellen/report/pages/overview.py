"""A run folder to what a page needs to know of it: header, results, columns and figures of every task."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...core.tasks import Task
from ...scoring.aggregates.counted import counted
from ...scoring.aggregates.variance import advise, split_variance
from ...scoring.stored import read_columns
from ...scoring.tables.gathered import GatheredTask
from ...scoring.tables.table import ScoreTable, TrialColumns
from ...store.reader import RunReader
from ..stored_results import Results
from .figures import LATENCY, Figure, figures_of


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
    reader: RunReader,
    task: Task,
    results: Results,
    gathered: GatheredTask | None = None,
    *,
    columns: TrialColumns | None = None,
) -> TaskOverview:
    """Return one task with its figures; what was gathered while it was scored, or is given, is not read again."""
    if columns is None:
        columns = gathered.columns() if gathered else read_columns(reader, task)
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

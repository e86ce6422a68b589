"""The trials of a task to those that its figures are over: arms and probes stand beside them (`variants_beside`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.tasks import Task
from ...core.variants import variants_beside
from ...stats.intervals import Floats
from ..tables.table import Mask, ScoredTask, ScoreTable, lower_is_better
from .headline import PEER, main_metric, quoted_metric
from .robustness import as_worth

Table = TypeVar("Table", bound=ScoreTable)


def counted_tables(tables: Mapping[str, ScoreTable]) -> Mapping[str, ScoreTable]:
    """Return the tables without the trials of arms; the same where there are none."""
    return {name: counted(table) for name, table in tables.items()}


def counted(table: Table) -> Table:
    """Return the trials that a figure of the task is over: those that are no arm."""
    arms = variants_beside(table.variants)
    if not arms:
        return table
    return cast(Table, table.take(~rows_in(table, arms)))


def counted_task(scored: ScoredTask) -> ScoredTask:
    """Return a task as aggregates see it, without the trials of arms."""
    arms = variants_beside(scored.task.variants)
    if not arms:
        return scored
    own = tuple(variant for variant in scored.task.variants if variant not in arms)
    return ScoredTask(
        msgspec.structs.replace(scored.task, variants=own),
        counted_tables(scored.tables),
        lambda: ((sample, score) for sample, score in scored.scores() if score.key.variant not in arms),
        scored.samples,
        scored.confidences,
    )


def arms_table(task: Task, tables: Mapping[str, ScoreTable]) -> ScoreTable | None:
    """Return the table of the metric that a task stands for, as worth; None where no single metric does."""
    own = [name for name in tables if not name.endswith(PEER) and len(tables[name])]
    metric = main_metric(tuple(own), quoted_metric(task))
    if metric is None or metric not in tables:
        return None
    table = tables[metric]
    return as_worth(table) if lower_is_better(metric) else table


def rows_in(table: ScoreTable, variants: Iterable[str]) -> Mask:
    """Return which trials of a table are of some variants."""
    wanted = set(variants)
    chosen = np.array([name in wanted for name in table.variants], dtype=np.bool_)
    return np.asarray(chosen[table.variant], dtype=np.bool_)


def means_of_questions(question: NDArray[Any], values: Floats, size: int) -> Floats:
    """Return the mean of each of so many questions; NaN where it has no value."""
    count = np.bincount(question, minlength=size)
    return np.where(count > 0, np.bincount(question, values, size) / np.maximum(count, 1), np.nan)

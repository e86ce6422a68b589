"""Run folders in, comparisons of every common task and metric out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from ...core.errors import UsageError, did_you_mean
from ...store.reader import RunReader
from ..stored import stored_tables
from ..table import ScoreTable
from .divergence import Fingerprint, Key, fingerprint
from .paired import Comparison, RunSide, compare_all


def compare_runs(
    folders: Sequence[str | Path],
    *,
    task: str | None = None,
    metric: str | None = None,
    scored_only: bool = False,
) -> dict[str, list[Comparison]]:
    """Return, for every task the runs share, the comparison of every pair on each common metric (or on one).

    Paired by sample id. Unscored and failed trials count as 0 unless `scored_only`.
    """
    if len(folders) < 2:
        raise UsageError("compare needs at least two run folders: snellen compare runs/A runs/B")
    with ExitStack() as stack:
        readers = [stack.enter_context(RunReader(folder)) for folder in folders]
        names = _names(folders)
        return {
            name: _compare_task(readers, names, name, metric, scored_only)
            for name in _common_tasks(readers, names, task)
        }


def _names(folders: Sequence[str | Path]) -> list[str]:
    """Return short names: the folders' own where these differ, else their paths."""
    short = [Path(folder).name or str(folder) for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def _common_tasks(readers: Sequence[RunReader], names: Sequence[str], task: str | None) -> list[str]:
    known = [set(reader.tasks()) for reader in readers]
    common = sorted(set.intersection(*known))
    if task is not None and task not in common:
        lacking = [name for name, tasks in zip(names, known, strict=True) if task not in tasks]
        raise UsageError(f"{', '.join(lacking)} has no task {task!r}{did_you_mean(task, set.union(*known))}")
    if not common:
        held = "; ".join(
            f"{name}: {', '.join(sorted(tasks)) or 'none'}" for name, tasks in zip(names, known, strict=True)
        )
        raise UsageError(f"the runs share no task ({held})")
    return [task] if task is not None else common


def _compare_task(
    readers: Sequence[RunReader], names: Sequence[str], task: str, metric: str | None, scored_only: bool
) -> list[Comparison]:
    tables = [stored_tables(reader, task, tag_keys=()) for reader in readers]
    marks = [dict(_fingerprints(reader, task)) for reader in readers]
    comparisons = []
    for name in _common_metrics(tables, names, task, metric):
        sides = [RunSide(side, table[name], mark) for side, table, mark in zip(names, tables, marks, strict=True)]
        comparisons += compare_all(sides, scored_only=scored_only)
    return comparisons


def _common_metrics(
    tables: Sequence[dict[str, ScoreTable]], names: Sequence[str], task: str, metric: str | None
) -> list[str]:
    for name, found in zip(names, tables, strict=True):
        if not found:
            raise UsageError(f"{name} has no scores of task {task!r}: score it first with `snellen score {name}`")
    common = sorted(set.intersection(*(set(found) for found in tables)))
    if metric is not None and metric not in common:
        known = f"{did_you_mean(metric, common)}; common: {', '.join(common)}"
        raise UsageError(f"task {task!r} has no metric {metric!r} in all runs{known}")
    return [metric] if metric is not None else common


def _fingerprints(reader: RunReader, task: str) -> Iterator[tuple[Key, Fingerprint]]:
    scores = reader.scores(task)
    waiting = next(scores, None)
    for sample, request, prediction, _ in reader.trials(task):
        own = []
        while waiting is not None and waiting.key == prediction.key:
            own.append(waiting)
            waiting = next(scores, None)
        key = prediction.key
        yield (key.sample, key.variant, key.repeat), fingerprint(sample, request, prediction, own)

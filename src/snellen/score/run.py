"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..core.registry import Registry
from ..core.types import Estimate, RunHeader, Sample, Score, Task
from ..store.reader import RunReader, write_scores
from .stored import stored_tables
from .summary import summarize
from .table import ScoreTable

MOST_GROUPS = 40
"""A tag with more values than this is an identifier, not a group."""


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """What an aggregate may look at: the tables of every metric, and the scores themselves."""

    task: Task
    tables: Mapping[str, ScoreTable]
    scores: Callable[[], Iterator[tuple[Sample, Score]]]


def score_run(folder: Path, registry: Registry, *, profile: str | None = None, scorers: Sequence[str] = ()) -> dict[str, Any]:
    """Score every stored trial, keep the scores in run.db, and return results.json as plain data."""
    reader = RunReader(folder)
    try:
        header = reader.header()
        tasks = {task.name: _score_task(reader, task, registry, profile, scorers) for task in header.tasks}
        return {
            "run": {
                "id": header.id,
                "created": header.created,
                "command": header.command,
                "config": header.config,
                "profile": profile or "snellen",
            },
            "model": header.model,
            "tasks": tasks,
            "usage": _usage(reader),
            "versions": header.versions,
            "status": _status(reader, header),
        }
    finally:
        reader.close()


def score_trials(reader: RunReader, task: Task, registry: Registry, options: Mapping[str, Any], scorers: Sequence[str]) -> Iterator[Score]:
    """Yield the scores of every trial that has a reply."""
    functions = [registry.get("scorer", name) for name in scorers or task.scorers]
    for sample, request, prediction, _ in reader.trials(task.name):
        if prediction.failure is None:
            for function in functions:
                yield from function(sample, request, prediction, options)


def _score_task(reader: RunReader, task: Task, registry: Registry, profile: str | None, scorers: Sequence[str]) -> dict[str, Any]:
    options = {"profile": profile} if profile else {}
    write_scores(reader.folder, task.name, score_trials(reader, task, registry, options, scorers))
    tables = stored_tables(reader, task.name, metrics=() if reader.has_scores(task.name) else ("accuracy",))
    scored = ScoredTask(task, tables, lambda: _pairs(reader, task.name))
    result = summarize(tables, group_by=_group_keys(tables, task), options=options)
    for name in task.aggregates:
        estimates: Mapping[str, Estimate] = registry.get("aggregate", name)(scored, options)
        result["metrics"] |= msgspec.to_builtins(dict(estimates))
    return result


def _group_keys(tables: Mapping[str, ScoreTable], task: Task) -> list[str]:
    if task.group_by:
        return list(task.group_by)
    table = next(iter(tables.values()), None)
    if table is None:
        return []
    keys = [key for key, (_, values) in table.tags.items() if 2 <= len(values) <= MOST_GROUPS]
    return [*keys, *(["variant"] if table.is_varied else [])]


def _pairs(reader: RunReader, task: str) -> Iterator[tuple[Sample, Score]]:
    samples = {sample.id: sample for sample in reader.samples(task)}
    for score in reader.scores(task):
        yield samples[score.key.sample], score


def _usage(reader: RunReader) -> dict[str, int]:
    fields = ("input_tokens", "output_tokens", "reasoning_tokens")
    sums = ", ".join(f"COALESCE(SUM(json_extract(CAST(body AS TEXT), '$.usage.{field}')), 0)" for field in fields)
    row = next(reader.rows(f"SELECT {sums}, COUNT(*) FROM predictions"))  # noqa: S608
    return {**dict(zip(fields, row, strict=False)), "requests": row[-1]}


def _status(reader: RunReader, header: RunHeader) -> dict[str, Any]:
    stored = dict(reader.rows("SELECT task, COUNT(*) FROM predictions GROUP BY task"))
    missing = {task: planned - stored.get(task, 0) for task, planned in header.planned.items()}
    return {"complete": not any(missing.values()), "planned": header.planned, "not_yet_asked": missing}

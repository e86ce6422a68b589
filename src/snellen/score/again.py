"""A stored run to its results once more, in memory: another profile, a run that goes on. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..core.registry import Registry
from ..core.tasks import Task
from ..core.types import Estimate, Score
from ..store.reader import RunReader
from .judged import stored_verdicts
from .reading import read_tables
from .run import ScoredTask, aggregates_of, chance_of, group_keys, notes_on, score_trials, status_of, usage_of
from .stored import read_labels, stored_outcomes
from .summary import summarize


def score_again(reader: RunReader, registry: Registry, *, profile: str | None = None) -> dict[str, Any]:
    """Score what is stored now and return it in the form of results.json."""
    header = reader.header()
    run = {"id": header.id, "created": header.created, "command": header.command, "config": header.config, "profile": profile or "snellen"}
    tasks = {task.name: _task(reader, task, registry, profile) for task in header.tasks}
    told = {"run": run, "model": header.model, "tasks": tasks, "usage": usage_of(reader), "versions": header.versions}
    return told | {"status": status_of(reader, header)}


def _task(reader: RunReader, task: Task, registry: Registry, profile: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {"chance": chance_of(reader, task)} | ({"profile": profile} if profile else {})
    scores = [*score_trials(reader, task, registry, options, task.scorers), *stored_verdicts(reader, task.name)]
    rows = ((s.key.sample, s.key.variant, s.key.repeat, s.metric, s.value, s.answer, s.rule, s.reason) for s in scores)
    names = () if scores else ("accuracy",)
    tables = read_tables(rows, stored_outcomes(reader, task.name), read_labels(reader, task.name), tag_keys=None, metrics=names)
    result = summarize(tables, group_by=group_keys(tables, task), options=options)
    scored = ScoredTask(task, tables, lambda: _pairs(reader, task.name, scores))
    for name in aggregates_of(task):
        estimates: Mapping[str, Estimate] = registry.get("aggregate", name)(scored, options)
        result["metrics"] |= msgspec.to_builtins(dict(estimates))
    return result | {"notes": notes_on(tables)}


def _pairs(reader: RunReader, task: str, scores: list[Score]) -> Iterator[tuple[Any, Score]]:
    samples = {sample.id: sample for sample in reader.samples(task)}
    for score in scores:
        yield samples[score.key.sample], score

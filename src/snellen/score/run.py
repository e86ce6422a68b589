"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..core.types import Estimate, Sample, Score
from ..store.reader import RunReader, write_scores
from .judged import stored_verdicts
from .stored import stored_tables
from .summary import summarize
from .table import ScoreTable
from .variance import advise, split_variance

MOST_GROUPS = 40
"""A tag with more values than this is an identifier, not a group."""


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """What an aggregate may look at: the tables of every metric, and the scores themselves."""

    task: Task
    tables: Mapping[str, ScoreTable]
    scores: Callable[[], Iterator[tuple[Sample, Score]]]


def score_run(
    folder: Path,
    registry: Registry,
    *,
    profile: str | None = None,
    scorers: Sequence[str] = (),
    more: Sequence[str] = (),
    reduction: str | None = None,
) -> dict[str, Any]:
    """Score every stored trial, keep the scores in run.db, and return results.json as plain data.

    `scorers` replace those of the tasks, `more` are added; `profile` and `reduction` (of log-likelihoods) are options to them.
    """
    reader = RunReader(folder)
    try:
        header = reader.header()
        options = {name: value for name, value in (("profile", profile), ("reduction", reduction)) if value}
        tasks = {task.name: _score_task(reader, task, registry, options, [*(scorers or task.scorers), *more]) for task in header.tasks}
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
            "usage": usage_of(reader),
            "versions": header.versions,
            "status": status_of(reader, header),
        }
    finally:
        reader.close()


def score_trials(reader: RunReader, task: Task, registry: Registry, options: Mapping[str, Any], scorers: Sequence[str]) -> Iterator[Score]:
    """Yield the scores of every trial that has a reply."""
    functions = [registry.get("scorer", name) for name in scorers]
    for sample, request, prediction, _ in reader.trials(task.name):
        if prediction.failure is None:
            for function in functions:
                yield from function(sample, request, prediction, options)


def _score_task(reader: RunReader, task: Task, registry: Registry, told: Mapping[str, Any], scorers: Sequence[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"chance": chance_of(reader, task), **told}
    scores = chain(score_trials(reader, task, registry, options, scorers), stored_verdicts(reader, task.name))
    write_scores(reader.folder, task.name, scores)
    tables = stored_tables(reader, task.name, metrics=() if reader.has_scores(task.name) else ("accuracy",))
    scored = ScoredTask(task, tables, lambda: _pairs(reader, task.name))
    result = summarize(tables, group_by=group_keys(tables, task), options=options)
    for name in aggregates_of(task):
        estimates: Mapping[str, Estimate] = registry.get("aggregate", name)(scored, options)
        result["metrics"] |= msgspec.to_builtins(dict(estimates))
    return result | {"notes": notes_on(tables)}


def notes_on(tables: Mapping[str, ScoreTable]) -> list[str]:
    """Say in words what the spread of the trials means for the next run."""
    return [f"{name}: {advise(split_variance(table))}" for name, table in sorted(tables.items()) if table.is_repeated or table.is_varied]


def chance_of(reader: RunReader, task: Task) -> float:
    """Return what guessing would score: robustness is counted from there."""
    shares = [1.0 / len(sample.options) for sample in reader.samples(task.name) if sample.options]
    return sum(shares) / len(shares) if shares else 0.0


def aggregates_of(task: Task) -> list[str]:
    """Return the task's aggregates; perturbed pictures also get theirs, where chance and unread replies count."""
    perturbed = any("perturb=" in variant for variant in task.variants)
    return list(dict.fromkeys([*task.aggregates, *(["perturbed"] if perturbed else [])]))


def group_keys(tables: Mapping[str, ScoreTable], task: Task) -> list[str]:
    """Return what to group by: as the task says, else every tag with a few values, and the variants."""
    table = next(iter(tables.values()), None)
    if table is None:
        return []
    keys = list(task.group_by) or [key for key, (_, values) in table.tags.items() if 2 <= len(values) <= MOST_GROUPS]
    return [*keys, *(["variant"] if table.is_varied else [])]


def _pairs(reader: RunReader, task: str) -> Iterator[tuple[Sample, Score]]:
    samples = {sample.id: sample for sample in reader.samples(task)}
    for score in reader.scores(task):
        yield samples[score.key.sample], score


def usage_of(reader: RunReader) -> dict[str, int]:
    """Return the tokens of all stored replies."""
    fields = ("input_tokens", "output_tokens", "reasoning_tokens")
    sums = ", ".join(f"COALESCE(SUM(json_extract(CAST(body AS TEXT), '$.usage.{field}')), 0)" for field in fields)
    row = next(reader.rows(f"SELECT {sums}, COUNT(*) FROM predictions"))  # noqa: S608
    return {**dict(zip(fields, row, strict=False)), "requests": row[-1]}


def status_of(reader: RunReader, header: RunHeader) -> dict[str, Any]:
    """Return whether every planned trial is stored."""
    stored = dict(reader.rows("SELECT task, COUNT(*) FROM predictions GROUP BY task"))
    missing = {task: planned - stored.get(task, 0) for task, planned in header.planned.items()}
    until_ci = reader.meta("until_ci")
    complete = not any(missing.values()) or bool(until_ci and until_ci["stopped"])
    return {"complete": complete, "planned": header.planned, "not_yet_asked": missing, "until_ci": until_ci}

"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..core.types import Estimate, Sample, Score
from ..store.reader import RunReader, write_scores
from .aggregates.variance import advise, split_variance
from .gathered import USAGE, GatheredTask, Scored
from .scorers.judged import stored_verdicts
from .summary import summarize
from .table import ScoreTable

MOST_GROUPS = 40
"""A tag with more values than this is an identifier, not a group."""
BATCH = 64
"""Trials that are scored, stored and counted together."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """What an aggregate may look at: the tables of every metric, and the scores themselves."""

    task: Task
    tables: Mapping[str, ScoreTable]
    scores: Callable[[], Iterator[tuple[Sample, Score]]]


class Onlooker(Protocol):
    """Someone who looks on while a run is scored, and so need not read it again."""

    def see_trials(self, task: Task, batch: Sequence[Scored]) -> None:
        """Some trials with what the scorers said of them (not the judges), in the order of the plan."""
        ...

    def see_tables(self, task: Task, tables: Mapping[str, ScoreTable]) -> None:
        """The table of every metric, after the last trial of the task."""
        ...


def score_run(
    folder: Path,
    registry: Registry,
    *,
    profile: str | None = None,
    scorers: Sequence[str] = (),
    more: Sequence[str] = (),
    reduction: str | None = None,
    onlooker: Onlooker | None = None,
) -> dict[str, Any]:
    """Score every stored trial, keep the scores in run.db, and return results.json as plain data.

    `scorers` replace those of the tasks, `more` are added; `profile` and `reduction` (of log-likelihoods) are options to them.
    """
    reader = RunReader(folder)
    told = {name: value for name, value in (("profile", profile), ("reduction", reduction)) if value}

    def score_task(task: Task) -> tuple[dict[str, Any], dict[str, int]]:
        """Score one task."""
        options, gathered = {"chance": chance_of(reader, task), **told}, GatheredTask()
        scored = scored_trials(reader, task, registry, options, [*(scorers or task.scorers), *more])
        write_scores(folder, task.name, gather(reader, task, scored, gathered, onlooker))
        tables = gathered.tables()
        if onlooker is not None:
            onlooker.see_tables(task, tables)
        together = ScoredTask(task, tables, lambda: pair_scores(reader, task.name, reader.scores(task.name)))
        return summarize_task(together, registry, options), gathered.usage

    with reader:
        return results_of(reader, profile, score_task)


def results_of(
    reader: RunReader, profile: str | None, score_task: Callable[[Task], tuple[dict[str, Any], dict[str, int]]]
) -> dict[str, Any]:
    """Return results.json as plain data; `score_task` gives the part of a task, and its tokens."""
    header = reader.header()
    scored = {task.name: score_task(task) for task in header.tasks}
    run = {
        "id": header.id,
        "created": header.created,
        "command": header.command,
        "config": header.config,
        "profile": profile or "snellen",
    }
    return {
        "run": run,
        "model": header.model,
        "tasks": {name: result for name, (result, _) in scored.items()},
        "usage": {name: sum(usage[name] for _, usage in scored.values()) for name in USAGE},
        "versions": header.versions,
        "status": status_of(reader, header),
    }


def scored_trials(
    reader: RunReader, task: Task, registry: Registry, options: Mapping[str, Any], scorers: Sequence[str]
) -> Iterator[Scored]:
    """Yield every stored trial with its scores, in the order of the plan."""
    functions = [registry.get("scorer", name) for name in scorers]
    score = (
        functions[0]
        if len(functions) == 1
        else lambda *trial: [score for function in functions for score in function(*trial)]
    )
    for trial in reader.trials(task.name):
        sample, request, prediction, _ = trial
        yield trial, list(score(sample, request, prediction, options)) if prediction.failure is None else ()


def gather(
    reader: RunReader, task: Task, scored: Iterator[Scored], gathered: GatheredTask, onlooker: Onlooker | None = None
) -> Iterator[Score]:
    """Yield the scores of a task and the verdicts of its judges; `gathered` and the `onlooker` see them pass."""
    for batch in _batches(scored):
        gathered.add(batch)
        if onlooker is not None:
            onlooker.see_trials(task, batch)
        for _, scores in batch:
            yield from scores
    for verdicts in _batches(stored_verdicts(reader, task.name)):
        gathered.add_scores(verdicts)
        yield from verdicts


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch


def summarize_task(scored: ScoredTask, registry: Registry, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return one task's part of results.json."""
    result = summarize(scored.tables, group_by=group_keys(scored.tables, scored.task), options=options)
    for name in aggregates_of(scored.task):
        estimates: Mapping[str, Estimate] = registry.get("aggregate", name)(scored, options)
        result["metrics"] |= msgspec.to_builtins(dict(estimates))
    return result | {"notes": notes_on(scored.tables)}


def notes_on(tables: Mapping[str, ScoreTable]) -> list[str]:
    """Say in words what the spread of the trials means for the next run."""
    return [
        f"{name}: {advise(split_variance(table))}"
        for name, table in sorted(tables.items())
        if table.is_repeated or table.is_varied
    ]


class _Options(msgspec.Struct):
    """The part of a sample that chance hangs on."""

    options: tuple[str, ...] = ()


def chance_of(reader: RunReader, task: Task) -> float:
    """Return what guessing would score: robustness is counted from there."""
    decode = msgspec.json.Decoder(_Options).decode
    bodies = reader.rows("SELECT body FROM samples WHERE task = ? ORDER BY position", (task.name,))
    shares = [1.0 / len(options) for (body,) in bodies if (options := decode(body).options)]
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


def pair_scores(reader: RunReader, task: str, scores: Iterable[Score]) -> Iterator[tuple[Sample, Score]]:
    """Yield every score with its sample."""
    samples = {sample.id: sample for sample in reader.samples(task)}
    for score in scores:
        yield samples[score.key.sample], score


def status_of(reader: RunReader, header: RunHeader) -> dict[str, Any]:
    """Return whether every planned trial is stored."""
    stored = dict(reader.rows("SELECT task, COUNT(*) FROM predictions GROUP BY task"))
    missing = {task: planned - stored.get(task, 0) for task, planned in header.planned.items()}
    until_ci = reader.meta("until_ci")
    complete = not any(missing.values()) or bool(until_ci and until_ci["stopped"])
    return {"complete": complete, "planned": header.planned, "not_yet_asked": missing, "until_ci": until_ci}

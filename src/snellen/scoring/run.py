"""A stored run to its results: every reply scored again, every score aggregated. No network, no data source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ..core.registry import Registry
from ..core.tasks import Task
from ..core.types import Sample, Score
from ..store.reader import RunReader, write_scores
from .gathered import GatheredTask, Scored
from .results import chance_of, results_of, summarize_task
from .scorers.judged import stored_verdicts
from .table import ScoredTask

BATCH = 64
"""Trials that are scored, stored and counted together."""
Item = TypeVar("Item")
Watch = Callable[[GatheredTask, Sequence[Scored]], None]
"""Sees trials pass with what the scorers said of them (not the judges), in the order of the plan."""


def score_run(
    folder: Path,
    registry: Registry,
    *,
    profile: str | None = None,
    scorers: Sequence[str] = (),
    more: Sequence[str] = (),
    reduction: str | None = None,
    watch: Watch | None = None,
    for_pages: bool = False,
) -> dict[str, Any]:
    """Score every stored trial, keep the scores in run.db, and return results.json as plain data.

    `scorers` replace those of the tasks, `more` are added; `profile` and `reduction` (of log-likelihoods) are options
    to them. `watch` is shown each batch, and the gatherer that took it, which keeps what pages show if `for_pages`.
    """
    reader = RunReader(folder)
    chosen = {name: value for name, value in (("profile", profile), ("reduction", reduction)) if value}

    def score_task(task: Task) -> tuple[dict[str, Any], dict[str, int]]:
        """Score one task, and store its scores as they come."""
        gathered, options = GatheredTask(task, for_pages=for_pages), {"chance": chance_of(reader, task), **chosen}
        scored = scored_trials(reader, task, registry, options, [*(scorers or task.scorers), *more])
        write_scores(folder, task.name, gather(reader, scored, gathered, watch))
        pairs = _scored_task(reader, gathered, lambda: reader.scores(task.name))
        return summarize_task(pairs, registry, options, reader.header()), gathered.usage

    with reader:
        return results_of(reader, profile, score_task)


def score_again(reader: RunReader, registry: Registry, *, profile: str | None = None) -> dict[str, Any]:
    """Score what is stored now, in memory: another profile, a run that goes on. Nothing is written."""

    def score_task(task: Task) -> tuple[dict[str, Any], dict[str, int]]:
        """Score one task."""
        options: dict[str, Any] = {"chance": chance_of(reader, task)} | ({"profile": profile} if profile else {})
        gathered = GatheredTask(task)
        scores = list(gather(reader, scored_trials(reader, task, registry, options, task.scorers), gathered))
        pairs = _scored_task(reader, gathered, lambda: scores)
        return summarize_task(pairs, registry, options, reader.header()), gathered.usage

    return results_of(reader, profile, score_task)


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
    reader: RunReader, scored: Iterator[Scored], gathered: GatheredTask, watch: Watch | None = None
) -> Iterator[Score]:
    """Yield the scores of a task and the verdicts of its judges; `gathered` and `watch` see them pass."""
    for batch in _batches(scored):
        gathered.add(batch)
        if watch is not None:
            watch(gathered, batch)
        for _, scores in batch:
            yield from scores
    for verdicts in _batches(stored_verdicts(reader, gathered.task.name)):
        gathered.add_scores(verdicts)
        yield from verdicts


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch


def _scored_task(reader: RunReader, gathered: GatheredTask, scores: Callable[[], Iterable[Score]]) -> ScoredTask:
    """Return a task as aggregates see it."""
    task = gathered.task
    return ScoredTask(
        task,
        gathered.tables(),
        lambda: _pairs(reader, task.name, scores()),
        lambda: reader.samples(task.name),
    )


def _pairs(reader: RunReader, task: str, scores: Iterable[Score]) -> Iterator[tuple[Sample, Score]]:
    """Yield every score with its sample."""
    samples = {sample.id: sample for sample in reader.samples(task)}
    return ((samples[score.key.sample], score) for score in scores)

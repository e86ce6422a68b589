"""A stored run to its results once more, in memory: another profile, a run that goes on. Nothing is written."""

from __future__ import annotations

from typing import Any

from ..core.registry import Registry
from ..core.tasks import Task
from ..store.reader import RunReader
from .gathered import GatheredTask
from .run import ScoredTask, chance_of, gather, pair_scores, results_of, scored_trials, summarize_task


def score_again(reader: RunReader, registry: Registry, *, profile: str | None = None) -> dict[str, Any]:
    """Score what is stored now and return it in the form of results.json."""

    def score_task(task: Task) -> tuple[dict[str, Any], dict[str, int]]:
        """Score one task."""
        options: dict[str, Any] = {"chance": chance_of(reader, task)} | ({"profile": profile} if profile else {})
        gathered = GatheredTask()
        scores = list(gather(reader, task, scored_trials(reader, task, registry, options, task.scorers), gathered))
        scored = ScoredTask(task, gathered.tables(), lambda: pair_scores(reader, task.name, scores))
        return summarize_task(scored, registry, options), gathered.usage

    return results_of(reader, profile, score_task)

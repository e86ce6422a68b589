"""Replies as they come to the figure so far: the task's own scorers read them, within a small share of the processor.

It is the headline that results.json will have, by the same functions, over fewer replies. Where the headline is made of
whole dialogues, chains or groups, or by a judge, there is none before the end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from ..core.registry import Registry
from ..core.tasks import Task
from ..core.types import Prediction, Request, Sample
from ..scoring.aggregates.counted import counted
from ..scoring.aggregates.headline import main_metric
from ..scoring.aggregates.means import headline_of
from ..scoring.protocols.peer_scores import ScoreTrial
from ..scoring.protocols.readings import Reading
from ..scoring.ranges import joined_scorer, score_trial
from ..scoring.tables.gathered import GatheredTask, Scored
from ..store.reader import Trial
from .written import unread_of, written, written_interval

SHARE = 0.015
"""Of the processor time of the whole process: so much may be spent on looking."""
AT_ONCE_S = 0.005
"""Replies that arrive meanwhile wait: their latency is measured."""
AT_END_S = 1.0
MOST_WAITING = 256
"""A request may hold a long document: further replies are left out, and the figure says of how many it is."""
LEAST_READ = 10
"""Fewer say nothing, and the first look has loaded the scorer and read but one."""
MOST_READ = 20_000
"""The interval is narrow by then."""
ASKED_ALONE = ("generate", "generation", "likelihood", "perplexity", "last", "every_with_gt")
"""Inferencers whose trials do not hang on each other: any of them may be read before the others."""

BESIDE = ("calibration",)
"""Aggregates that give no headline."""


class SoFar:
    """Keeps the figure of the task whose replies were read last."""

    def __init__(
        self,
        tasks: Sequence[Task],
        registry: Registry,
        reading: Reading,
        *,
        total: Callable[[], float] = time.process_time,
        own: Callable[[], float] = time.thread_time,
    ) -> None:
        self._tasks = {task.name: _TaskSoFar(task, registry, reading) for task in tasks if _is_told(task)}
        self._several = len(tasks) > 1
        self._waiting: deque[Trial] = deque()
        self._total, self._own = total, own
        self._spent_s = 0.0
        self.words = ""
        self.figures: dict[str, tuple[str, int, float]] = {}
        """Task -> metric, replies that count and their mean."""

    def take(self, sample: Sample, request: Request, prediction: Prediction) -> None:
        """Put a reply aside, to be read when there is time."""
        one = self._tasks.get(prediction.key.task)
        if one is None:
            return
        one.replies += 1
        if len(self._waiting) < MOST_WAITING and one.read < MOST_READ:
            self._waiting.append(Trial(sample, request, prediction, 0))

    def look(self) -> None:
        """Read some of what waits; not at all while the share of the processor is used up."""
        if self._waiting and self._spent_s < SHARE * self._total():
            self._read_some()

    def finish(self) -> None:
        """Read what waits once nothing is asked any more, and no latency is measured."""
        until = self._own() + AT_END_S
        while self._waiting and self._own() < until:
            self._read_some()

    def _read_some(self) -> None:
        self.words, began = "", self._own()  # where a scorer fails there is no figure
        read: dict[str, _TaskSoFar] = {}
        while self._waiting and self._own() - began < AT_ONCE_S:
            trial = self._waiting.popleft()
            name = trial.prediction.key.task
            read[name] = self._tasks[name]
            read[name].add(trial)
        name, last = next(reversed(read.items()))
        told = last.tell()
        self.figures |= {each: one.figure for each, one in read.items() if one.figure is not None}
        self.words = f"{name}: {told}" if told and self._several else told
        self._spent_s += self._own() - began


class _TaskSoFar:
    def __init__(self, task: Task, registry: Registry, reading: Reading) -> None:
        self.replies = self.read = 0
        self._task, self._registry, self._reading = task, registry, reading
        self._options = {**self._task.score_options, **reading.options()}
        self._gathered = GatheredTask(self._task)
        self._fresh: list[Scored] = []
        self.figure: tuple[str, int, float] | None = None

    @cached_property
    def _score(self) -> ScoreTrial:
        return joined_scorer(self._registry, self._reading.scorers or self._task.scorers)

    def add(self, trial: Trial) -> None:
        self.read += 1
        self._fresh.append((trial, score_trial(self._task, self._score, trial, self._options)))

    def tell(self) -> str:
        self._gathered.add(self._fresh)
        self._fresh = []
        tables = self._gathered.tables_so_far()
        name = _chosen(self._task, list(tables))
        if name is None:
            return ""
        estimate = msgspec.to_builtins(headline_of(counted(tables[name]))[name])
        if estimate["value"] is not None:
            self.figure = (name, estimate["n"], estimate["value"])
        if estimate["value"] is None or not estimate["ci95"] or self.read < LEAST_READ:
            return ""
        unread = f", {unread_of(estimate):,} unread" if unread_of(estimate) else ""
        of = f"{self.replies:,}" if self.read == self.replies else f"{self.read:,} of {self.replies:,}"
        return f"{name} {written(name, estimate)} [{written_interval(name, estimate)}] so far ({of} replies{unread})"


def _is_told(task: Task) -> bool:
    """Tell whether the headline can be one of single trials."""
    made = {figure.name for figure in task.figures}
    quoted = task.headline not in made if task.headline else not (made or set(task.aggregates) - set(BESIDE))
    return bool(task.scorers) and task.infer in ASKED_ALONE and quoted


def _chosen(task: Task, metrics: Sequence[str]) -> str | None:
    """Return the metric of the trials that the task's results will be headed with; None where it is none of these."""
    return None if task.headline and task.headline not in metrics else main_metric(tuple(metrics), task.headline)

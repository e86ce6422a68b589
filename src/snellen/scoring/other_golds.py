"""Stored trials under other gold answers: what each would be worth had something else been right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from ..core.builtins import default_registry
from ..core.counting import worth_of
from ..core.tasks import Task
from ..core.types import Sample
from ..store.reader import RunReader, Trial
from .protocols.peer_scores import ScoreTrial
from .ranges import joined_scorer, score_trial

Answers = tuple[str, ...] | None
"""The answers that shall be right; None drops the row."""


class Regraded(NamedTuple):
    """One trial: its sample as it was asked, and what it is worth under golds that it is called with."""

    sample: Sample
    under: Callable[[Answers], float]
    """NaN where the row is dropped, the call failed, or nobody can judge it."""


def regraded(reader: RunReader, task: Task) -> Iterator[Regraded]:
    """Yield every stored trial of a task in the order of the plan."""
    score = joined_scorer(default_registry(), task.scorers)
    for trial in reader.trials(task.name):
        yield Regraded(trial.sample, partial(_worth, task, score, trial))


def _worth(task: Task, score: ScoreTrial, trial: Trial, answers: Answers) -> float:
    if answers is None or trial.prediction.failure is not None:
        return float("nan")
    sample = msgspec.structs.replace(trial.sample, answers=answers)
    found = score_trial(task, score, trial._replace(sample=sample), task.score_options)
    value = worth_of(found[0]) if found else None
    return float("nan") if value is None else value

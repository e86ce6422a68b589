"""A stored run under other gold answers: official, corrected, and the range over what is undecided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ...core.builtins import default_registry
from ...core.counting import worth_of
from ...core.errors import UsageError
from ...core.tasks import Task
from ...core.types import Sample
from ...data.errata import Golds, read_golds
from ...scoring.protocols.peer_scores import ScoreTrial
from ...scoring.ranges import joined_scorer, score_trial
from ...store.reader import RunReader, Trial
from .gold_review import GoldRange, gold_range

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


class RangeOfRun(Struct, frozen=True):
    """The score of a run under a ledger of errata."""

    task: str
    metric: str
    range: GoldRange
    changed: int
    misfits: int

    def line(self) -> str:
        """Say it in one line."""
        found = self.range
        share = 100 * found.undecided / max(found.rows, 1)
        words = f"official {100 * found.official:.1f} · corrected {100 * found.corrected:.1f}"
        open_rows = f"undecided {share:.1f} % of rows: {100 * found.low:.1f}–{100 * found.high:.1f}"
        lost = (
            f" · {self.misfits} lines of the ledger speak of another question and were not used" if self.misfits else ""
        )
        return f"{self.task} {self.metric}: {words} · {open_rows} · {self.changed} golds changed{lost}"


def score_range(folder: Path, errata: Path, version: str | None = None) -> list[RangeOfRun]:
    """Return a run's score, task by task, under the official golds, the corrected ones, and all that is undecided."""
    found = []
    with RunReader(folder) as reader:
        for card in reader.header().tasks:
            golds = read_golds(errata, version) or Golds(())
            official, corrected, admissible = _under(reader, card, golds)
            metric = next(iter(reader.scores(card.name))).metric if reader.has_scores(card.name) else card.scorers[0]
            spans = gold_range(np.array(official), np.array(corrected), admissible)
            found.append(RangeOfRun(card.name, metric, spans, len(golds.changed), len(golds.misfits)))
    return found


def _under(
    reader: RunReader, card: Task, golds: Golds
) -> tuple[list[float], list[float], list[np.ndarray[tuple[int], np.dtype[np.float64]]]]:
    official, corrected, admissible = [], [], []
    for sample, under in regraded(reader, card):
        plain = under(sample.answers)
        entry = golds.entry(sample)
        official.append(plain)
        if entry is None or entry.status == "official":
            corrected.append(plain)
            admissible.append(np.array([plain]))
            continue
        fixed = golds.apply(sample).answers or None
        corrected.append(under(fixed))
        admissible.append(np.array([under(answers) for answers in golds.admissible(sample)]))
    return official, corrected, admissible


def _task_of(reader: RunReader, folder: Path, task: str | None) -> Task:
    cards = {card.name: card for card in reader.header().tasks}
    if task is None and len(cards) > 1:
        raise UsageError(f"{folder} has the tasks {', '.join(cards)}: say which with --task")
    name = task or next(iter(cards))
    if name not in cards:
        raise UsageError(f"{folder} has no task {name!r}: it has {', '.join(cards)}")
    return cards[name]


class Translated(Struct, frozen=True):
    """Two runs of different golds, compared under either's."""

    task: str
    differing: int
    shared: int
    first: float
    second: float
    second_by_firsts: float
    first_by_seconds: float

    def line(self) -> str:
        """Say it in one line."""
        by_first, by_second = self.second_by_firsts - self.first, self.second - self.first_by_seconds
        words = f"{self.differing} of {self.shared:,} shared questions have another gold"
        alone = 100 * (self.second - self.second_by_firsts)
        moved = f"the golds alone moved the second run by {alone:+.1f} points"
        both = f"difference {100 * by_first:+.1f} by the first's golds, {100 * by_second:+.1f} by the second's"
        return f"{words}; {both}; {moved}"


def compare_golds(first: Path, second: Path, task: str | None = None) -> Translated:
    """Compare two runs that were scored by different golds: both by the first's, and both by the second's."""
    with RunReader(first) as one, RunReader(second) as two:
        card, other = _task_of(one, first, task), _task_of(two, second, task)
        golds = {sample.id: sample.answers for sample in one.samples(card.name)}
        others = {sample.id: sample.answers for sample in two.samples(other.name)}
        shared = golds.keys() & others.keys()
        rows = [[], [], [], []]  # type: list[list[float]]
        for reader, own_card, own, foreign, at in ((one, card, golds, others, 0), (two, other, others, golds, 2)):
            for sample, under in regraded(reader, own_card):
                if sample.id in shared:
                    rows[at].append(under(own[sample.id]))
                    rows[at + 1].append(under(foreign[sample.id]))
    means = [float(np.nanmean(row)) if row else float("nan") for row in rows]
    differing = sum(golds[name] != others[name] for name in shared)
    return Translated(card.name, differing, len(shared), means[0], means[2], means[3], means[1])

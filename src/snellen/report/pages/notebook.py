"""Results as a notebook or a Python prompt shows them: one line, or the tables of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.markup import join, tag
from ...core.text import plural
from ...scoring.headline import headline
from ...scoring.table import Outcome, grade, is_unread
from ..written import written, written_interval
from .gallery import Budget, Shown, card
from .parts import metric_table


def headline_words(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield for each task its headline metric with interval and number of trials."""
    for task, result in results["tasks"].items():
        name, estimate = headline(result)
        if name is None:
            yield f"{task}: nothing measured"
            continue
        interval = f" [{written_interval(name, estimate)}]" if estimate.get("ci95") else ""
        failed = f", {estimate['failed']} failed" if estimate["failed"] else ""
        yield f"{task} {name} {written(name, estimate)}{interval}, n {estimate['n']}{failed}"


def results_html(results: Mapping[str, Any]) -> str:
    """Return one table a task, without any script or style of its own."""
    title = tag("p", f"{results['model']} · run {results['run']['id']}")
    tables = (metric_table(result["metrics"], task) for task, result in results["tasks"].items())
    return str(join((title, *tables)))


class ShownTrials(Sequence[Shown]):
    """The trials of one sample: a list of them for programs, pictures and replies for a notebook."""

    def __init__(self, trials: Sequence[Shown]) -> None:
        self._trials = list(trials)

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, place: Any) -> Any:
        return self._trials[place]

    def __repr__(self) -> str:
        first = self._trials[0]
        lines = [f"{first.sample.id}: {first.sample.question}", f"expected: {', '.join(first.sample.answers)}"]
        lines += [f"{trial.prediction.key.variant} #{trial.prediction.key.repeat + 1}: {trial.text}" for trial in self]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return picture, question, reply and score of each trial, without any script or style of its own."""
        budget = Budget(PICTURE_BYTES)
        cards = [card(trial, *_outcome(trial), budget) for trial in self._trials]
        return str(join((tag("p", f"{plural(len(cards), 'trial')} of {self._trials[0].sample.id}"), *cards)))


PICTURE_BYTES = 4_000_000
"""How much pictures may add to a notebook."""


def _outcome(trial: Shown) -> tuple[int, float]:
    if trial.prediction.failure is not None:
        return Outcome.FAILED, 0.0
    score = trial.scores[0] if trial.scores else None
    if score is None or score.value is None:
        unread = Outcome.UNREAD if score and is_unread(score.reason) else Outcome.UNJUDGED
        return unread if score else Outcome.PENDING, 0.0
    return int(grade(np.array([score.value]), score.metric)[0]), score.value

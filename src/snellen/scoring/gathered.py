"""Scored trials as they pass to the tables and the tokens of a task: coded some at a time, none is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.types import Prediction, Score, Usage
from ..store.reader import Trial
from .reading import ScoreRow, TableBuilder, TrialRow
from .table import ScoreTable

Scored = tuple[Trial, Sequence[Score]]
"""A stored trial and its scores; a failed one has none."""
TOKENS = ("input_tokens", "output_tokens", "reasoning_tokens")
ROWS_AT_ONCE = 4_000
"""Rows that are coded together: what a numpy call costs is shared by many."""
USAGE = (*TOKENS, "requests")


class GatheredTask:
    """What a task's trials add up to."""

    def __init__(self) -> None:
        self.usage = dict.fromkeys(USAGE, 0)
        self._builder = TableBuilder()
        self._trials: list[TrialRow] = []
        self._scores: list[ScoreRow] = []
        self._has_scores = False

    def add(self, batch: Sequence[Scored]) -> None:
        """Take trials with their scores."""
        samples = {trial.sample.id: trial.sample for trial, _ in batch}
        self._builder.add_samples([(name, sample.group, sample.tags) for name, sample in samples.items()])
        self._trials += [_trial_row(trial.prediction) for trial, _ in batch]
        self._count([trial.prediction.usage for trial, _ in batch])
        self.add_scores([score for _, scores in batch for score in scores])

    def _count(self, usages: Sequence[Usage | None]) -> None:
        known = [usage for usage in usages if usage is not None]
        for name in TOKENS:
            self.usage[name] += sum([getattr(usage, name) or 0 for usage in known])
        self.usage["requests"] += len(usages)

    def add_scores(self, scores: Iterable[Score]) -> None:
        """Take more scores of trials."""
        self._scores += [_score_row(score) for score in scores]
        if len(self._scores) + len(self._trials) > ROWS_AT_ONCE:
            self._encode()

    def _encode(self) -> None:
        self._has_scores = self._has_scores or bool(self._scores)
        self._builder.add_scores(self._scores)
        self._builder.add_trials(self._trials)
        self._scores, self._trials = [], []

    def tables(self) -> dict[str, ScoreTable]:
        """Return one table a metric; where nothing could be scored, one of accuracy that says so."""
        self._encode()
        return self._builder.tables(() if self._has_scores else ("accuracy",))


def _trial_row(prediction: Prediction) -> TrialRow:
    key, failure = prediction.key, prediction.failure
    return key.sample, key.variant, key.repeat, failure.kind if failure else None


def _score_row(score: Score) -> ScoreRow:
    key = score.key
    return key.sample, key.variant, key.repeat, score.metric, score.value, score.answer, score.rule, score.reason

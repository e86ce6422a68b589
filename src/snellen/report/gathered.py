"""Scored trials as they pass to the columns and costs of a task: what `read_columns` and `read_costs` read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..core.tasks import Task
from ..core.types import Prediction, Score
from ..scoring.gathered import Scored
from ..scoring.table import ScoreTable
from .trials import NO_SCORE, Costs, SampleFacts, ScoreFacts, TaskFacts, TrialColumns, TrialRow, trial_columns


class GatheredTrials:
    """The trials of one task, for its report."""

    def __init__(self, task: Task) -> None:
        self.tables: Mapping[str, ScoreTable] = {}
        self._task = task
        self._metrics: tuple[str, ...] = ()
        self._samples: dict[str, SampleFacts] = {}
        self._rows: list[TrialRow] = []
        self._found: list[ScoreFacts] = []
        self._costs: list[tuple[float, int]] = []

    def add(self, batch: Sequence[Scored]) -> None:
        """Take trials with their scores."""
        for trial, scores in batch:
            sample, key, failure = trial.sample, trial.prediction.key, trial.prediction.failure
            if scores and not self._metrics:
                self._metrics = tuple(score.metric for score in scores)
            if sample.id not in self._samples:
                self._samples[sample.id] = SampleFacts(
                    sample.id, sample.question, sample.group, sample.answers, sample.tags
                )
            self._rows.append((trial.row, key.sample, key.variant, key.repeat, failure.kind.value if failure else None))
            self._found.append(self._facts(scores))
            self._costs.append(_cost(trial.prediction))

    def _facts(self, scores: Sequence[Score]) -> ScoreFacts:
        for score in scores:
            if score.metric == self._metrics[0]:
                return score.value, score.answer, score.rule, score.reason
        return NO_SCORE

    def columns(self) -> TrialColumns:
        """Return the columns of all trials."""
        metric = self._metrics[0] if self._metrics else ""
        return trial_columns(
            TaskFacts(self._task, metric, self._metrics, list(self._samples.values())), self._rows, self._found
        )

    def costs(self) -> Costs:
        """Return what the trials took."""
        latency, tokens = zip(*self._costs, strict=True) if self._costs else ((), ())
        return Costs(np.array(latency, np.float64), np.array(tokens, np.int64))


def _cost(prediction: Prediction) -> tuple[float, int]:
    timing, usage = prediction.timing, prediction.usage
    latency_s = np.nan if timing is None or prediction.cached else timing.done - timing.sent
    return latency_s, (usage.output_tokens or 0) if usage else 0

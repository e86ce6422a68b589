"""`--until-ci`: stop asking when an interval that is valid at every moment is narrow enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..core.counting import worth_of
from ..core.ids import rng
from ..core.jobs import Item
from ..core.protocols import Scorer
from ..core.types import Prediction, Request, Sample
from ..stats.sequential import ConfidenceSequence

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class IntervalLimit:
    """Feeds one question after another to a confidence sequence, or one group of questions, in the order of the plan.

    Taking replies in the order they come would let fast questions go first, and fast ones are often easy ones.
    Questions of one group are alike: taken one by one they would narrow the interval as if each were news.
    """

    def __init__(
        self, half_width_points: float, scorer: Scorer, trials_per_sample: int, options: Mapping[str, Any] = NO_OPTIONS
    ) -> None:
        self.sequence = ConfidenceSequence(half_width=half_width_points / 100)
        self.stopped = False
        self._points = half_width_points
        self._scorer = scorer
        self._options = options
        self._trials = trials_per_sample
        self._metric = ""
        self._sizes: list[int] = []
        """The questions of every group, in the order of the plan."""
        self._open: dict[int, dict[int, list[float | None]]] = {}
        """By group, and within it by question: the values of its trials."""
        self._order: dict[int, int] = {}
        self._next = 0
        self._questions = 0
        self._ready: dict[int, tuple[float | None, int]] = {}

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Put the questions into seeded random order: a confidence sequence needs them exchangeable.

        Questions of one chain, dialogue or document stay together: they are asked as one, and count as one.
        """
        groups: dict[tuple[bool, str], list[Item]] = {}
        for item in items:
            alone = item.sample.group is None
            groups.setdefault((alone, item.sample.id if alone else item.sample.group or ""), []).append(item)
        order = list(groups.values())
        rng(seed, "until-ci").shuffle(order)
        self._sizes = [len(group) for group in order]
        self._order = {item.position: rank for rank, group in enumerate(order) for item in group}
        if self._stretch > 1.0:
            self.sequence = ConfidenceSequence(half_width=self._points / 100 / self._stretch)
        return [item for group in order for item in group]

    @property
    def _stretch(self) -> float:
        """The largest group in mean ones: each counts by its share of the largest, so that questions weigh alike."""
        return max(self._sizes) * len(self._sizes) / sum(self._sizes) if self._sizes else 1.0

    def observe(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Take one finished trial."""
        rank = self._order[item.position]
        group = self._open.setdefault(rank, {})
        group.setdefault(item.position, []).append(self._value(item.sample, request, prediction))
        if sum(map(len, group.values())) < self._trials * self._sizes[rank]:
            return
        means = [_mean(values) for values in self._open.pop(rank).values()]
        known = [mean for mean in means if mean is not None]
        of_group = _mean(means)
        share = self._sizes[rank] / max(self._sizes)
        self._ready[rank] = (None if of_group is None else of_group * share, len(known))
        while self._next in self._ready and not self.stopped:
            self._take(*self._ready.pop(self._next))

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        low, high = self.sequence.interval
        interval = (low * self._stretch, min(1.0, high * self._stretch))
        shown = {"questions": self._questions, "groups": self.sequence.n, "interval": interval, "metric": self._metric}
        return {"points": self._points, "stopped": self.stopped, **shown}

    def _take(self, value: float | None, questions: int) -> None:
        self._next += 1
        if value is not None:
            self.sequence.add(value)
            self._questions += questions
        if self.sequence.is_narrow:
            self.stopped = True

    def _value(self, sample: Sample, request: Request, prediction: Prediction) -> float | None:
        if prediction.failure is not None:
            return None
        score = self._scorer(sample, request, prediction, self._options)[0]
        self._metric = score.metric
        return worth_of(score)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None

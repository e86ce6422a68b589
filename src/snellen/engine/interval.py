"""`--until-ci`: stop asking when an interval that is valid at every moment is narrow enough."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.counting import worth_of
from ..core.ids import rng
from ..core.jobs import Item
from ..core.protocols import Scorer
from ..core.types import Prediction, Request, Sample
from ..stats.sequential import ConfidenceSequence

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class PrefixLimit:
    """Takes questions, or groups of them, in the order of the plan and decides after each whether to stop.

    Taking replies in the order they come would let fast questions go first, and fast ones are often easy ones: what
    comes early waits. What is stored is taken again in the same order, so a run that was killed decides the same.
    """

    def __init__(self, scorer: Scorer, trials_per_sample: int, options: Mapping[str, Any] = NO_OPTIONS) -> None:
        self.stopped = False
        self._scorer = scorer
        self._options = options
        self._trials = trials_per_sample
        self._beside: frozenset[str] = frozenset()
        self._waited_for = trials_per_sample
        self._metric = ""
        self._sizes: list[int] = []
        """The questions of every group, in the order of the plan."""
        self._open: dict[int, dict[int, list[Seen | None]]] = {}
        """By group, and within it by question: what its trials gave, None of those beside the score."""
        self._order: dict[int, int] = {}
        self._next = 0
        self._ready: dict[int, list[tuple[int, list[Seen]]]] = {}

    def leave_beside(self, variants: Collection[str], repeats: int) -> None:
        """Wait for the trials of these variants of every question too, and let no score hear of them: arms."""
        self._beside = frozenset(variants)
        self._waited_for = self._trials + len(self._beside) * repeats

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Put the questions into seeded random order; those of one chain, dialogue or document stay together."""
        groups: dict[tuple[bool, str], list[Item]] = {}
        for item in items:
            alone = item.sample.group is None
            groups.setdefault((alone, item.sample.id if alone else item.sample.group or ""), []).append(item)
        order = self.arrange(list(groups.values()), seed)
        self._sizes = [len(group) for group in order]
        self._order = {item.position: rank for rank, group in enumerate(order) for item in group}
        return [item for group in order for item in group]

    def arrange(self, groups: list[list[Item]], seed: int) -> list[list[Item]]:
        """Return the groups in the order in which they are asked."""
        rng(seed, "until-ci").shuffle(groups)
        return groups

    def observe(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Take one finished trial."""
        rank = self._order[item.position]
        group = self._open.setdefault(rank, {})
        group.setdefault(item.position, []).append(self._seen(item.sample, request, prediction))
        if sum(map(len, group.values())) < self._waited_for * self._sizes[rank]:
            return
        questions = self._open.pop(rank)  # in the order in which they came, which must not matter
        self._ready[rank] = [
            (position, sorted((seen for seen in questions[position] if seen is not None), key=repr))
            for position in sorted(questions)
        ]
        while self._next in self._ready and not self.stopped:
            self._next += 1
            self.take(self._next - 1, self._ready.pop(self._next - 1))

    def take(self, rank: int, questions: list[tuple[int, list[Seen]]]) -> None:
        """Take the next group of the order: (position, what its trials gave) of every question."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        raise NotImplementedError

    def _seen(self, sample: Sample, request: Request, prediction: Prediction) -> Seen | None:
        if request.key.variant in self._beside:
            return None
        if prediction.failure is not None:
            return Seen(None, failed=True)
        score = self._scorer(sample, request, prediction, self._options)[0]
        self._metric = score.metric
        return Seen(worth_of(score), unread=score.value is None)


class Seen(NamedTuple):
    """What one trial gave: its worth, None where it is outside of the figure."""

    value: float | None
    unread: bool = False
    failed: bool = False


class IntervalLimit(PrefixLimit):
    """Feeds one question after another to a confidence sequence, or one group of questions.

    Questions of one group are alike: taken one by one they would narrow the interval as if each were news.
    """

    def __init__(
        self, half_width_points: float, scorer: Scorer, trials_per_sample: int, options: Mapping[str, Any] = NO_OPTIONS
    ) -> None:
        super().__init__(scorer, trials_per_sample, options)
        self.sequence = ConfidenceSequence(half_width=half_width_points / 100)
        self._points = half_width_points
        self._questions = 0

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Do so, and let groups of unequal size count by their size: a confidence sequence needs them exchangeable."""
        order = super().shuffle(items, seed)
        if self._stretch > 1.0:
            self.sequence = ConfidenceSequence(half_width=self._points / 100 / self._stretch)
        return order

    @property
    def _stretch(self) -> float:
        """The largest group in mean ones: each counts by its share of the largest, so that questions weigh alike."""
        return max(self._sizes) * len(self._sizes) / sum(self._sizes) if self._sizes else 1.0

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        low, high = self.sequence.interval
        interval = (low * self._stretch, min(1.0, high * self._stretch))
        shown = {"questions": self._questions, "groups": self.sequence.n, "interval": interval, "metric": self._metric}
        return {"points": self._points, "stopped": self.stopped, **shown}

    def take(self, rank: int, questions: list[tuple[int, list[Seen]]]) -> None:
        """Add the mean of a group, by its share of the largest."""
        means = [mean_of([seen.value for seen in trials]) for _, trials in questions]
        of_group = mean_of(means)
        if of_group is not None:
            self.sequence.add(of_group * self._sizes[rank] / max(self._sizes))
            self._questions += sum(mean is not None for mean in means)
        if self.sequence.is_narrow:
            self.stopped = True


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is known, None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None

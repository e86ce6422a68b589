"""`--until-ci`: stop asking when an interval that is valid at every moment is narrow enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.ids import rng
from ..core.jobs import Item
from ..core.protocols import Scorer
from ..core.types import Prediction, Request, Sample
from ..stats.sequential import ConfidenceSequence


class EarlyStop:
    """Feeds one question mean after another to a confidence sequence, in the order of the plan.

    Taking replies in the order they come would let fast questions go first, and fast ones are often easy ones.
    """

    def __init__(
        self, half_width_points: float, scorer: Scorer, trials_per_sample: int, stop: Callable[[], None]
    ) -> None:
        self.sequence = ConfidenceSequence(half_width=half_width_points / 100)
        self.stopped = False
        self._points = half_width_points
        self._scorer = scorer
        self.options: Mapping[str, Any] = {}
        """What the scorer is told."""
        self._trials = trials_per_sample
        self._stop = stop
        self._open: dict[int, list[float | None]] = {}
        self._order: dict[int, int] = {}
        self._next = 0
        self._ready: dict[int, float | None] = {}

    def shuffle(self, items: list[Item], seed: int) -> list[Item]:
        """Put the questions into seeded random order: a confidence sequence needs them exchangeable.

        Questions of one chain, dialogue or document stay together: they are asked as one.
        """
        groups: dict[tuple[bool, str], list[Item]] = {}
        for item in items:
            alone = item.sample.group is None
            groups.setdefault((alone, item.sample.id if alone else item.sample.group or ""), []).append(item)
        order = list(groups.values())
        rng(seed, "until-ci").shuffle(order)
        items = [item for group in order for item in group]
        self._order = {item.position: rank for rank, item in enumerate(items)}
        return items

    def observe(self, item: Item, request: Request, prediction: Prediction) -> None:
        """Take one finished trial."""
        values = self._open.setdefault(item.position, [])
        values.append(self._value(item.sample, request, prediction))
        if len(values) < self._trials:
            return
        known = [value for value in self._open.pop(item.position) if value is not None]
        self._ready[self._order[item.position]] = sum(known) / len(known) if known else None
        while self._next in self._ready and not self.stopped:
            self._take(self._ready.pop(self._next))

    def summary(self) -> dict[str, Any]:
        """Return what is recorded with the run."""
        shown = {"questions": self.sequence.n, "interval": self.sequence.interval}
        return {"points": self._points, "stopped": self.stopped, **shown}

    def _take(self, value: float | None) -> None:
        self._next += 1
        if value is not None:
            self.sequence.add(value)
        if self.sequence.is_narrow:
            self.stopped = True
            self._stop()

    def _value(self, sample: Sample, request: Request, prediction: Prediction) -> float | None:
        if prediction.failure is not None:
            return None
        return self._scorer(sample, request, prediction, self.options)[0].value

"""Opinions of all trials to the few numbers of a second opinion: the harness's, ours, and what lies between."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from msgspec import to_builtins
from msgspec.structs import replace

from ...core.types import Estimate
from ...stats.intervals import estimate_mean
from .disagreement import (
    AGAINST,
    DRAWN,
    FAILURE,
    FOR,
    KINDS,
    LEFT_OUT,
    MISREAD,
    NEITHER,
    NOT_COMPARED,
    OTHERWISE,
    READ_INTO,
    SAME,
    UNREAD,
    Opinion,
)

GROUPED = "all-of-group"
RECORDED, REPRODUCED, UNKNOWN = "recorded", "reproduced", "unknown"
STEPS = (
    ("replies read as they are written", (MISREAD, OTHERWISE)),
    ("no letters drawn", (DRAWN,)),
    ("failed calls left out", (FAILURE,)),
    ("replies without a readable answer counted as not right", (READ_INTO, UNREAD)),
    ("open answers that we do not score left out", (NOT_COMPARED,)),
    ("replies counted that the harness left out", (LEFT_OUT,)),
)
"""From the harness's number to ours, one cause after the other."""


class _Mean:
    """A sum and how many went in."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


class OpinionTally:
    """Adds up opinions, one trial at a time."""

    def __init__(self, aggregate: str = "mean", *, by_file: bool = False) -> None:
        self.aggregate, self._by_file = aggregate, by_file
        self.trials = self.failed = self.unscored = 0
        self.metric = ""
        """What our value is called."""
        self.kinds: Counter[tuple[str, str]] = Counter()
        self._recorded, self._reproduced, self._peer = _Mean(), _Mean(), _Mean()
        self._steps = [_Mean() for _ in STEPS]
        self._differ = self._unjudged = self._failed_right = 0
        self._splits: dict[str, tuple[_Mean, _Mean]] = {}
        self._groups: dict[str, list[tuple[float | None, float | None, bool]]] = {}

    def add(self, opinion: Opinion, *, failed: bool) -> None:
        """Count one trial."""
        self.trials += 1
        self.metric = self.metric or opinion.metric
        self.failed += failed
        self.unscored += opinion.our_value is None and not failed
        self.kinds[opinion.kind, opinion.favour] += 1
        self._recorded.add(opinion.recorded)
        self._reproduced.add(opinion.reproduced)
        self._peer.add(opinion.peer_value)
        self._unjudged += opinion.peer_value is None and not failed
        self._failed_right += opinion.kind == FAILURE and bool(opinion.peer_value)
        self._differ += _unlike(opinion)
        self._step(opinion)
        for mean, value in zip(self._split(opinion.split), (opinion.peer_value, opinion.our_worth), strict=True):
            mean.add(value)
        if self.aggregate == GROUPED:
            members = self._groups.setdefault(opinion.group or opinion.sample, [])
            members.append((opinion.reproduced, opinion.our_worth, failed))

    def _split(self, name: str) -> tuple[_Mean, _Mean]:
        if name not in self._splits:
            self._splits[name] = (_Mean(), _Mean())
        return self._splits[name]

    def _step(self, opinion: Opinion) -> None:
        """Add what the trial is worth after each cause is mended; the last step is our number."""
        value = opinion.peer_value
        for mean, (_, kinds) in zip(self._steps, STEPS, strict=True):
            if opinion.kind in kinds:
                value = opinion.our_worth
            mean.add(value)

    def described(self) -> dict[str, Any]:
        """Return everything counted, as plain data."""
        return {
            "trials": self.trials,
            "failed": self.failed,
            "unscored": self.unscored,
            "peer": self._peer_number(),
            "ours_of_groups": to_builtins(self._our_groups()) if self.aggregate == GROUPED else None,
            "steps": self._described_steps(),
            "kinds": {kind: self._described_kind(kind) for kind in KINDS},
            "failures_counted_as_right": self._failed_right,
            "splits": self._described_splits(),
        }

    def _described_splits(self) -> dict[str, Any]:
        """Return both numbers of each split, where a file holds several: a harness quotes them apart."""
        if len(self._splits) < 2 or self.aggregate == GROUPED or self._how() == UNKNOWN:
            return {}
        return {
            name: {"peer": peer.value, "peer_n": peer.count, "ours": ours.value, "ours_n": ours.count}
            for name, (peer, ours) in sorted(self._splits.items())
        }

    def _described_kind(self, kind: str) -> dict[str, Any]:
        found = {favour: self.kinds[kind, favour] for favour in (FOR, AGAINST, NEITHER)}
        return {"what": KINDS[kind], "count": sum(found.values()), **found}

    def _described_steps(self) -> list[dict[str, Any]]:
        """Return how far each cause moves the number; nothing where trials are not averaged one by one."""
        if self.aggregate == GROUPED or self._peer.value is None or self._how() == UNKNOWN:
            return []
        steps, before = [], self._peer.value
        for mean, (what, kinds) in zip(self._steps, STEPS, strict=True):
            after = mean.value if mean.value is not None else before
            count = sum(count for (kind, _), count in self.kinds.items() if kind in kinds)
            steps.append({"what": what, "trials": count, "change": after - before, "after": after})
            before = after
        return steps

    def _peer_number(self) -> dict[str, Any]:
        """Return the harness's number: from its own verdicts where the file has them, else by its rule."""
        how = self._how()
        mean = {RECORDED: self._recorded, REPRODUCED: self._reproduced}.get(how, _Mean())
        value, count = mean.value, mean.count
        if how == REPRODUCED and self.aggregate == GROUPED:
            rights = [all(bool(peer) for peer, _, _ in members) for members in self._groups.values()]
            value, count = (sum(rights) / len(rights) if rights else None), len(rights)
        return {
            "value": value,
            "n": count,
            "how": how,
            "aggregate": self.aggregate,
            "recorded": self._recorded.value,
            "recorded_n": self._recorded.count,
            "reproduced": self._reproduced.value,
            "reproduced_n": self._reproduced.count,
            "verdicts_unlike_the_rule": self._differ,
        }

    def _how(self) -> str:
        """Return where the number comes from; one of a part of the rows is no number."""
        if self._by_file or (self.aggregate == GROUPED and 0 < self._recorded.count == len(self._groups)):
            return RECORDED
        return REPRODUCED if self._reproduced.count and not self._unjudged else UNKNOWN

    def _our_groups(self) -> Estimate:
        """Return our share of groups all of whose members are right; with one outside and none wrong it is unscored."""
        values, unscored, failed = [], 0, 0
        for members in self._groups.values():
            ours = [value for _, value, _ in members]
            if any(value is not None and value < 1 for value in ours):
                values.append(0.0)
            elif None in ours:
                failed += any(lost for _, _, lost in members)
                unscored += not any(lost for _, _, lost in members)
            else:
                values.append(1.0)
        made = estimate_mean(np.array(values)) if values else Estimate(None)
        return replace(made, unscored=unscored, failed=failed, unit="groups")


def _unlike(opinion: Opinion) -> bool:
    """Tell whether the file's verdict is not what the rule gives; a drawn letter is nobody's rule."""
    if opinion.recorded is None or opinion.reproduced is None or opinion.kind == DRAWN:
        return False
    return abs(opinion.recorded - opinion.reproduced) > SAME

"""What was planned of a task and what is stored, by unit: so that every estimate says what became of all of it.

planned = n + unscored + failed + not yet asked + left out, whatever is counted: trials, questions, chains …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import structs

from ...core.builtins import is_shipped
from ...core.tasks import PlannedCounts, RunHeader, Task
from ...core.types import Estimate
from ..tables.table import Codes, ScoreTable
from .means import axes_of, group_codes
from .robustness import read_level

OF = "trials of "
PAIRS = "pairs of "


class TaskCounts:
    """The plan of one task beside the trials that are stored; without a plan, all that is stored was planned."""

    def __init__(self, table: ScoreTable, task: Task | None = None, header: RunHeader | None = None) -> None:
        self._table, self._task = table, task
        planned = header.planned.get(task.name) if header is not None and task is not None else None
        self._complete = planned is None or planned <= len(table)
        self._trials = len(table) if planned is None else max(planned, len(table))
        self._counted = header.counted.get(task.name) if header is not None and task is not None else None
        self._groups: dict[str, Mapping[str, int]] = {}
        self._stored: dict[str, int | None] = {}
        self._ours = task is not None and is_shipped("inferencer", task.infer)

    def settle(self, estimate: Estimate) -> Estimate:
        """Return the estimate with what it does not count: not yet asked, and left out. One without a unit stays."""
        return self._settle(estimate, self._seen(estimate.unit), self._planned(estimate.unit))

    def settle_all(self, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
        """Settle the estimates of all the task's trials."""
        return {name: self.settle(estimate) for name, estimate in estimates.items()}

    def settle_group(self, key: str, value: str, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
        """Settle the estimates of one group."""
        seen, planned = self._in_groups(key).get(value, 0), self._planned_in_group(key, value)
        return {name: self._settle(estimate, seen, planned) for name, estimate in estimates.items()}

    def _settle(self, estimate: Estimate, seen: int | None, planned: int | None) -> Estimate:
        if seen is None:
            return estimate
        left_out = seen - estimate.n - estimate.unscored - estimate.failed
        waiting = 0 if self._complete else None if planned is None else max(0, planned - seen)
        return structs.replace(estimate, not_yet_asked=waiting, left_out=max(0, left_out))

    def unseen_groups(self, key: str) -> Iterator[str]:
        """Yield the planned values of a key of which no trial is stored yet."""
        planned = self._tags.get(key, {}) if key in self._table.tags else {}
        if key == "variant" and self._task is not None:
            planned = dict.fromkeys(self._task.variants, 1)
        yield from (value for value in sorted(planned) if value not in self._in_groups(key))

    def _in_groups(self, key: str) -> Mapping[str, int]:
        """Return how many trials of every value of a key are stored."""
        if key not in self._groups:
            codes, values = group_codes(self._table, key)
            counts = np.bincount(codes, minlength=len(values)).tolist()
            self._groups[key] = {value: count for value, count in zip(values, counts, strict=True) if count}
        return self._groups[key]

    @property
    def _tags(self) -> Mapping[str, Mapping[str, int]]:
        return self._counted.tags if self._counted is not None else {}

    @cached_property
    def _samples(self) -> int | None:
        """Return the planned questions; a plug-in may ask of each what it wants, so that its are not known."""
        if isinstance(self._counted, PlannedCounts):
            return self._counted.samples
        if self._task is None or not self._ours:
            return None
        return self._trials // (len(self._task.variants) * self._task.repeats)

    def beside_card(self) -> list[str]:
        """Say of how many rows of its benchmark a task's number is, where its card counts others than were planned.

        Which shape was read is not stored: where shapes have unlike counts, each is named.
        """
        dataset = self._task.dataset if self._task is not None else {}
        sources = dataset.get("sources") or {}
        meant = dataset.get("needs") or sources
        counts = {name: one["count"] for name, one in sources.items() if name in meant and one.get("count")}
        if not counts or self._samples is None or self._samples in counts.values():
            return []
        alike = len(set(counts.values())) == 1
        whole = [f"{count:,}" if alike else f"{count:,} ({name})" for name, count in counts.items()]
        rows = f"{self._samples:,} of {' or '.join(dict.fromkeys(whole))} rows"
        more = self._samples > max(counts.values())
        return [f"{rows}: {'more than the card counts, another version' if more else 'a part of the benchmark'}"]

    def _seen(self, unit: str) -> int | None:
        """Return how many of a unit are stored; None for one that is not known."""
        if unit not in self._stored:
            self._stored[unit] = self._count(unit)
        return self._stored[unit]

    def _count(self, unit: str) -> int | None:
        table = self._table
        if unit.startswith(OF):
            return self._count_group(*unit.removeprefix(OF).partition("=")[::2])
        if unit.startswith(PAIRS):
            return int(np.unique(table.sample).size) * _levels(unit, table.variants)
        if unit == "chains":
            from .consistency import settled_chains  # a task without chains imports nothing of them

            return settled_chains(table) if "role" in table.tags else None
        count = COUNTED.get(unit)
        return None if count is None else count(table)

    def _count_group(self, key: str, value: str) -> int:
        if key != "step" or "role" not in self._table.tags:
            return self._in_groups(key).get(value, 0)
        # The inference of a chain has a step too: 0, or none.
        steps, roles = (
            codes == list(values).index(wanted) if wanted in values else np.zeros(len(self._table), dtype=bool)
            for wanted, (codes, values) in (
                (value, group_codes(self._table, "step")),
                ("step", group_codes(self._table, "role")),
            )
        )
        return int(np.count_nonzero(steps & roles))

    def _planned(self, unit: str) -> int | None:
        """Return how many of a unit were planned; None where nobody wrote it down."""
        if unit == "trials":
            return self._trials
        task, samples = self._task, self._samples
        if task is None or samples is None:
            return None
        variants, repeats = len(task.variants), task.repeats
        if unit.startswith(OF):
            return self._planned_in_group(*unit.removeprefix(OF).partition("=")[::2])
        if unit.startswith(PAIRS):
            return samples * _levels(unit, task.variants)
        chains = self._counted.chains if self._counted is not None else None
        known = {"questions": samples, "prompts": samples * variants, "runs": repeats, "variants": variants}
        if chains is not None:
            known |= {"chains": chains * variants * repeats, "charts": chains}
        return known.get(unit)

    def _planned_in_group(self, key: str, value: str) -> int | None:
        task, samples = self._task, self._samples or 0
        if task is None:
            return None
        if key in self._table.tags:
            tagged = self._tags.get(key)
            return None if tagged is None else tagged.get(value, 0) * len(task.variants) * task.repeats
        if key == "repeat":
            return samples * len(task.variants)
        same = [
            name for name in task.variants if value == (name if key == "variant" else axes_of(name).get(key, "base"))
        ]
        return samples * task.repeats * len(same)


def _levels(unit: str, variants: Sequence[str]) -> int:
    """Return how many levels of a family of perturbations there are, base not counted."""
    levels = [read_level(name) for name in variants]
    return len({level for level in levels if level and level[0] == unit.removeprefix(PAIRS) and level[1] > 0.0})


def _changes(*columns: Codes) -> int:
    """Return how many different rows sorted columns have."""
    if not columns[0].size:
        return 0
    return 1 + int(np.count_nonzero(np.logical_or.reduce([np.diff(column) != 0 for column in columns])))


COUNTED: Mapping[str, Callable[[ScoreTable], int]] = {
    "trials": len,
    "questions": lambda table: _changes(table.sample),
    "prompts": lambda table: _changes(table.sample, table.variant),
    "runs": lambda table: int(np.unique(table.repeat).size),
    "variants": lambda table: int(np.unique(table.variant).size),
    "charts": lambda table: int(np.unique(table.cluster).size),
}
"""How the units of a table are counted; its rows are sorted by sample, variant and repeat."""

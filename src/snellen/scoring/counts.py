"""What was planned of a task and what is stored, by unit: so that every estimate says what became of all of it.

planned = n + unscored + failed + not yet asked + left out, whatever is counted: trials, questions, chains …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import structs

from ..core.builtins import INFERENCERS
from ..core.tasks import PlannedCounts, RunHeader, Task
from ..core.types import Estimate
from .aggregates.chain_tables import settled_chains
from .aggregates.means import axes_of, group_codes
from .aggregates.robustness import read_level
from .table import ScoreTable

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
        self._ours = task is not None and task.infer in INFERENCERS

    def settle(self, estimate: Estimate, unit: str | None = None) -> Estimate:
        """Return the estimate with what it does not count: not yet asked, and left out. One without a unit stays."""
        unit = estimate.unit if unit is None else unit
        seen = self._seen(unit)
        if seen is None:
            return estimate
        planned = seen if self._complete else self._planned(unit)
        left_out = seen - estimate.n - estimate.unscored - estimate.failed
        waiting = None if planned is None else max(0, planned - seen)
        return structs.replace(estimate, not_yet_asked=waiting, left_out=max(0, left_out))

    def settle_all(self, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
        """Settle the estimates of all the task's trials."""
        return {name: self.settle(estimate) for name, estimate in estimates.items()}

    def settle_group(self, key: str, value: str, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
        """Settle the estimates of one group."""
        return {name: self.settle(estimate, f"{OF}{key}={value}") for name, estimate in estimates.items()}

    def unseen_groups(self, key: str) -> Iterator[str]:
        """Yield the planned values of a key of which no trial is stored yet."""
        codes, values = group_codes(self._table, key)
        seen = {values[code] for code in np.unique(codes)}
        planned = self._tags.get(key, {}) if key in self._table.tags else {}
        if key == "variant" and self._task is not None:
            planned = dict.fromkeys(self._task.variants, 1)
        yield from (value for value in sorted(planned) if value not in seen)

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

    def _seen(self, unit: str) -> int | None:
        """Return how many of a unit are stored; None for one that is not known."""
        table = self._table
        if unit.startswith(OF):
            return self._seen_in_group(unit)
        if unit.startswith(PAIRS):
            return int(np.unique(table.sample).size) * _levels(unit, table.variants)
        if unit == "chains":
            return settled_chains(table) if "role" in table.tags else None
        if unit == "charts":
            return int(np.unique(table.cluster).size)
        columns = {"trials": (), "questions": ("sample",), "prompts": ("sample", "variant"), "runs": ("repeat",)}
        columns["variants"] = ("variant",)
        if unit not in columns:
            return None
        return _distinct(table, columns[unit]) if columns[unit] else len(table)

    def _seen_in_group(self, unit: str) -> int | None:
        key, _, value = unit.removeprefix(OF).partition("=")
        codes, values = group_codes(self._table, key)
        if value not in values:
            return 0
        inside = codes == list(values).index(value)
        if key == "step":  # the inference of a chain has a step too: 0, or none
            roles, names = group_codes(self._table, "role")
            inside &= np.isin(roles, [place for place, name in enumerate(names) if name == "step"])
        return int(np.count_nonzero(inside))

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


def _distinct(table: ScoreTable, columns: tuple[str, ...]) -> int:
    if not len(table):
        return 0
    return len(np.unique(np.column_stack([getattr(table, name) for name in columns]), axis=0))

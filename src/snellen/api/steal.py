"""A part of a run that has done its own takes units of others: `--steal`.

Each part is cut into units of whole homes by the plan alone. Whoever asks a unit claims it first (`store.claims`): its
own part from the front, others from the end. So nothing is asked twice but what a lost part had begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import starmap
from typing import NamedTuple

from ..core.homes import Assignment, Home
from ..core.jobs import Item, Job
from ..engine.state import RunState
from ..store.claims import Claims, UnitId
from ..store.part_log import PartWriter
from ..store.part_progress import read_attempts, state_of
from .plan import Placed, Plan, jobs_of

MOST_TRIALS = 64
"""Trials of a unit that others may take: so many at most are asked twice where one is lost."""
UNITS_A_PART = 8
"""A small part has smaller units, so that it can be shared too."""
GONE = ("stopped", "failed", "silent", "lost")
"""States of an attempt that does not ask now and left something undone."""


class Unit(NamedTuple):
    """Neighbouring homes of one part."""

    id: UnitId
    samples: Mapping[str, Set[str]]
    """Task -> its samples."""
    trials: int


class _Homes:
    """The homes of one part in the order of the plan, with their samples and trials."""

    def __init__(self) -> None:
        self.samples: dict[Home, list[tuple[str, str]]] = {}
        self.trials: dict[Home, int] = {}

    def add(self, one: Placed) -> None:
        self.samples.setdefault(one.home, []).append((one.task, one.sample))
        self.trials[one.home] = self.trials.get(one.home, 0) + one.trials

    def units(self, part: int) -> list[Unit]:
        """Cut them from the end into units; a home that is larger than one is a unit of its own."""
        most = max(1, min(MOST_TRIALS, sum(self.trials.values()) // UNITS_A_PART))
        cut: list[list[Home]] = []
        room = 0
        for home in reversed(self.trials):
            if not cut or self.trials[home] > room:
                cut.append([])
                room = most
            cut[-1].append(home)
            room -= self.trials[home]
        return [self._unit((part, number), homes) for number, homes in enumerate(reversed(cut))]

    def _unit(self, name: UnitId, homes: list[Home]) -> Unit:
        samples: dict[str, set[str]] = {}
        for home in homes:
            for task, sample in self.samples[home]:
                samples.setdefault(task, set()).add(sample)
        return Unit(name, samples, sum(self.trials[home] for home in homes))


def units_of(plan: Plan, assignment: Assignment, count: int) -> dict[UnitId, Unit]:
    """Return all units of a division into so many parts, each part's in its order; the same in every process."""
    parts = [_Homes() for _ in range(count)]
    for one in plan.placed():
        parts[assignment.part_of(one.home, count)].add(one)
    units = [unit for index, homes in enumerate(parts) for unit in homes.units(index)]
    return {unit.id: unit for unit in units}


class Stealing:
    """What one attempt at a part asks: the units of its own that nobody took, then what others left."""

    def __init__(
        self, plan: Plan, units: Mapping[UnitId, Unit], writer: PartWriter, state: Callable[[], RunState]
    ) -> None:
        self._plan, self._units, self._writer, self._state = plan, units, writer, state
        self._me = writer.part.index
        self._claims = Claims(writer.folder, writer.part, writer.path.name)
        self._asked: set[UnitId] = set()
        self.taken = self.given = 0
        """Trials that it took from other parts, and that others took from it."""

    def jobs(self, own: Callable[[], Iterator[Job]]) -> Iterator[Job]:
        """Yield the jobs of a part without what others claimed, then those of the units that it takes."""
        yield from self._own(own())
        while (unit := self._next()) is not None:
            self._asked.add(unit.id)
            self._state().planned += unit.trials
            self.taken += unit.trials
            yield from self._jobs_of(unit)

    def _own(self, own: Iterator[Job]) -> Iterator[Job]:
        units = [unit for unit in self._units.values() if unit.id[0] == self._me]
        places = {(task, name): unit for unit in units for task, names in unit.samples.items() for name in names}
        seen: dict[UnitId, bool] = {}
        for job in own:
            unit = places[job.keys[0].task, job.keys[0].sample]
            if unit.id not in seen:
                seen[unit.id] = self._begin(unit)
            if seen[unit.id]:
                yield job

    def _begin(self, unit: Unit) -> bool:
        """Claim a unit of one's own, unless another asks it now; tell whether it is ours."""
        if self._claims.take(unit.id) or self._is_ours(unit) or self._take_over(unit, (*GONE, "complete")):
            self._asked.add(unit.id)
            return True
        self._state().planned -= unit.trials
        self.given += unit.trials
        return False

    def _is_ours(self, unit: Unit) -> bool:
        """Tell whether this part claimed a unit, in this attempt or an earlier one."""
        return self._claims.read(unit.id).part == self._me

    def _take_over(self, unit: Unit, states: tuple[str, ...]) -> bool:
        """Claim a unit again whose holder is in one of these states; what that holder stored is not asked again."""
        claim = self._claims.read(unit.id)
        holder = self._writer.path.with_name(claim.log) if claim.part is not None else None
        if holder is not None and state_of(holder) not in states:
            return False
        self._writer.learn({unit.id[0], *([] if claim.part is None else [claim.part])})
        is_done = self._is_finished(unit) and unit.id[0] != self._me
        return not is_done and self._claims.take(unit.id, claim.generation + 1)

    def _next(self) -> Unit | None:
        """Claim what is left: the last free unit of the part that has most, then what lost parts hold."""
        held = self._claims.held()
        free = {name: unit for name, unit in self._units.items() if name not in held and unit.trials <= MOST_TRIALS}
        left: dict[int, int] = {}
        for unit in free.values():
            left[unit.id[0]] = left.get(unit.id[0], 0) + unit.trials
        while free:
            part = max(left, key=lambda index: left[index])
            unit = free.pop(max(name for name in free if name[0] == part))
            left[part] -= unit.trials
            if self._claims.take(unit.id):
                self._writer.learn({part})
                return unit
            if not any(name[0] == part for name in free):
                del left[part]
        return self._left_by_lost(held)

    def _left_by_lost(self, held: Mapping[UnitId, int]) -> Unit | None:
        attempts = read_attempts(self._writer.folder)
        if not self._writer.attempt and not any(one.state in GONE for one in attempts):
            return None  # nobody is lost: no claim need be opened
        for name in held:
            unit = self._units[name]
            if name in self._asked or unit.trials > MOST_TRIALS:
                continue
            if self._is_ours(unit) or self._take_over(unit, GONE):
                return unit
        return None

    def _is_finished(self, unit: Unit) -> bool:
        finished = 0
        for task, names in unit.samples.items():
            finished += sum(key[0] in names for key in self._writer.finished_keys(task))
        return finished >= unit.trials

    def _jobs_of(self, unit: Unit) -> Iterator[Job]:
        for planned in self._plan.tasks:
            names = unit.samples.get(planned.task.name)
            if names:
                jobs = jobs_of(planned, starmap(Item, enumerate(planned.dataset)), self._plan.registry)
                yield from (job for job in jobs if job.keys[0].sample in names)

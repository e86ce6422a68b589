"""A run in parts: one part asked by this process, all parts joined to the run that one process would have left.

Each part plans the whole run, so all have one header, and asks only what is its own. Who asks what is decided by the
plan alone (`core.homes`); nobody talks to anybody.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...api.chosen_model import check_provider
from ...api.plan import Placed, Plan, jobs_of, registry_for
from ...api.run_result import PartEnd, RunResult
from ...api.session import Listener, Session, open_session
from ...api.settings import RunSettings
from ...core.builtins import default_registry
from ...core.errors import ServerLost, SnellenError, UsageError
from ...core.homes import Assignment, Home, Part, parse_part
from ...core.jobs import Item, Job
from ...core.process import heard_again, run_to_end
from ...core.registry import Registry
from ...core.text import plural
from ...data.catalog import Catalog
from ...engine.control import forget
from ...engine.limits import Limits
from ...engine.state import RunState
from ...report.pages.finish import finish_run
from ...report.so_far import LEAST_READ, SoFar
from ...scoring.protocols.readings import Reading
from ...stats.intervals import wilson
from ...store.database import BROKEN
from ...store.merge import Merged as Merged  # noqa: PLC0414 - what a merge returns
from ...store.merge import merge_logs, merging, unmerged_bytes
from ...store.part_log import PartWriter, read_plan
from ...store.part_progress import (
    SILENT_S,
    Attempt,
    Claims,
    Progress,
    ProgressFile,
    UnitId,
    part_states,
    read_attempts,
    remove_parts,
    state_of,
)
from ...store.part_progress import PartState as PartState  # noqa: PLC0414 - how far a part is
from ...store.sent_pictures import join_pictures
from ...store.writer import TrialWriter

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


MOST_JITTER_S = 30.0
PARTS_A_SECOND = 32
"""So many parts may call on one server in a second when all start at once."""
LOOKS = 20
"""Moments that the figure so far is given when progress is written; all within its share of the processor."""
INDEXES = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"),
    ("JOB_COMPLETION_INDEX", ""),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables that say which part this is, and those that say of how many, in the order in which they are looked for."""


def find_part(text: str, environment: Mapping[str, str] | None = None) -> Part:
    """Return the part that `3/64`, `env` or `env/64` names."""
    if text != "env" and not text.startswith("env/"):
        return parse_part(text)
    found = os.environ if environment is None else environment
    index, count = next(((one, of) for one, of in INDEXES if found.get(one)), ("", ""))
    if not index:
        raise UsageError(f"--shard {text}: none of {', '.join(one for one, _ in INDEXES)} is set; give 3/64 itself")
    if text != "env":
        return parse_part(f"{found[index]}/{text.removeprefix('env/')}")
    if not found.get(count):
        raise UsageError(f"--shard env: {index} does not say of how many; give --shard env/64")
    if index == "SLURM_ARRAY_TASK_ID":
        return _slurm_part(found)
    return parse_part(f"{found[index]}/{found[count]}")


def _slurm_part(found: Mapping[str, str]) -> Part:
    """Return the part of a whole array that may begin anywhere; of a subset such as 3,7 nobody knows of how many."""
    names = [f"SLURM_ARRAY_TASK_{name}" for name in ("ID", "COUNT", "MIN", "MAX", "STEP")]
    for name in names:
        if not (found.get(name) or "0").isdecimal():
            raise UsageError(f"--shard env: {name} is {found[name]!r}, no number; give 3/64 itself")
    number, count, first, last, step = (int(found.get(name) or "0") for name in names)
    step = step or 1
    if (last - first) // step + 1 != count or (number - first) % step:
        raise UsageError(f"--shard env: {names[0]} {number} is of a subset of an array; give --shard env/64")
    return parse_part(f"{(number - first) // step}/{count}")


def check_part(settings: RunSettings) -> None:
    """Refuse what a part of a run cannot do, before anything is planned."""
    if settings.shard is None:
        raise UsageError("--steal is for a part of a run: give --shard too, such as --shard 3/64")
    if settings.output_dir is None:
        raise UsageError("--shard needs -o: the folder that all parts share")
    if settings.until_ci is not None:
        raise UsageError("--until-ci is not for a part of a run: no part sees the others' replies; leave it out")
    if settings.batch:
        raise UsageError(
            "--batch is not for a part of a run: a batch is many requests already; leave it or --shard out"
        )
    if settings.fresh:
        raise UsageError("--fresh is not for a part of a run: choose another -o to ask all again")
    if settings.extractor:
        raise UsageError("--extractor is not for a part of a run: `snellen score RUN --extractor` asks it of the whole")
    if settings.log:
        raise UsageError("--log is not for a part of a run: trackers would get 64 runs; leave it out")
    find_part(settings.shard)


def check_submitted(settings: RunSettings, parts: int) -> None:
    """Refuse what every part would refuse, before it waits in a queue: flags, tasks and data files, the provider."""
    check_part(msgspec.structs.replace(settings, shard=f"0/{parts}"))
    check_asked(settings)


def check_asked(settings: RunSettings) -> list[str]:
    """Refuse tasks, data files and a provider that are not there, before anything starts; return the tasks by name."""
    check_provider(settings, registry_for(settings))
    catalog = Catalog(settings.catalogs)
    return [
        catalog.task(name, settings.task_overrides(), settings.protocol).name
        for wanted in settings.tasks
        for name in catalog.expand(wanted)
    ]


@dataclass(frozen=True)
class Share:
    """What one part asks of a plan."""

    plan: Plan
    part: Part
    own: Mapping[str, Set[str]]
    """Task -> the samples whose jobs are its own."""
    trials: int
    large: int
    """Homes (documents, dialogues) that are larger than an even part."""
    assignment: Assignment

    def jobs(self) -> Iterator[Job]:
        """Yield its jobs in the order of the plan; a job belongs to whoever has its first sample."""
        return (job for job in self.plan.jobs() if job.keys[0].sample in self.own[job.keys[0].task])


def share_of(plan: Plan, part: Part) -> Share:
    """Return what a part asks: neighbours in the data, with documents, dialogues and chains whole."""
    assignment = Assignment()
    for one in plan.placed():
        assignment.add(one.home, one.trials)
    own: dict[str, set[str]] = {planned.task.name: set() for planned in plan.tasks}
    trials = 0
    for one in plan.placed():
        if assignment.part_of(one.home, part.count) == part.index:
            own[one.task].add(one.sample)
            trials += one.trials
    return Share(plan, part, own, trials, assignment.larger_than_a_part(part.count), assignment)


def stealing_of(share: Share, session: Session) -> Stealing:
    """Return what makes a part that has done its own take work from others."""
    if not isinstance(session.writer, PartWriter):
        raise TypeError("only a part takes work from others")
    units = units_of(share.plan, share.assignment, share.part.count)
    return Stealing(share.plan, units, session.writer, lambda: session.state)


class PartListener:
    """Hears of one part's asking: tells the terminal as ever, and writes the progress that others read."""

    def __init__(self, listener: Listener, so_far: SoFar) -> None:
        self._listener, self._so_far = listener, so_far
        self.file: ProgressFile | None = None

    def notify(self, line: str) -> None:
        """Tell whoever sits before it."""
        self._listener.notify(line)

    def hear(self, state: dict[str, Any]) -> None:
        """Say in the progress how things stand after a wish of `snellen ctl`."""
        if self.file is not None:
            if state["paused"] and not self.file.last.control.get("paused"):
                self.notify(f"paused: `snellen ctl {self.file.path.parents[1]} resume` goes on")
            self.file.write(control=state)

    def begin(self, writer: TrialWriter, share: Share) -> None:
        """Say who works at this part, and who else does."""
        if not isinstance(writer, PartWriter):
            raise TypeError("only the log of a part has progress of its own")
        others = [one for one in read_attempts(writer.folder) if is_other(one, writer)]
        for one in others:
            who = one.progress.owner if one.progress else one.file.path.name
            self.notify(f"warning: part {writer.part} is also asked by {who}: what is asked twice is counted")
        if share.large:
            self.notify(f"{plural(share.large, 'home')} of questions larger than an even part: some parts take longer")
        self.file = ProgressFile(writer.path)
        self.file.write(planned=share.trials)

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Show the state and keep the progress file during the block."""
        if self.file is None:
            raise AssertionError("begin comes first")
        state.onlooker = self._so_far
        with self._listener.watch(state), self.file.kept(lambda: _progress(state, self._so_far)):
            state.is_drawn = True  # by others, who read the file
            yield
        if not state.unfinished:  # nobody waits for the end of this process
            self._so_far.finish()
            self.file.write(**_progress(state, self._so_far))


def is_other(one: Attempt, writer: PartWriter) -> bool:
    """Tell whether another attempt at the same part is at work."""
    return one.file.part == writer.part and one.file.path != writer.path and one.state == "running"


def _progress(state: RunState, so_far: SoFar) -> dict[str, Any]:
    for _ in range(LOOKS):
        so_far.look()
    counted = {name: getattr(state, name) for name in ("failed", "input_tokens", "output_tokens")}
    counted |= {"planned": state.planned, "asked": state.done}
    return counted | {"done": state.done + state.resumed - state.failed, "figures": so_far.figures}


async def spread_starts(part: Part, model: Any) -> None:
    """Wait a moment, so that a thousand parts do not call on one server in the same second."""
    if part.count > PARTS_A_SECOND and model.identity().get("base_url"):
        await asyncio.sleep(random.uniform(0, min(MOST_JITTER_S, part.count / PARTS_A_SECOND)))  # noqa: S311


@contextmanager
def telling_end(listener: PartListener) -> Iterator[None]:
    """Write how a part ended by itself: whoever looks need not wait to call it silent."""
    try:
        yield
    except ServerLost as error:
        _say(listener, "stopped", str(error))
        raise
    except SnellenError as error:
        _say(listener, "failed", str(error))
        raise
    except BaseException:
        _say(listener, "stopped", "interrupted")
        raise


def _say(listener: PartListener, state: str, why: str = "") -> None:
    if listener.file is not None:
        listener.file.write(state=state, why=why)


def run_part(
    plan: Plan, settings: RunSettings, limits: Limits, *, listener: Listener, so_far: SoFar, reading: Reading
) -> RunResult:
    """Ask one part of a run and keep it in a log of its own; the last one joins them all.

    Its limits are its share of the run's.
    """
    part = find_part(settings.shard or "")
    share, hearing = share_of(plan, part), PartListener(listener, so_far)
    told: dict[str, Any] = {"listener": hearing, "reading": reading, "data": plan.data(), "part": part}
    stealing: Stealing | None = None

    async def ask() -> RunState:
        nonlocal stealing
        await spread_starts(part, plan.model)
        async with open_session(plan.folder, plan.header, plan.model, settings, limits, **told) as session:
            hearing.begin(session.writer, share)
            session.answer = hearing.hear
            stealing = stealing_of(share, session) if settings.steal else None
            jobs = share.jobs if stealing is None else partial(stealing.jobs, share.jobs)
            return await session.ask(jobs, share.trials)

    with telling_end(hearing):
        state = run_to_end(ask())
    end, results = end_of(share, state, hearing, stealing)
    dimensions = {planned.task.name: planned.task.dimension for planned in plan.tasks}
    ended: dict[str, Any] = {"part": end, "registry": plan.registry}
    return RunResult(plan.folder, results or {"tasks": {}}, state, state.unfinished, dimensions, **ended)


def end_of(
    share: Share, state: RunState, listener: PartListener, stealing: Stealing | None = None
) -> tuple[PartEnd, dict[str, Any]]:
    """Say how a part ended, and merge the run if it was the last; return the results of the whole then."""
    end = PartEnd(share.part, state.planned)
    if stealing is not None:
        end = msgspec.structs.replace(end, taken=stealing.taken, given=stealing.given)
    if state.unfinished:
        again = state.overdue or heard_again()
        why = state.limits.reached or state.limits.closed or "interrupted"
        _say(listener, "stopped", why)
        return msgspec.structs.replace(end, again=again, why=why), {}
    _say(listener, "complete")
    if not all(one.state == "complete" for one in part_states(read_attempts(share.plan.folder), share.part.count)):
        return end, {}
    try:
        found, results = merge(share.plan.folder, registry=share.plan.registry)
    except SnellenError as error:  # another part was the last too, servers differ, the disk is full: nothing is lost
        return msgspec.structs.replace(end, note=str(error)), {}
    return msgspec.structs.replace(end, merged=not found.missing), results


def merge(
    folder: str | Path,
    *,
    partial: bool = False,
    tidy: bool = False,
    same_model: bool = False,
    registry: Registry | None = None,
) -> tuple[Merged, dict[str, Any]]:
    """Join the parts of a run into run.db and score it, as one process would have left it; return both.

    Where trials are missing nothing is written, unless `partial` is said: then they count as not yet asked. May be
    repeated at any time; what is new is added. `tidy` removes the logs of a run that is whole.
    """
    path = Path(folder)
    with merging(path):
        found = merge_logs(path, same_model=same_model, partial=partial)
        if found.missing and not partial:
            return found, {}
        results = finish_run(path, registry or default_registry())
        with suppress(OSError, *BROKEN):  # a full disk costs copies of pictures, never the run
            join_pictures(path)
        if not found.missing:
            forget(path)
        if tidy and not found.missing:
            remove_parts(path)
    return found, results


def join_parts(folder: Path) -> None:
    """Bring run.db of a run whose parts are still asked up to what they hold, for whoever scores it as it is."""
    with merging(folder):
        merge_logs(folder)


def refuse_unmerged(folder: Path) -> None:
    """Refuse to ask a folder whole while its parts hold replies that run.db has not: they would be asked again."""
    if unmerged_bytes(folder):
        raise UsageError(f"{folder} holds parts that are not merged: `snellen merge --partial {folder}` first")


class PartsSummary(msgspec.Struct, frozen=True):
    """How far a run in parts is, as its parts say."""

    model: str
    run: str
    parts: int
    planned: int
    done: int
    failed: int
    states: dict[str, list[str]]
    """State -> the parts that are in it, each with what else is known of it."""
    figures: list[str]
    notes: list[str]


def summarize_parts(folder: str | Path) -> PartsSummary:
    """Return who works at a run in parts, who is lost and how far it is."""
    path = Path(folder)
    header, attempts = read_plan(path), read_attempts(path)
    parts = part_states(attempts)
    states: dict[str, list[str]] = {}
    for one in parts:
        states.setdefault(one.state, []).append(_words_of(one))
    notes = [f"part {one.part.index} is asked by {one.alive} processes at once" for one in parts if one.alive > 1]
    apart = [one for one in attempts if one.age_s is not None and one.age_s < -SILENT_S]
    notes = [*pace_of(attempts), *notes]
    notes += [f"{len(apart)} progress files are from the future: clocks are apart, ages say nothing"] if apart else []
    said = [one.best.progress for one in parts if one.best is not None and one.best.progress is not None]
    planned, failed = sum(header.planned.values()), sum(one.failed for one in said)
    done = min(planned, sum(one.done for one in parts))  # what was taken over from a lost part counts for both
    return PartsSummary(header.model, header.id, len(parts), planned, done, failed, states, pooled_figures(said), notes)


def pace_of(attempts: Sequence[Attempt]) -> list[str]:
    """Return how fast the parts at work are together, when the last of them ends at its pace, and tokens so far."""
    said = [one.progress for one in attempts if one.progress is not None]
    at_work = [one.progress for one in attempts if one.state == "running" and one.progress is not None]
    paces = [(one.asked / one.seconds, one.planned - one.done - one.failed) for one in at_work if one.asked]
    lines = []
    if paces:
        rate, longest = sum(pace for pace, _ in paces), max(left / pace for pace, left in paces)
        words = f"{longest / 60:,.0f} min" if longest >= 120 else f"{longest:.0f} s"
        lines.append(
            f"{plural(len(paces), 'part')} at work: {rate:,.1f} trials a second together, done in about {words}"
        )
    tokens = [sum(getattr(one, name) for one in said) for name in ("input_tokens", "output_tokens")]
    return [*lines, f"tokens so far: {tokens[0]:,} in, {tokens[1]:,} out"] if any(tokens) else lines


def _words_of(one: PartState) -> str:
    """Return a part by its number and what is worth knowing of it in its state."""
    if one.best is None or one.best.progress is None or one.state == "complete":
        return str(one.part.index)
    said = one.best.progress
    where = f" on {said.owner.host}" if one.state in ("silent", "lost") else ""
    why = f": {said.why[:60]}" if one.state == "failed" else ""
    return f"{one.part.index} ({said.done:,} of {said.planned:,}{where}{why})"


def pooled_figures(said: Sequence[Progress]) -> list[str]:
    """Return the figures that the parts made while they asked, pooled, with an interval; provisional."""
    pooled: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for one in said:
        for task, (metric, count, value) in one.figures.items():
            pooled.setdefault((task, metric), []).append((count, value))
    lines = []
    for (task, metric), values in pooled.items():
        count = sum(each for each, _ in values)
        mean = sum(each * value for each, value in values) / count
        if 0 <= mean <= 1 and count >= LEAST_READ:
            low, high = wilson(mean, count)
            interval = f"[{100 * low:.1f}, {100 * high:.1f}] %"
            read = f"of {plural(count, 'reply')} read so far, provisional"
            lines.append(f"{task}: {metric} {100 * mean:.1f} {interval} {read}")
    return lines


def look_at_parts(folder: str | Path) -> list[PartState]:
    """Return how far every part of a run is; only small files are read."""
    return part_states(read_attempts(Path(folder)))

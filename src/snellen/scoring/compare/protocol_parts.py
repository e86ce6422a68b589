"""Two runs of one task in two protocols: which part of the protocol moved the number, from the one to the other.

One part is exchanged after the other, in the order in which they happen: the prompt (with its limits: the replies of
the second run), the reader, the fallback, the aggregate. The parts add up to the whole difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, pairwise
from pathlib import Path

from msgspec import Struct, structs

from ...core.builtins import default_registry
from ...core.errors import SnellenError
from ...core.registry import Registry
from ...core.tasks import RunHeader, Task
from ...store.reader import RunReader, Trial
from ..aggregates.headline import PEER, headline
from ..ranges import joined_scorer, score_trial
from ..results import summarize_task
from ..tables.gathered import GatheredTask
from ..tables.table import ScoredTask

PARTS = ("prompt", "reader", "fallback", "aggregate")
BATCH = 256
READER = ("scorers", "score_options")
AGGREGATE = ("figures", "headline")


class MovedParts(Struct, frozen=True):
    """The numbers two tools would print, and what each part of the protocol adds on the way from one to the other."""

    first: str
    second: str
    """Their protocols."""
    first_value: float | None
    second_value: float | None
    parts: dict[str, float | None]
    """Part -> change; None from where on a number is not known."""
    samples: int
    """The samples both runs have: the numbers are of these."""

    @property
    def most(self) -> str:
        """Return the part that moved the number most, or nothing where none did."""
        known = {part: abs(change) for part, change in self.parts.items() if change}
        return max(known, key=known.__getitem__) if known else ""


def moved_parts(folders: tuple[Path, Path]) -> dict[str, MovedParts]:
    """Return, for every task that two runs asked in different protocols, what moved its number."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(RunReader(folder)) for folder in folders)
        ours, theirs = _tasks_in_protocols(first), _tasks_in_protocols(second)
        differing = [name for name in ours if name in theirs and ours[name].protocol != theirs[name].protocol]
        return {name: _moved((first, ours[name]), (second, theirs[name])) for name in differing}


def _tasks_in_protocols(reader: RunReader) -> dict[str, Task]:
    """Return the tasks that have a protocol; replies that were stored without a header have none."""
    try:
        return {task.name: task for task in reader.header().tasks if task.protocol}
    except SnellenError:
        return {}


def _moved(first: tuple[RunReader, Task], second: tuple[RunReader, Task]) -> MovedParts:
    (reader, ours), (other, theirs) = first, second
    shared = _samples(reader, ours.name) & _samples(other, theirs.name)
    registry = default_registry()
    read = _with(ours, theirs, READER)
    fallen = _with(read, theirs, ("fallback",))
    steps = ((reader, ours), (other, ours), (other, read), (other, fallen), (other, _with(fallen, theirs, AGGREGATE)))
    values = [printed_value(run, task, shared, registry) for run, task in steps]
    parts = {part: _change(*pair) for part, pair in zip(PARTS, pairwise(values), strict=True)}
    return MovedParts(ours.protocol, theirs.protocol, values[0], values[-1], parts, len(shared))


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _with(task: Task, other: Task, fields: tuple[str, ...]) -> Task:
    return structs.replace(task, **{name: getattr(other, name) for name in fields})


def _samples(reader: RunReader, task: str) -> set[str]:
    return {sample.id for sample in reader.samples(task)}


def printed_value(reader: RunReader, task: Task, samples: set[str], registry: Registry) -> float | None:
    """Return what a protocol's own tool would print of these samples of a run: unread and failed as it counts them."""
    score, gathered = joined_scorer(registry, task.scorers), GatheredTask(task)
    trials = _trials(reader, task.name, samples)
    while batch := list(islice(trials, BATCH)):
        gathered.add([(trial, score_trial(task, score, trial, task.score_options)) for trial in batch])
    table = ScoredTask(task, gathered.tables(), lambda: iter(()))
    result = summarize_task(table, registry, dict(task.score_options), RunHeader("", {}, {}, ""))
    ending = PEER if task.fallback else "_strict"
    name, own = headline(result)
    estimate = result["metrics"].get(f"{name}{ending}") or own
    value: float | None = estimate["value"]
    return value


def _trials(reader: RunReader, task: str, samples: set[str]) -> Iterator[Trial]:
    return (trial for trial in reader.trials(task) if trial.sample.id in samples)

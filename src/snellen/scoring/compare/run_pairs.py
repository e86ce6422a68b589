"""Run folders in, comparisons of every common task and metric out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...core.builtins import parts_of
from ...core.errors import SnellenError, UsageError, did_you_mean
from ...core.registry import Registry
from ...core.tasks import Task
from ...core.types import Score
from ...store.reader import RunReader
from ..aggregates.counted import counted_tables
from ..protocols.readings import Reading, named_reading, own_reading
from ..stored import live_tables, stored_tables
from ..tables.table import ScoreTable
from .divergence import Fingerprint, Key, StageMarks, fingerprint
from .paired import Comparison, RunSide, compare_all


def compare_runs(
    folders: Sequence[str | Path],
    *,
    task: str | None = None,
    metric: str | None = None,
    scored_only: bool = False,
    reading: str | None = None,
) -> dict[str, list[Comparison]]:
    """Return, for every task the runs share, the comparison of every pair on each common metric (or on one).

    Paired by sample id, over what both have a reply to. What was not read is not right, unless `scored_only` leaves it
    out. Runs read in different ways are refused, unless one `reading` for all is named: a kept one, or a profile, by
    which they are then read.
    """
    if len(folders) < 2:
        raise UsageError("compare needs at least two run folders: snellen compare runs/A runs/B")
    places = [Path(folder).resolve() for folder in folders]
    if twice := [str(folder) for folder, place in zip(folders, places, strict=True) if places.count(place) > 1]:
        raise UsageError(f"{' and '.join(twice)} are one run, which differs in nothing from itself: name another")
    with ExitStack() as stack:
        readers = [stack.enter_context(RunReader(folder)) for folder in folders]
        names = run_names(folders)
        chosen = align_readings(readers, names, reading)
        for name in _common_tasks(readers, names, task):
            check_golds(readers, names, name)
        return {
            name: _compare_task(
                [_side(*pair, name) for pair in zip(readers, chosen, strict=True)], names, name, metric, scored_only
            )
            for name in _common_tasks(readers, names, task)
        }


class ComparedPart(NamedTuple):
    """What a kit says of runs beside each other."""

    name: str
    found: dict[str, Any]
    """By task."""
    as_sheet: Callable[[str, Any], Any]


def compare_parts(
    folders: Sequence[str | Path], task: str | None = None, registry: Registry | None = None
) -> list[ComparedPart]:
    """Return what kits say of runs beside each other; nothing where every task was asked in one of our own ways."""
    parts: dict[str, tuple[Any, Any]] = {}
    for folder in folders:
        with RunReader(folder) as reader:
            for card in _cards(reader):
                sheets = dict(parts_of(card, "compared", registry))
                parts |= {name: (compare, sheets[name]) for name, compare in parts_of(card, "compare", registry)}
    compared = [ComparedPart(name, compare(folders, task), sheet) for name, (compare, sheet) in parts.items()]
    return [one for one in compared if one.found]


def _cards(reader: RunReader) -> list[Task]:
    """Return the tasks of a run; replies that were stored without a header have none."""
    try:
        return reader.header().tasks
    except SnellenError:
        return []


def check_golds(readers: Sequence[RunReader], names: Sequence[str], task: str) -> None:
    """Refuse runs whose questions are the same and whose golds are not: a difference would be the golds' too."""
    decode = msgspec.json.Decoder(_Gold).decode
    first: dict[str, _Gold] = {}
    for place, reader in enumerate(readers):
        differing = 0
        for (body,) in reader.sample_columns("body", task):
            own = decode(body)
            known = first.setdefault(own.id, own)
            differing += known.question == own.question and sorted(known.answers) != sorted(own.answers)
        if differing:
            words = (
                f"{differing} questions of task {task!r} have another gold answer in {names[place]} than in {names[0]}"
            )
            both = f"{readers[0].folder} {reader.folder}"
            raise UsageError(f"{words}: `snellen audit compare {both}` compares them by either's")


class _Gold(msgspec.Struct):
    """What of a sample says which answers are right."""

    id: str
    question: str = ""
    answers: tuple[str, ...] = ()


def align_readings(readers: Sequence[RunReader], names: Sequence[str], reading: str | None) -> Sequence[Reading | None]:
    """Return by which reading each run is compared, None as it is stored; runs read differently are refused."""
    if reading is not None:
        return [named_reading(reader, reading) for reader in readers]
    own = [own_reading(reader).name for reader in readers]
    if len(set(own)) > 1:
        read = ", ".join(f"{name} as {how}" for name, how in zip(names, own, strict=True))
        raise UsageError(f"the runs were read in different ways ({read}): compare them by one, e.g. --reading {own[0]}")
    return [None] * len(readers)


def run_names(folders: Sequence[str | Path]) -> list[str]:
    """Return short names: the folders' own where these differ, else their paths."""
    short = [Path(folder).name or str(folder) for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def _common_tasks(readers: Sequence[RunReader], names: Sequence[str], task: str | None) -> list[str]:
    known = [set(reader.tasks()) for reader in readers]
    common = sorted(set.intersection(*known))
    if task is not None and task not in common:
        lacking = [name for name, tasks in zip(names, known, strict=True) if task not in tasks]
        raise UsageError(f"{', '.join(lacking)} has no task {task!r}{did_you_mean(task, set.union(*known))}")
    if not common:
        held = "; ".join(
            f"{name}: {', '.join(sorted(tasks)) or 'none'}" for name, tasks in zip(names, known, strict=True)
        )
        raise UsageError(f"the runs share no task ({held})")
    return [task] if task is not None else common


class Side(NamedTuple):
    """One run on one task, by one reading."""

    tables: Mapping[str, ScoreTable]
    marks: StageMarks


def _side(reader: RunReader, reading: Reading | None, task: str) -> Side:
    if reading is None:
        marks = StageMarks(_fingerprints(reader, task))
        return Side(counted_tables(stored_tables(reader, task, tag_keys=())), marks)
    card = next(card for card in reader.header().tasks if card.name == task)
    tables, scores = live_tables(reader, card, reading, tag_keys=())
    return Side(counted_tables(tables), StageMarks(_fingerprints(reader, task, iter(scores))))


def _compare_task(
    runs: Sequence[Side], names: Sequence[str], task: str, metric: str | None, scored_only: bool
) -> list[Comparison]:
    tables = [run.tables for run in runs]
    comparisons = []
    for name in _common_metrics(tables, names, task, metric):
        sides = [RunSide(side, run.tables[name], run.marks) for side, run in zip(names, runs, strict=True)]
        comparisons += compare_all(sides, scored_only=scored_only)
    return comparisons


def _common_metrics(
    tables: Sequence[Mapping[str, ScoreTable]], names: Sequence[str], task: str, metric: str | None
) -> list[str]:
    for name, found in zip(names, tables, strict=True):
        if not found:
            raise UsageError(f"{name} has no scores of task {task!r}: score it first with `snellen score {name}`")
    common = sorted(set.intersection(*(set(found) for found in tables)))
    if metric is not None and metric not in common:
        known = f"{did_you_mean(metric, common)}; common: {', '.join(common)}"
        raise UsageError(f"task {task!r} has no metric {metric!r} in all runs{known}")
    return [metric] if metric is not None else common


def _fingerprints(
    reader: RunReader, task: str, scores: Iterator[Score] | None = None
) -> Iterator[tuple[Key, Fingerprint]]:
    for (sample, request, prediction, _), own in reader.with_scores(task, scores):
        key = prediction.key
        yield (key.sample, key.variant, key.repeat), fingerprint(sample, request, prediction, own)

"""Runs with tools, and runs without, to what looking again was worth in each and between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ...core.errors import SnellenError
from ...core.looks import BASE, LOOK
from ...core.tasks import Task
from ...scoring.aggregates.counted import arms_table, counted
from ...scoring.compare.run_pairs import run_names
from ...scoring.stored import stored_tables
from ...scoring.tables.gathered import stored_prices
from ...scoring.tables.table import ScoreTable
from ...scoring.tables.table_builder import codes_in
from ...stats.paired import paired_difference
from ...store.reader import RunReader
from .figures import EFFECTS, LookArms, used
from .trials import look_trials


class BesidePlain(Struct, frozen=True):
    """A run with tools beside one of the same questions without."""

    plain: str
    tools: str
    worth: dict[str, Any]
    split: dict[str, Any]


class Change(Struct, frozen=True):
    """How an effect differs between two runs, question by question."""

    effect: str
    first: str
    second: str
    difference: dict[str, Any]


class ComparedLooks(Struct, frozen=True):
    """What looking again was worth on one task."""

    runs: dict[str, Any]
    """Of each run with tools: its effects, and how tools were used."""
    beside_plain: list[BesidePlain]
    changes: list[Change]


class _Side(NamedTuple):
    name: str
    table: ScoreTable
    arms: LookArms | None


def compare_looks(folders: Sequence[str | Path], task: str | None = None) -> dict[str, ComparedLooks]:
    """Return, for every task that the runs share and some were asked with tools, what looking again was worth."""
    with ExitStack() as stack:
        readers = [stack.enter_context(RunReader(folder)) for folder in folders]
        cards = [_cards(reader) for reader in readers]
        common = set.intersection(*map(set, cards)) if cards else set()
        with_tools = {name for own in cards for name, card in own.items() if card.infer == LOOK}
        chosen = sorted(name for name in common & with_tools if task in (None, name))
        found = {name: list(_sides(readers, run_names(folders), [own[name] for own in cards])) for name in chosen}
    return {name: _compared(sides) for name, sides in found.items() if any(side.arms for side in sides)}


def _cards(reader: RunReader) -> dict[str, Task]:
    """Return the tasks of a run by name; replies that were stored without a header have none."""
    try:
        return {card.name: card for card in reader.header().tasks}
    except SnellenError:
        return {}


def _sides(readers: Sequence[RunReader], names: Sequence[str], cards: Sequence[Task]) -> Iterator[_Side]:
    for reader, name, card in zip(readers, names, cards, strict=True):
        table = arms_table(card, stored_tables(reader, card.name, tag_keys=()))
        if table is not None:
            trials = look_trials(reader, card.name, stored_prices(reader))
            yield _Side(name, table, LookArms(table, trials) if trials else None)


def _compared(sides: Sequence[_Side]) -> ComparedLooks:
    tools = [(side.name, side.arms) for side in sides if side.arms is not None]
    runs = {
        name: {"effects": {effect: one for effect in EFFECTS if (one := arms.effect(effect))}, "used": used(arms)}
        for name, arms in tools
    }
    return ComparedLooks(
        msgspec.to_builtins(runs),
        [_beside(one, other) for one, other in permutations(sides, 2) if one.arms is None and other.arms is not None],
        [change for one, other in combinations(tools, 2) for change in _changes(one, other)],
    )


def _beside(plain: _Side, tools: _Side) -> BesidePlain:
    arms = tools.arms
    assert arms is not None  # noqa: S101 - chosen so
    before, after = arms.cells_of(counted(plain.table)), arms.cells(BASE)
    split, _, _ = arms.split(before, after)
    worth = arms.difference(before, after)
    return BesidePlain(plain.name, tools.name, msgspec.to_builtins(worth), msgspec.to_builtins(split))


def _changes(one: tuple[str, LookArms], other: tuple[str, LookArms]) -> Iterator[Change]:
    first, second = one[1], other[1]
    places = codes_in({name: place for place, name in enumerate(second.table.samples)}, first.table.samples)
    for effect, (low, high) in EFFECTS.items():
        if not all({low, high} <= set(arms.names) for arms in (first, second)):
            continue
        own, theirs = (arms.cells(high, low).mean - arms.cells(low, high).mean for arms in (first, second))
        paired = np.where(places >= 0, theirs[np.maximum(places, 0)], np.nan) if theirs.size else own * np.nan
        both = np.isfinite(own) & np.isfinite(paired)
        found = paired_difference(own[both], paired[both], first.clusters(both), "looks")
        yield Change(effect, one[0], other[0], msgspec.to_builtins(found))

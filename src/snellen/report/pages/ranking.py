"""Results of many runs to one table: rank by task, average rank, means by dimension, and who cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...core.builtins import parts_of
from ...core.ids import content_hash
from ...core.tasks import RunHeader, Task
from ...core.text import plural
from ...core.types import BASE_VARIANT
from ...scoring.aggregates.headline import headline, is_no_share
from ...scoring.tables.table import lower_is_better
from ...stats.intervals import Z95, sum_interval
from ..written import reading_name, rests_on
from .parts import COST_COLUMNS, cost_cells
from .sheet import Sheet

ALL = "all asked"


def rows_asked(header: RunHeader, results: Mapping[str, Any], task: str) -> tuple[str, str]:
    """Return which rows a task of a run planned, and whether it asked them; an imported run may not say."""
    counted = header.counted.get(task)
    told = header.config.get("tasks", {})
    data = told.get(task, {}).get("data", "") if isinstance(told, Mapping) else ""
    rows = ", ".join(
        [*([plural(counted.samples, "question")] if counted else []), *([f"rows {data[:8]}"] if data else [])]
    )
    return rows or "rows unknown", _how_far(results.get("status", {}), task)


def _how_far(status: Mapping[str, Any], task: str) -> str:
    """Say how much of a run that is not over was asked; one that stopped when its interval was narrow is over."""
    waiting = status.get("not_yet_asked", {}).get(task, 0)
    until_ci = status.get("until_ci")
    if not waiting or status.get("complete") or (until_ci and until_ci["stopped"]):
        return ALL
    planned = status["planned"][task]
    return f"unfinished: {planned - waiting:,} of {planned:,} asked"


MOST_NAMED = 3
"""Up to so many variants are told by name."""
COLUMNS = ("#", "model", "run", "tasks", "average rank", "mean %", "95 % interval")


class Entry(Struct, frozen=True):
    """One run as the board sees it."""

    name: str
    header: RunHeader
    results: Mapping[str, Any]


class Cell(Struct, frozen=True):
    """One run on one task."""

    metric: str
    value: float | None
    stderr: float | None
    ci95: tuple[float, float] | None
    n: int
    lost: int
    rank: float | None = None
    """1 is best; runs of equal value share the mean of their ranks."""
    unread: int = 0
    """How many of `n` could not be read, and count as not right."""
    bounds: tuple[float, float] | None = None
    """Where the value would lie, whatever was not read, or failed, had said."""
    is_share: bool = True
    """Whether its column holds shares, which are shown in percent and averaged: one CIDEr below 1 is none."""


class Line(Struct, frozen=True):
    """One run on the board."""

    name: str
    model: str
    run: str
    average_rank: float | None
    mean: float | None
    ci95: tuple[float, float] | None
    band: int
    """Runs of one band cannot be told apart from the band's first by a 95 % test; 0: nothing was measured, no place."""
    tasks: dict[str, Cell]
    """By column of the board: a task, or one of the ways in which it was measured."""
    dimensions: dict[str, float]
    cost: Mapping[str, Any] | None = None
    """What its replies cost, where their price is known: `cost` of results.json."""
    block: int = 1
    """Only runs of one block, with the same columns, are ranked against each other."""


class Board(Struct, frozen=True):
    """The whole leaderboard: blocks of runs that did the same, in each the best first."""

    tasks: tuple[str, ...]
    """The columns: tasks; where runs differ in questions, metric, way of asking or reading, `task (how)`."""
    dimensions: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def cost_columns(self) -> tuple[str, ...]:
        """Return the columns of cost: none where no run has one."""
        return COST_COLUMNS if any(line.cost for line in self.lines) else ()


def make_board(entries: Sequence[Entry]) -> Board:
    """Rank runs on every task that at least one of them has, each kind of figure apart; blocks hold the same tasks."""
    columns = column_names(entries)
    tasks = tuple(sorted({name for of_entry in columns for name in of_entry.values()}))
    cells = {name: _rank(_measured(entries, columns, name)) for name in tasks}
    dimension_of = _dimensions(entries, columns)
    lines = [_line(entry, cells, dimension_of) for entry in entries]
    dimensions = tuple(sorted({dimension for line in lines for dimension in line.dimensions}))
    telling = 1 < len(dimensions) < len(tasks)  # one task a dimension says nothing that the task does not
    return Board(tasks, dimensions if telling else (), _in_blocks(lines))


def _measured(entries: Sequence[Entry], columns: Sequence[Mapping[str, str]], name: str) -> dict[str, Cell]:
    """Return the runs that stand in one column, each with its cell."""
    pairs = zip(entries, columns, strict=True)
    found = ((entry, task) for entry, of_entry in pairs for task, column in of_entry.items() if column == name)
    return {entry.name: _cell(entry, task) for entry, task in found}


def kind_of_figure(entry: Entry, task: str) -> tuple[str, ...]:
    """Return what must agree before figures are ranked: metric, way of asking, reading, protocol, variants, rows."""
    result = entry.results["tasks"][task]
    metric, _ = headline(result)
    card = next((card for card in entry.header.tasks if card.name == task), None)
    way = "generation" if card is None else _way(card)
    protocol = result.get("protocol", {}).get("name", "no protocol")
    asked = _asked_as(card.variants if card else ())
    return (
        metric or "–",
        way,
        reading_name(entry.results),
        protocol,
        asked,
        *rows_asked(entry.header, entry.results, task),
    )


def _way(card: Task) -> str:
    """Name the way of asking; what a kit says of its own is another one."""
    for _, way in parts_of(card, "way"):
        return str(way(card))
    return "likelihood" if "likelihood" in card.infer else "generation"


def _asked_as(variants: Sequence[str]) -> str:
    """Name the variants a figure is the mean of: one over blurred pictures is no match for one over clear ones."""
    asked = sorted(set(variants) or {BASE_VARIANT})
    if len(asked) <= MOST_NAMED:
        return " + ".join(asked)
    return f"{len(asked)} variants, {content_hash(asked, 4)}"


def column_names(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """Return for each run its tasks with the column of each; a column names what differs between its task's runs."""
    kinds: dict[str, list[tuple[str, ...]]] = {}
    for entry in entries:
        for task in entry.results["tasks"]:
            kinds.setdefault(task, []).append(kind_of_figure(entry, task))
    differing = {task: [len(set(parts)) > 1 for parts in zip(*found, strict=True)] for task, found in kinds.items()}

    def column(entry: Entry, task: str) -> str:
        """Return the name of one column."""
        parts = zip(kind_of_figure(entry, task), differing[task], strict=True)
        told = [part for part, differs in parts if differs]
        return f"{task} ({', '.join(told)})" if told else task

    return [{task: column(entry, task) for task in entry.results["tasks"]} for entry in entries]


def _in_blocks(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return the lines block by block, those of most tasks first; places and bands begin anew in each."""
    blocks: dict[frozenset[str], list[Line]] = {}
    for line in lines:
        blocks.setdefault(frozenset(line.tasks), []).append(line)
    order = sorted(blocks, key=lambda tasks: (-len(tasks), sorted(tasks)))
    return tuple(
        replace(line, block=number)
        for number, tasks in enumerate(order, 1)
        for line in _with_bands(sorted(blocks[tasks], key=_place))
    )


def _cell(entry: Entry, task: str) -> Cell:
    name, estimate = headline(entry.results["tasks"][task])
    bounds = estimate.get("ci95")
    n, unread, lost = rests_on(estimate)
    interval = (bounds[0], bounds[1]) if bounds else None
    numbers = (estimate.get("value"), estimate.get("stderr"), interval, n, lost)
    return Cell(name or "–", *numbers, unread=unread, bounds=estimate.get("bounds"))


def _rank(cells: dict[str, Cell]) -> dict[str, Cell]:
    known = {name: cell.value for name, cell in cells.items() if cell.value is not None}
    sign = 1.0 if any(lower_is_better(cell.metric) for cell in cells.values()) else -1.0
    ordered = sorted(sign * value for value in known.values())
    ranks = {name: ordered.index(sign * value) + (ordered.count(sign * value) + 1) / 2 for name, value in known.items()}
    shares = all(map(_looks_like_share, cells.values()))
    last = (len(known) + 1 + len(cells)) / 2 if known else None  # who has no value shares the places behind the others
    return {name: replace(cell, rank=ranks.get(name, last), is_share=shares) for name, cell in cells.items()}


def _dimensions(entries: Sequence[Entry], columns: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {
        of_entry[task.name]: task.dimension or "other"
        for entry, of_entry in zip(entries, columns, strict=True)
        for task in entry.header.tasks
        if task.name in of_entry
    }


def _place(line: Line) -> tuple[float, float, str]:
    rank = math.inf if line.average_rank is None else line.average_rank
    return rank, -(line.mean or 0.0), line.name


def _line(entry: Entry, board: Mapping[str, Mapping[str, Cell]], dimension_of: Mapping[str, str]) -> Line:
    cells = {task: found[entry.name] for task, found in board.items() if entry.name in found}
    measured = any(cell.value is not None for cell in cells.values())
    ranks = [cell.rank for cell in cells.values() if cell.rank is not None and measured]
    shares = {task: cell for task, cell in cells.items() if cell.is_share}
    mean, bounds = _mean(list(shares.values()))
    grouped: dict[str, list[Cell]] = {}
    for task, cell in shares.items():
        grouped.setdefault(dimension_of.get(task, "other"), []).append(cell)
    means = {name: _mean(of_dimension)[0] for name, of_dimension in grouped.items()}
    dimensions = {name: value for name, value in means.items() if value is not None}
    average = math.fsum(ranks) / len(ranks) if ranks else None
    cost = entry.results.get("cost")
    return Line(entry.name, entry.header.model, entry.header.id, average, mean, bounds, 0, cells, dimensions, cost)


def _is_share(cell: Cell) -> bool:
    return cell.value is not None and cell.is_share


def _looks_like_share(cell: Cell) -> bool:
    if lower_is_better(cell.metric) or is_no_share(cell.metric):
        return False
    return cell.value is None or 0.0 <= cell.value <= 1.0


def _mean(cells: Sequence[Cell]) -> tuple[float | None, tuple[float, float] | None]:
    """Return the mean over tasks and its interval, the tasks taken as fixed and independent.

    None where one of them has no value: a mean of the others would be that of an easier board.
    """
    if not cells or any(cell.value is None for cell in cells):
        return None, None
    mean = math.fsum(cell.value or 0.0 for cell in cells) / len(cells)
    if len(cells) == 1:
        return mean, cells[0].ci95
    parts = [(1.0 / len(cells), cell.value or 0.0, cell.ci95) for cell in cells if cell.ci95 is not None]
    return mean, sum_interval(parts) if len(parts) == len(cells) else None


def _with_bands(lines: Sequence[Line]) -> tuple[Line, ...]:
    band, leader, banded = 0, None, []
    for line in lines:
        if line.average_rank is None:  # they stand last
            banded.append(replace(line, band=0))
            continue
        if leader is None or not _alike(leader, line):
            band, leader = band + 1, line
        banded.append(replace(line, band=band))
    return tuple(banded)


def _alike(first: Line, second: Line) -> bool:
    """Tell whether two runs did the same tasks and cannot be told apart: by their means, or else task by task."""
    if first.tasks.keys() != second.tasks.keys():
        return False
    if first.mean is None and second.mean is None:
        pairs = ((cell, second.tasks[task]) for task, cell in first.tasks.items())
        return all(_close(one, one.value, other, other.value) for one, other in pairs)
    return _close(first, first.mean, second, second.mean)


def _close(first: Line | Cell, one: float | None, second: Line | Cell, other: float | None) -> bool:
    """Tell whether two values differ by less than the error of their difference (unpaired: on the safe side)."""
    if one is None or other is None or first.ci95 is None or second.ci95 is None:
        return one == other
    errors = [(high - low) / (2 * Z95) for low, high in (first.ci95, second.ci95)]
    return abs(one - other) < Z95 * math.hypot(*errors)


UNRANKED = "No other run did the same with another model or other settings."


def can_rank(lines: Sequence[Line]) -> bool:
    """Tell whether a block holds two runs that differ: repeats of one model with the same settings have no order."""
    return len({(line.model, line.run) for line in lines}) > 1


def ranked_blocks(board: Board) -> tuple[list[list[Line]], list[Line]]:
    """Return the blocks in which something can be ranked, and the lines of all others."""
    blocks = [list(lines) for _, lines in groupby(board.lines, key=lambda line: line.block)]
    return [one for one in blocks if can_rank(one)], [line for one in blocks if not can_rank(one) for line in one]


def board_sheets(board: Board) -> list[Sheet]:
    """Return the board as plain tables for every output form, one a block: places of two blocks mean nothing.

    What cannot be ranked is listed in a last one; where nothing can, every block is a table as it is.
    """
    ranked, alone = ranked_blocks(board)
    if not ranked:
        ranked, alone = [list(lines) for _, lines in groupby(board.lines, key=lambda line: line.block)], []
    sheets = [_block_sheet(board, lines, place, len(ranked)) for place, lines in enumerate(ranked, 1)]
    if alone:
        rows = tuple((line.model, line.name, ", ".join(line.tasks)) for line in alone)
        sheets.append(Sheet("Not ranked", ("model", "run", "tasks"), rows, UNRANKED))
    return sheets or [Sheet("Leaderboard", COLUMNS, ())]


def _block_sheet(board: Board, lines: Sequence[Line], block: int, blocks: int) -> Sheet:
    tasks = [task for task in board.tasks if task in lines[0].tasks]
    head = (*COLUMNS, *board.cost_columns, *(f"{name} %" for name in board.dimensions), *tasks)
    before = [0, *(line.band for line in lines)]
    rows = [_row(board, line, tasks, same=line.band == band) for line, band in zip(lines, before, strict=False)]
    alone = "" if blocks == 1 else f" {block} of {blocks}: {', '.join(tasks) or 'no task'}"
    return Sheet(f"Leaderboard{alone}", head, tuple(rows), _note(lines, blocks))


def _note(lines: Sequence[Line], blocks: int) -> str:
    """Say how to read a block."""
    lost, unread = (
        any(getattr(cell, name) for line in lines for cell in line.tasks.values()) for name in ("lost", "unread")
    )
    told = (
        (True, "Runs that share a # do not differ significantly from its first (95 %, unpaired);"),
        (True, "`snellen compare` tests pairs on the same samples."),
        (lost, "Lost: failed, or not to be judged; a value is of the others."),
        (unread, "Unread: without a readable answer, and not right."),
        (
            blocks > 1,
            "Runs of other tasks, metrics, ways of asking, variants, readings or rows have tables of their own.",
        ),
    )
    return " ".join(text for applies, text in told if applies)


def _row(board: Board, line: Line, tasks: Sequence[str], *, same: bool) -> tuple[str, ...]:
    """Return one run; `same` says that it cannot be told apart from the first of its band."""
    dimensions = [_percent(line.dimensions.get(name)) for name in board.dimensions]
    place = f"{line.band}{'=' if same else ''}" if line.band else "–"
    names = (place, line.model, line.name, str(len(line.tasks)))
    means = (_plain(line.average_rank), _percent(line.mean), _bounds(line.ci95))
    costs = cost_cells(line.cost) if board.cost_columns else ()
    return (*names, *means, *costs, *dimensions, *(_of_task(line, task) for task in tasks))


def _of_task(line: Line, task: str) -> str:
    cell = line.tasks.get(task)
    if cell is None or cell.value is None:
        return "–"
    value = _percent(cell.value) if _is_share(cell) else f"{cell.value:.3g}"
    told = [_bounds(cell.ci95)] if cell.ci95 and _is_share(cell) else []
    told += [f"{cell.unread:,} of {cell.n:,} unread"] if cell.unread else []
    told += [f"{cell.lost:,} of {cell.n + cell.lost:,} lost"] if cell.lost else []
    return value + (f" ({', '.join(told)})" if told else "")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.1f}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _bounds(bounds: Sequence[float] | None) -> str:
    return "–" if bounds is None else f"{bounds[0] * 100:.1f}–{bounds[1] * 100:.1f}"

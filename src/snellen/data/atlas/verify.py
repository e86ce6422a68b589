"""The data of a card against what the card says: which shape, how many rows, which columns, which checksums."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError, SnellenError
from ...core.tasks import Task
from ..files.rows import read_rows
from .card_rows import FoundShape, find_shape
from .card_sources import CardSource, read_card_sources
from .fetch import check_digest, read_fetched
from .official_files import SideColumns, source_rows


class Verified(Struct, frozen=True, omit_defaults=True):
    """What was found; without problems the data is what the card means."""

    card: str
    shape: str = ""
    files: list[str] = []
    rows: int = 0
    expected_rows: int | None = None
    checked: dict[str, str] = {}
    """File -> what its checksum was compared with."""
    problems: list[str] = []
    notes: list[str] = []


def verify_data(task: Task, path: Path) -> Verified:
    """Compare the data at a path with the card: every problem is named, none ends the check."""
    task = msgspec.structs.replace(task, dataset={**task.dataset, "path": str(path.resolve())})
    sources = read_card_sources(task.dataset, f"task {task.name!r}")
    try:
        shape = find_shape(task, None)
    except SnellenError as error:
        return Verified(task.name, problems=[str(error)])
    if not shape.name:
        return Verified(task.name, files=_names(shape.files), problems=list(_unknown_shape(shape, sources)))
    kept, other, problems = _count(shape)
    checked, wrong, silent = _digests(shape, path)
    wrong += _lacking_beside(shape)
    expected = shape.source.count
    if expected is not None and kept != expected:
        problems.append(f"{kept:,} rows, and the card says {expected:,}: a part, or another version")
    if other:
        silent.append(f"{other:,} rows of other splits are left out")
    return Verified(task.name, shape.name, _names(shape.files), kept, expected, checked, [*wrong, *problems], silent)


def _lacking_beside(shape: FoundShape) -> list[str]:
    """Return what is wrong with the files that hold further columns of the rows; the rows are held against them."""
    try:
        sides = SideColumns(shape.source, shape.files[0].parent)
        for file in shape.files if shape.source.beside else ():
            deque(sides.rows(read_rows(file), file), maxlen=0)
    except DataError as error:
        return [str(error)]
    return []


def _names(files: Sequence[Path]) -> list[str]:
    return [file.name for file in files]


def _unknown_shape(shape: FoundShape, sources: dict[str, CardSource]) -> Iterator[str]:
    columns = {name for _, row in _first(shape.files[0]) for name in row}
    for name, source in sources.items():
        lacking = [column for column in source.columns if column not in columns]
        yield f"{shape.files[0].name} is not the {name} form: it has no column {', '.join(lacking)}"


def _first(file: Path) -> list[tuple[int, dict[str, Any]]]:
    return [next(read_rows(file), (0, {}))]


def _count(shape: FoundShape) -> tuple[int, int, list[str]]:
    """Return the rows that are asked, those of other splits, and problems met on the way."""
    kept = other = 0
    lacking: Counter[str] = Counter()
    columns = () if shape.source.templates else shape.source.columns  # a row of questions is no row of the table
    try:
        for _, row in chain.from_iterable(source_rows(shape.source, file) for file in shape.files):
            lacking.update(column for column in columns if column not in row)
            kept, other = (kept, other + 1) if shape.source.other_split(row) else (kept + 1, other)
    except DataError as error:
        return kept, other, [str(error)]
    return kept, other, [f"{count:,} rows have no column {column!r}" for column, count in lacking.items()]


def _digests(shape: FoundShape, path: Path) -> tuple[dict[str, str], list[str], list[str]]:
    """Return what checksums were compared with, those that differ, and files nobody knows the checksum of."""
    folder = path if path.is_dir() else path.parent
    record = read_fetched(folder)
    checked: dict[str, str] = {}
    wrong: list[str] = []
    silent: list[str] = []
    for file in shape.files:
        own = (
            record.files.get(file.relative_to(folder).as_posix(), "") if record and file.is_relative_to(folder) else ""
        )
        expected, by = (shape.source.files.get(file.name, ""), "the card") if not own else (own, "what was fetched")
        same = check_digest(file, expected)
        if same is None:
            silent.append(f"{file.name}: no checksum is known")
        elif same:
            checked[file.name] = by
        else:
            wrong.append(f"{file.name} has another checksum than {by} says ({expected}): damaged, or another version")
    return checked, wrong, silent

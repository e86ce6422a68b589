"""A run that is scored to the file of its columns, which the viewer looks at: written as parts pass, none is held."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..core.errors import EnvironmentProblem
from ..store.column_seal import put_column_seal, stored_mark
from ..store.reader import RunReader
from .array_file import ArrayWriter
from .gathered import GatheredTask
from .kept_columns import CODED, COLUMNS_FILE, OF_METRIC, SEEN, SHARED, AboutTask
from .packed import fewest_bytes
from .ranges import ScoredRange
from .table import Codes, ScoreTable

KEPT_FROM = 100_000
"""Trials: smaller runs are read from run.db faster than anybody notices, and need no further file."""


class ColumnKeeper(Protocol):
    """Who sees a run's parts and tables pass."""

    wanted: bool
    """Whether parts must hold what only the viewer asks for."""

    def watching(self, parts: Iterator[ScoredRange]) -> Iterator[ScoredRange]:
        """Pass the parts of a task on."""
        ...

    def add_task(self, gathered: GatheredTask, metrics: Sequence[str]) -> None:
        """Take the tables of the task whose parts have passed; `metrics` are those that the viewer offers."""
        ...


class NoKeeper:
    """Keeps nothing."""

    wanted = False

    def watching(self, parts: Iterator[ScoredRange]) -> Iterator[ScoredRange]:
        """Pass the parts on."""
        return parts

    def add_task(self, gathered: GatheredTask, metrics: Sequence[str]) -> None:
        """Take nothing."""


class FileKeeper:
    """Writes the columns of every task into one file."""

    wanted = True

    def __init__(self, file: ArrayWriter) -> None:
        self._file = file
        self._tasks: dict[str, AboutTask] = {}
        self._blocks = self._trials = 0

    def watching(self, parts: Iterator[ScoredRange]) -> Iterator[ScoredRange]:
        """Write what the parts hold for the viewer, and pass the rest on."""
        self._blocks = self._trials = 0
        for part in parts:
            if part.seen is not None:
                self._add_block(part)
            yield part._replace(seen=None)

    def _add_block(self, part: ScoredRange) -> None:
        name, seen = f"{len(self._tasks)}/block/{self._blocks}", part.seen
        for kind in ("replies", "questions"):
            texts, ends, codes = getattr(seen, kind)
            self._file.add_bytes(f"{name}/{kind}/texts", texts)
            self._file.add(f"{name}/{kind}/ends", ends)
            self._file.add(f"{name}/{kind}/codes", codes)
        for column in SEEN:
            self._file.add(f"{name}/{column}", getattr(seen, column))
        self._blocks += 1
        self._trials += part.trials

    def add_task(self, gathered: GatheredTask, metrics: Sequence[str]) -> None:
        """Write the tables of a task in the order of the plan; a task without any trial has none."""
        if not self._trials:
            return
        tables = _shown_tables(gathered.tables(), metrics)
        for table in tables:
            if len(table) != self._trials:  # judges were heard last, and of trials that were stored meanwhile
                held = f"{len(table):,} trials under {table.metric!r}, and {self._trials:,} were scored"
                raise EnvironmentProblem(
                    f"task {gathered.task.name!r} has {held}: somebody writes to the run; score it when that has ended"
                )
        first = tables[0]
        about = AboutTask(len(self._tasks), self._blocks, tuple(metrics), tuple(first.tags), first.groups is not None)
        ordered = np.argsort(gathered.places[first.sample], kind="stable").astype(np.int32)
        for name in SHARED:
            self._add(about.name(name), getattr(first, name)[ordered])
        for number, table in enumerate(tables):
            self._add_metric(about, number, table, ordered)
        self._add_samples(about, first, gathered.places)
        self._tasks[gathered.task.name] = about

    def _add_metric(self, about: AboutTask, number: int, table: ScoreTable, ordered: Codes) -> None:
        for name in OF_METRIC:
            column = getattr(table, name)
            if name in CODED:
                column, texts = _own_book(column, getattr(table, f"{name}s"))
                self._file.add_texts(about.name(number, f"{name}s"), texts)
            self._add(about.name(number, name), column[ordered])

    def _add_samples(self, about: AboutTask, table: ScoreTable, places: Codes) -> None:
        self._file.add_texts(about.name("samples"), table.samples)
        self._file.add_texts(about.name("variants"), table.variants)
        self._add(about.name("places"), places)
        self._add(about.name("clusters"), table.cluster_of_sample)
        coded = {about.name("tag", place): table.tags[key] for place, key in enumerate(about.tags)}
        coded |= {about.name("group"): table.groups} if table.groups is not None else {}
        for name, (codes, texts) in coded.items():
            self._add(name, codes)
            self._file.add_texts(f"{name}/texts", texts)

    def _add(self, name: str, column: NDArray[Any]) -> None:
        self._file.add(name, column if column.dtype.kind == "f" else fewest_bytes(column))

    def end(self, mark: list[Any], tasks: Sequence[str]) -> str:
        """Finish the file, and return its seal; the mark says of which state of the run it is."""
        return self._file.end({"mark": mark, "scored": tasks, "tasks": msgspec.to_builtins(self._tasks)})


def _shown_tables(tables: Mapping[str, ScoreTable], metrics: Sequence[str]) -> list[ScoreTable]:
    """Return the tables that the viewer offers; of a task without any score the one that says so, without a name."""
    return [tables[name] for name in metrics] or [replace(next(iter(tables.values())), metric="")]


def _own_book(codes: Codes, texts: Sequence[str]) -> tuple[NDArray[Any], list[str]]:
    """Return a column with only the texts it uses: the tables of a task share one book."""
    used = np.flatnonzero(np.bincount(codes + np.int32(1), minlength=len(texts) + 1)[1:])
    ranks = np.full(len(texts) + 1, -1, np.int32)
    ranks[used] = np.arange(used.size, dtype=np.int32)
    return fewest_bytes(ranks)[codes], [texts[place] for place in used.tolist()]


@contextmanager
def column_keeper(reader: RunReader, *, keep: bool) -> Iterator[ColumnKeeper]:
    """Hold the keeper of a run's columns while it is scored; after the block they are in place, or there are none.

    A run that somebody writes meanwhile has none: they would be stale at once.
    """
    folder = Path(reader.folder)
    tasks = [task.name for task in reader.header().tasks]
    before = stored_mark(reader, ())
    if not keep or before[0] < KEPT_FROM:
        yield NoKeeper()
        return
    path, temporary = folder / COLUMNS_FILE, folder / f".{COLUMNS_FILE}.{os.getpid()}"
    try:
        with _opened(temporary) as file:
            keeper = FileKeeper(ArrayWriter(file, path))
            yield keeper
            mark = stored_mark(reader, tasks)
            seal = keeper.end(mark, tasks)
            os.fsync(file.fileno())
        temporary.replace(path)
        if mark[:2] != before[:2] or not put_column_seal(folder, seal, mark, tasks):
            path.unlink(missing_ok=True)
    finally:
        temporary.unlink(missing_ok=True)


def _opened(path: Path) -> FileIO:
    try:
        return FileIO(path, "w")
    except OSError as error:
        raise EnvironmentProblem(f"cannot write to {path.parent}: {error.strerror}; the run itself is safe") from None

"""Which file of columns belongs to what a run holds now: its seal, kept in run.db and taken away by every writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from ..core.errors import EnvironmentProblem
from .database import COLUMNS_SEAL, connect
from .lock import RunLock
from .problems import write_problem
from .reader import RunReader

_LAST = "SELECT rowid, failed, digest, request, body FROM predictions ORDER BY rowid DESC LIMIT 1"


def stored_mark(reader: RunReader, tasks: Iterable[str]) -> list[Any]:
    """Return what tells the state of a run from another: its trials, counted, the last one, and the scores' checksums.

    An older version adds trials without taking the seal away: then the count or the last one differs.
    """
    count = next(reader.rows("SELECT COUNT(*) FROM predictions"))[0]
    last = next(reader.rows(_LAST), None)
    scores = [[task, reader.meta(f"scores/{task}")] for task in tasks]
    return [count, last and [last[0], crc32(repr(last).encode("utf-8", "surrogatepass"))], scores]


def put_column_seal(folder: Path, seal: str, mark: list[Any], tasks: Iterable[str]) -> bool:
    """Name a file of columns in run.db, unless somebody writes the run or has: tell whether it was named.

    The lock is held meanwhile, so that no writer begins between the look at the run and the naming.
    """
    try:
        lock = RunLock(folder)
    except EnvironmentProblem:
        return False
    try:
        with RunReader(folder) as reader:
            as_before = stored_mark(reader, tasks) == mark
        if as_before:
            _put(folder / "run.db", msgspec.json.encode(seal).decode())
    finally:
        lock.release()
    return as_before


def _put(path: Path, value: str) -> None:
    database = connect(path)
    try:
        database.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (COLUMNS_SEAL, value))
    except sqlite3.Error as error:
        raise write_problem(path, error) from None
    finally:
        database.close()

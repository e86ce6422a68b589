"""A damaged run.db to what is left of it: which rows can be read, and a new file with all of them."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.errors import EnvironmentProblem
from ..core.tasks import RunHeader
from ..core.text import plural
from ..core.types import Failure, FailureKind, Prediction, Request, Sample, TrialKey
from .database import (
    BROKEN,
    SAVED,
    Row,
    check_tables,
    connect,
    has_turns,
    insert_rows,
    is_half_repaired,
    is_intact,
    no_run,
    open_for_writing,
    seal,
    sync,
)
from .owner import RunLock
from .reader import RunReader
from .turns import is_turn, turn_of_row

LOST = Failure(FailureKind.DECODE, "the stored reply could not be read again: the file was damaged")
SMALLEST_ROW = 16
"""Bytes: so the size of a file bounds how many rows it can hold."""
STEPS_A_BYTE = 8
LEAST_STEPS = 20_000_000
"""Of SQLite's machine: reading a sound file takes fewer, and what goes round in a broken tree ends."""
MOST_STRETCHES = 20_000
"""So often a table is looked into again behind a place that cannot be read."""
GROUP_ROWS = 64
SPARE = "run.db.damaged"
ORPHANED = "NOT EXISTS (SELECT 1 FROM samples s WHERE s.task = predictions.task AND s.id = predictions.sample)"
KEPT = ("meta", "samples", "predictions", "attempts", "turns")
"""Tables that are saved; scores are derived, and made again by `snellen score`."""

_sample = msgspec.json.Decoder(Sample).decode
_request = msgspec.json.Decoder(Request).decode
_prediction = msgspec.json.Decoder(Prediction).decode


def _is_sample(row: Row) -> bool:
    return is_intact(row[3], "{}\0{}\0{}".format(*row)) and _read(lambda: _sample(row[3]).id == row[1])


def _is_trial(row: Row) -> bool:
    *key, failed, digest, request, body = row
    if not (is_intact(request) and is_intact(body, f"{failed}\0{digest}")):
        return False
    return _read(lambda: bool(_request(request)) and _prediction(body).key == TrialKey(*key))


def _is_meta(row: Row) -> bool:
    kind: Any = RunHeader if row[0] == "header" else object
    sealed = row[0] != "header" or is_intact(row[1])
    return sealed and _read(lambda: msgspec.json.decode(row[1], type=kind) is not None)


def _is_turn(row: Row) -> bool:
    return is_turn(row[4:]) and _read(lambda: turn_of_row(row[4:]).request.key == TrialKey(*row[:4]))


def _is_row(row: Row) -> bool:
    return bool(row)


CHECKS: dict[str, Callable[[Row], bool]] = {
    "meta": _is_meta,
    "samples": _is_sample,
    "predictions": _is_trial,
    "turns": _is_turn,
}


def _read(whether: Callable[[], bool]) -> bool:
    try:
        return whether()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
        return False


def fail_unreadable(database: sqlite3.Connection) -> int:
    """Mark every stored trial that cannot be read as failed, so that it is asked again; return how many.

    A sample that cannot be read goes, and its trials with it: it is stored anew when one of them is asked. So does a
    record under the columns of another trial: that one may never have been planned.
    """
    bodies = database.execute("SELECT task, id, position, body FROM samples")
    samples = {(row[0], row[1]): _is_sample(row) for row in bodies}
    lost = [name for name, readable in samples.items() if not readable]
    rows = database.execute("SELECT rowid, * FROM predictions")
    bad = [row for row in rows if not (samples.get((row[1], row[2])) and _is_trial(row[1:]))]
    if not (lost or bad):
        return 0
    database.execute("BEGIN IMMEDIATE")
    database.executemany("DELETE FROM samples WHERE task = ? AND id = ?", lost)
    database.executemany("DELETE FROM predictions WHERE rowid = ?", [row[:1] for row in bad if _is_moved(row[1:])])
    database.executemany(
        "UPDATE predictions SET failed = 1, request = ?, body = ? WHERE rowid = ?",
        [(*_lost_bodies(TrialKey(*row[1:5]), row[6]), row[0]) for row in bad],
    )
    database.execute("COMMIT")
    return len(bad)


def _is_moved(row: Row) -> bool:
    """Tell whether a record is whole, and of another trial than its columns say."""
    *key, failed, digest, _, body = row
    return is_intact(body, f"{failed}\0{digest}") and _read(lambda: _prediction(body).key != TrialKey(*key))


def _lost_bodies(key: TrialKey, digest: str) -> tuple[bytes, bytes]:
    body = msgspec.json.encode(Prediction(key, failure=LOST))
    return seal(msgspec.json.encode(Request(key, ()))), seal(body, f"1\0{digest}")


class TableHealth(NamedTuple):
    """How many rows of a table can be read, and how many places in it cannot."""

    table: str
    readable: int
    unreadable: int


class Health(NamedTuple):
    """What is left of a run."""

    folder: Path
    sound: bool
    """SQLite finds nothing wrong and every record can be read."""
    verdict: str
    tables: tuple[TableHealth, ...] = ()
    has_header: bool = False


def look_at_run(folder: Path) -> Health:
    """Read all of a run and say what is left of it; nothing is changed."""
    path = _database_of(folder)
    with closing(bounded(path)) as database:
        try:
            verdict = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
            check_tables(database, path)
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except BROKEN as error:
            return Health(folder, False, f"SQLite cannot read it at all: {error}")
        found = tuple(_health_of(database, table, path) for table in KEPT if table in tables)
        header = _has_header(database, path)
        verdict = _orphans(database) if verdict == "ok" else verdict
    verdict = _first_problem(folder) if verdict == "ok" else verdict
    whole = len(found) >= len(KEPT) - ("turns" not in tables) and not any(table.unreadable for table in found)
    return Health(folder, verdict == "ok" and header and whole, verdict, found, header)


def bounded(path: Path) -> sqlite3.Connection:
    """Open a database that may be damaged: all statements together end, if need be each by an error."""
    database = connect(path, read_only=True)
    size = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
    left, steps = max(LEAST_STEPS, STEPS_A_BYTE * size), 10_000

    def count() -> bool:
        nonlocal left
        left -= steps
        return left < 0

    database.set_progress_handler(count, steps)
    return database


def _database_of(folder: Path) -> Path:
    path = folder / "run.db"
    if not path.is_file():
        raise no_run(folder)
    return path


def _orphans(database: sqlite3.Connection) -> str:
    try:
        count = database.execute(f"SELECT COUNT(*) FROM predictions WHERE {ORPHANED}").fetchone()[0]  # noqa: S608 - ours
    except BROKEN as error:
        return str(error)
    return f"{plural(count, 'reply')} without the sample" if count else "ok"


def _first_problem(folder: Path) -> str:
    """Return what whoever reads the run would be told, or `ok`: its version, its scores."""
    try:
        with RunReader(folder) as reader:
            for task in reader.tasks():
                deque(reader.trials(task), maxlen=0)
                deque(reader.scores(task), maxlen=0)
    except (EnvironmentProblem, sqlite3.Error, ValueError) as error:
        return str(error)
    return "ok"


def _has_header(database: sqlite3.Connection, path: Path) -> bool:
    return any(row[0] == "header" for row in _rows_left(database, "meta", path))


def _health_of(database: sqlite3.Connection, table: str, path: Path) -> TableHealth:
    check = CHECKS.get(table, _is_row)
    rows = [row is not None and check(row) for row in _all_rows(database, table, path)]
    return TableHealth(table, sum(rows), len(rows) - sum(rows))


def _rows_left(database: sqlite3.Connection, table: str, path: Path) -> Iterator[Row]:
    check = CHECKS.get(table, _is_row)
    return (row for row in _all_rows(database, table, path) if row is not None and check(row))


def _all_rows(database: sqlite3.Connection, table: str, path: Path) -> Iterator[Row | None]:
    """Yield every row that SQLite can read, and None once for each stretch that it cannot."""
    # No file holds more rows than it has bytes for; counting them would already stumble over the damage.
    last = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists()) // SMALLEST_ROW + 1
    stretches, broken, looked = [(1, last)], False, 0
    while stretches:
        first, end = stretches.pop()
        looked += 1
        if looked > MOST_STRETCHES:  # whatever is left behind so many broken places
            yield None
            return
        rows, broken_at = _read_stretch(database, table, first, end)
        yield from rows
        if broken_at is None:
            broken = broken and not rows
            continue
        if broken_at >= end:
            if not (broken and not rows):
                yield None
            broken = True
            continue
        middle = (broken_at + end) // 2
        stretches += [(middle + 1, end), (broken_at, middle)]


def _read_stretch(database: sqlite3.Connection, table: str, first: int, end: int) -> tuple[list[Row], int | None]:
    """Return the rows of a stretch, and the number after the last of them if it breaks off there."""
    rows: list[Row] = []
    number = first - 1
    try:
        for found, *row in database.execute(
            f"SELECT rowid, * FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid",  # noqa: S608 - a name of ours
            (first, end),
        ):
            if not number < found <= end:  # a tree that leads back to itself
                return rows, number + 1
            number = found
            rows.append(tuple(row))
    except BROKEN:
        return rows, number + 1
    return rows, None


class Repaired(NamedTuple):
    """What a repair saved, by table, and where the damaged file is now."""

    saved: dict[str, int]
    lost: dict[str, int]
    spare: Path


def repair_run(folder: Path) -> Repaired:
    """Write a new run.db with every row that can be read; the damaged one stays beside it under another name.

    A repair that was killed is finished by the same call.
    """
    path, spare, fresh = folder / "run.db", folder / SPARE, folder / SAVED
    if is_half_repaired(folder):
        return _finish_repair(folder)
    health = look_at_run(folder)
    if health.sound:
        raise EnvironmentProblem(f"{path} is sound: there is nothing to repair")
    if not health.has_header:
        reason = "its header cannot be read, so nobody knows which model and settings the replies belong to"
        raise EnvironmentProblem(f"{path} cannot be repaired: {reason}; nothing was changed")
    if spare.exists():
        raise EnvironmentProblem(f"{spare} is there from an earlier repair: move it away first")
    lock = RunLock(folder)
    try:
        saved = _save(path, fresh)
        _take_place(folder)
    finally:
        lock.release()
    return Repaired(saved, {table.table: table.unreadable for table in health.tables if table.unreadable}, spare)


def _take_place(folder: Path) -> None:
    """Move the damaged file and its log away, in this order, and what was saved to their place."""
    for end in ("", "-wal", "-shm"):  # the log belongs to its database
        if (folder / f"run.db{end}").exists():
            (folder / f"run.db{end}").rename(folder / f"{SPARE}{end}")
    (folder / SAVED).rename(folder / "run.db")
    sync(folder)


def _finish_repair(folder: Path) -> Repaired:
    lock = RunLock(folder)
    try:
        _take_place(folder)
    finally:
        lock.release()
    found = {table.table: table.readable for table in look_at_run(folder).tables}
    return Repaired({table: found.get(table, 0) for table in KEPT}, {}, folder / SPARE)


def _save(path: Path, fresh: Path) -> dict[str, int]:
    fresh.unlink(missing_ok=True)
    with closing(bounded(path)) as old, closing(open_for_writing(fresh)) as new:
        new.execute("BEGIN IMMEDIATE")
        kept = KEPT if has_turns(old) else KEPT[:-1]  # a run of 0.2 has none
        saved = {table: _copy(_rows_left(old, table, path), new, table) for table in kept}
        saved["predictions"] -= new.execute(
            f"DELETE FROM predictions WHERE {ORPHANED}"  # noqa: S608 - ours
        ).rowcount
        new.execute("COMMIT")
        new.execute("PRAGMA journal_mode=DELETE")  # all in one file, which is renamed
    return saved


def _copy(rows: Iterator[Row], new: sqlite3.Connection, table: str) -> int:
    count, group = 0, list[Row]()
    for row in rows:
        group.append(row)
        if len(group) == GROUP_ROWS:
            count += _insert(new, table, group)
            group = []
    return count + _insert(new, table, group)


def _insert(new: sqlite3.Connection, table: str, group: list[Row]) -> int:
    before = new.total_changes
    statement = "INSERT OR IGNORE INTO " + table + " VALUES {rows}"  # noqa: S608 - a name of ours
    insert_rows(new, statement, group)
    return new.total_changes - before

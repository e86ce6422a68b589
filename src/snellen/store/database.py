"""Paths to open databases: pragmas, schema, versions, file systems on which a write-ahead log is not safe; and seals.

SQLite checks its log, but nothing in a database page tells of a flipped bit. A sealed record is the JSON it was with
one more field, a checksum. It also covers the columns that stand beside the record and are not in it: `beside`, a text
of them with NUL between.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from ..core.errors import EnvironmentProblem, did_you_mean
from ..core.homes import PARTS_FOLDER, SUBMIT_FOLDER

BROKEN = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises for a damaged file; the second where even its message quotes broken bytes."""
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
GO_ON = "run the same command again, nothing stored is lost"
ADVICE = {
    "SQLITE_FULL": f"free some space and {GO_ON}",
    "SQLITE_IOERR": f"free some space or look after the disk, and {GO_ON}",
    "SQLITE_CANTOPEN": f"allow more open files (ulimit -n) or writing to the folder, and {GO_ON}",
    "SQLITE_READONLY": f"allow writing to the folder, and {GO_ON}",
    "SQLITE_NOMEM": f"give it more memory or fewer workers, and {GO_ON}",
    "SQLITE_BUSY": f"another program holds the file: wait for it, and {GO_ON}",
}
"""How the name of an error of SQLite begins -> what helps."""


def write_problem(path: Path, error: Exception) -> EnvironmentProblem:
    """Return why a database cannot be written, and what helps."""

    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(DAMAGED) or isinstance(error, UnicodeDecodeError):
        return damaged(path, error)
    advice = next((text for start, text in ADVICE.items() if name.startswith(start)), GO_ON)
    if not name.startswith("SQLITE_FULL") and is_on_network(path):
        advice = f"does another machine write it too? Here locks may not be kept: use --shard, or {advice}"
    return EnvironmentProblem(f"cannot write {path}: {error}; {advice}")


def damaged(path: Path, error: Exception | str) -> EnvironmentProblem:
    """Return that a run's database is damaged, and how to see and save what is left."""
    run = path.parent
    advice = f"`snellen doctor {run}` says what is left, `snellen repair {run}` saves it"
    told = " ".join(str(error).split())  # SQLite quotes names, and of a damaged one any byte
    return EnvironmentProblem(f"{path} cannot be read, it is damaged: {told}; {advice}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a damaged database raises in the block into one line; a lock or a lack of memory is told as such."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_READONLY", "SQLITE_INTERRUPT")):
            raise
        known = [text for start, text in ADVICE.items() if name.startswith(start) and start != "SQLITE_IOERR"]
        if known:
            raise EnvironmentProblem(f"cannot read {path}: {error}; {known[0]}") from None
        raise damaged(path, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(path, f"a stored record is none: {error}") from None


SCHEMA_VERSION = 1
LOCK_TIMEOUT_S = 30.0
MOST_CELL_BYTES = 128 * 2**20
"""No record is larger (a picture of 64 MB as base64 is 86); a larger cell is refused before memory is taken for it."""
LOG_PAGES = 4_000
"""The log is folded into the database every 16 MB: at SQLite's 4 MB a page that grows is written twice as often."""
SAVED = "run.db.new"
"""What a repair saved, on its way: while run.db is there it may be half."""
SEAL_BYTES = len(b',"crc":"00000000"}')
Row = tuple[Any, ...]
NETWORK_FILE_SYSTEMS = (
    *("nfs", "cifs", "smb", "9p", "afs", "lustre", "ceph", "beegfs", "gpfs", "wekafs", "panfs", "pvfs2", "orangefs"),
    *("ocfs2", "gfs2", "glusterfs", "virtiofs", "vboxsf", "fuse"),
)
"""How their names begin. What FUSE holds nobody can tell: it counts as one, but for what is known to be local."""
LOCAL_FUSE = ("fuseblk", "fuse.ntfs", "fuse.ext", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.gocryptfs")


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open (or create) a run database for its one writer: durable at every commit."""
    connection = connect(path)
    set_journal(connection, "DELETE" if is_on_network(path) else "WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    check_version(version or SCHEMA_VERSION, path)
    check_tables(connection, path)
    if version == 0 or not has_turns(connection):  # a run of 0.2 has no table of turns yet
        schema = (files("snellen.store") / "schema.sql").read_text()
        connection.executescript(f"BEGIN;{schema};PRAGMA user_version={SCHEMA_VERSION};COMMIT")  # all of it or nothing
    return connection


def has_turns(database: sqlite3.Connection) -> bool:
    """Tell whether a run has the table of turns."""
    found = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'turns'").fetchone()
    return found is not None


def no_run(folder: Path) -> EnvironmentProblem:
    """Return the error for a folder that holds no run; one that holds runs, or is spelt otherwise, is told so."""
    below = next((one.parent for one in sorted(folder.glob("*/run.db"))), None)
    advice = f"; it holds runs: name one, such as {below}" if below else ""
    if not folder.is_dir():
        advice = did_you_mean(folder.name, [one.parent.name for one in folder.parent.glob("*/run.db")])
    if is_half_repaired(folder):
        advice = f"; a repair was interrupted: `snellen repair {folder}` finishes it"
    elif (folder / PARTS_FOLDER).is_dir():
        advice = f"; its parts are not joined: `snellen merge --partial {folder}` joins what there is"
    elif (folder / SUBMIT_FOLDER).is_dir():
        advice = f"; submitted, and no part has begun: see the queue and {folder / SUBMIT_FOLDER / 'logs'}"
    advice = advice or "; `snellen view runs` lists runs, `snellen run` makes one"
    return EnvironmentProblem(f"no run at {folder}: run.db is missing{advice}")


def is_half_repaired(folder: Path) -> bool:
    """Tell whether a repair was killed after all was saved and before it was in its place."""
    return (folder / SAVED).exists() and not (folder / "run.db").exists()


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a run database read-only, also while it is being written."""
    if not path.is_file():
        raise no_run(path.parent)
    undo_half_write(path)
    connection = connect(path, read_only=True)
    try:
        with reading(path):
            check_version(connection.execute("PRAGMA user_version").fetchone()[0], path)
            check_tables(connection, path)
    except EnvironmentProblem:
        connection.close()
        raise
    return connection


def undo_half_write(path: Path) -> None:
    """Let SQLite take back what a killed writer left half done without a log, which no reader may: it has to write.

    That is where a log is not safe, and the moment in which a new file gets one.
    """
    if not path.with_name(f"{path.name}-journal").exists():
        return
    try:
        with closing(connect(path)) as connection:
            connection.execute("PRAGMA user_version")
    except sqlite3.Error as error:
        raise write_problem(path, error) from None


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection in autocommit mode that any thread may use, one at a time."""
    try:
        mode = "ro" if read_only else "rwc"
        address = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=LOCK_TIMEOUT_S
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_CELL_BYTES)
        return connection
    except sqlite3.OperationalError as error:
        raise EnvironmentProblem(f"cannot open {path}: {error}") from None


def set_journal(database: sqlite3.Connection, mode: str) -> None:
    """Switch the journal, also while others open the same new file: here SQLite heeds no timeout of its own."""
    give_up = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            database.execute(f"PRAGMA journal_mode={mode}")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


def insert_rows(database: sqlite3.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Insert rows by few statements, each of which has `{rows}` where the values of many go.

    The interpreter lock is given up once for many rows; their numbers are powers of two, as preparing costs too.
    """
    while rows:
        count = 1 << (len(rows).bit_length() - 1)
        marks = ",".join(["(" + ",".join("?" * len(rows[0])) + ")"] * count)
        database.execute(statement.format(rows=marks), list(chain.from_iterable(rows[:count])))
        rows = rows[count:]


def check_version(version: int, path: Path) -> None:
    """Refuse a database of a newer Snellen."""
    if version == 0:
        raise EnvironmentProblem(f"{path} is not a run of Snellen, or was never begun")
    if version > SCHEMA_VERSION:
        raise EnvironmentProblem(
            f"{path} was written by a newer Snellen (schema {version}): upgrade with pip install -U snellen"
        )


def check_tables(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of a stranger in which something else than plain tables is to be read: a view may never end."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
    odd = database.execute(query).fetchone()
    if odd is not None:
        raise EnvironmentProblem(f"{path} is not a run of Snellen: {odd[0]!r} in it is no plain table")


def is_on_network(path: Path) -> bool:
    """Tell whether a path lies where several machines may see it, and locks or shared memory may not hold."""
    name = file_system_of(path)
    return name.startswith(NETWORK_FILE_SYSTEMS) and not name.startswith(LOCAL_FUSE)


def file_system_of(path: Path) -> str:
    """Return the file system type a path lives on (Linux), through symbolic links, or the empty string."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    target = os.path.realpath(path)
    places = [(mount[1].encode().decode("unicode_escape"), mount[2]) for mount in mounts]  # a space is \\040
    inside = [(place, kind) for place, kind in places if f"{target}/".startswith(place.rstrip("/") + "/")]
    inside.sort(key=lambda mount: len(mount[0]))  # of several at one place (autofs below nfs) the last one counts
    return inside[-1][1] if inside else ""


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def seal(record: bytes, beside: str = "") -> bytes:
    """Return an encoded object with the checksum of itself and of the columns beside it."""
    body = record[:-1]
    return body + _ending(body, beside)


def is_intact(record: object, beside: str = "") -> bool:
    """Tell whether a record is as it was sealed; one without a seal is not."""
    content = record if type(record) is bytes else _bytes(record)
    return content[-SEAL_BYTES:] == _ending(content[:-SEAL_BYTES], beside)


def _ending(body: bytes, beside: str) -> bytes:
    total = crc32(body)
    if beside:
        total = crc32(beside.encode("utf-8", "surrogatepass"), total)
    return b',"crc":"%08x"}' % total


def _bytes(record: object) -> bytes:
    """Return what a column holds; a damaged page may give a value of any type."""
    if isinstance(record, bytes):
        return record
    return record.encode("utf-8", "surrogatepass") if isinstance(record, str) else b""

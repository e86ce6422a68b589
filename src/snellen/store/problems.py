"""What SQLite reports to one line that says what helps: a full disk and a damaged file need different things."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ..core.errors import EnvironmentProblem

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

"""A run's folder to whether somebody writes it now: told without taking its lock, which would refuse a writer."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

QUIET_S = 60.0
"""A run that was written so recently is running, wherever its writer is."""
LOCKS = Path("/proc/locks")
"""Where Linux lists who holds which lock; other systems have only the time of the last writing."""


def is_written_now(folder: Path, locks: Path = LOCKS) -> bool:
    """Tell whether a process holds the run's lock, or has written a moment ago (from another machine or container)."""
    return _is_locked(folder / "run.lock", locks) or time.time() - _written_at(folder) < QUIET_S


def last_written(folder: Path) -> str:
    """Return when the run was written last, in UTC, to the minute."""
    return datetime.fromtimestamp(_written_at(folder), UTC).strftime("%Y-%m-%d %H:%M UTC")


def _written_at(folder: Path) -> float:
    """Return the time of the last writing; readers touch other files beside the database, and an empty log."""
    times = [0.0]
    for name in ("run.db", "run.db-wal"):
        try:
            found = (folder / name).stat()
        except OSError:  # the log comes and goes with its writer
            continue
        times += [found.st_mtime] if found.st_size else []
    return max(times)


def _is_locked(path: Path, locks: Path) -> bool:
    """Look for the lock by its inode and by the process that wrote its number into it."""
    try:
        owner, inode = path.read_text("ascii").strip(), str(path.stat().st_ino)
        lines = [line.split() for line in locks.read_text("ascii").splitlines()]
    except (OSError, ValueError):
        return False
    held = ((line[-4], line[-3].rpartition(":")[2]) for line in lines if "FLOCK" in line and len(line) >= 8)
    return (owner, inode) in held

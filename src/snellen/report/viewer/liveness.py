"""A run's folder to whether somebody writes it now: told without taking its lock, which would refuse a writer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

QUIET_S = 60.0
"""A run that was written so recently is running, wherever its writer is."""
LOCKS = Path("/proc/locks")
"""Where Linux lists who holds which lock; other systems have only the time of the last writing."""


RUN_FILES = ("run.db", "run.db-wal")
"""What a run writes; readers touch other files beside the database."""


def is_written_now(folder: Path, locks: Path = LOCKS, files: Sequence[str] = RUN_FILES) -> bool:
    """Tell whether a process holds the run's lock, or has written a moment ago (from another machine or container)."""
    return is_held(folder, locks) or time.time() - _written_at(folder, files) < QUIET_S


def is_held(folder: Path, locks: Path = LOCKS) -> bool:
    """Tell whether a process of this machine holds the lock of a folder."""
    return _is_locked(folder / "run.lock", locks)


def last_written(folder: Path, files: Sequence[str] = RUN_FILES) -> str:
    """Return when the run was written last, in UTC, to the minute."""
    return datetime.fromtimestamp(_written_at(folder, files), UTC).strftime("%Y-%m-%d %H:%M UTC")


def _written_at(folder: Path, files: Sequence[str]) -> float:
    """Return the time of the last writing; an empty log counts for nothing."""
    times = [0.0]
    for name in files:
        try:
            found = (folder / name).stat()
        except OSError:  # the log comes and goes with its writer
            continue
        times += [found.st_mtime] if found.st_size else []
    return max(times)


def _is_locked(path: Path, locks: Path) -> bool:
    """Look for the lock by its inode and by the process that wrote its number into it."""
    try:
        owner, inode = "".join(path.read_text("utf-8").split("\n")[:1]), str(path.stat().st_ino)
        lines = [line.split() for line in locks.read_text("ascii").splitlines()]
    except (OSError, ValueError):
        return False
    held = ((line[-4], line[-3].rpartition(":")[2]) for line in lines if "FLOCK" in line and len(line) >= 8)
    return (owner, inode) in held

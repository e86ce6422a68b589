"""What is wished of a run that goes on, sent to it, and its answer."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from ...core.errors import EnvironmentProblem, UsageError
from ...engine.control import WISH, Wish, read_state, read_wish, write_whole

PATIENCE_S = 10.0
LOOK_S = 0.05


def steer(folder: Path, *, paused: bool | None = None, rate: float | None = None, workers: int | None = None) -> Any:
    """Send a wish to a run and return how things stand once it has heard; a run that does not go on is refused."""
    check_runs(folder)
    before = read_wish(folder)
    wish = Wish((before.number if before else 0) + 1, paused, rate, workers)
    write_whole(folder / WISH, wish)
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        state = read_state(folder)
        if state.get("number") == wish.number:
            return state
        check_runs(folder)
        time.sleep(LOOK_S)
    raise EnvironmentProblem(f"{folder} has not answered within {PATIENCE_S:g} s: is it still planning?")


def check_runs(folder: Path) -> None:
    """Refuse a folder that is no run, or a run that nobody writes now."""
    if not (folder / "run.db").exists():
        raise UsageError(f"{folder} is no run: it has no run.db")
    if owner_of(folder) is None:
        raise UsageError(f"{folder} does not go on now: start it again by its own command")


def owner_of(folder: Path) -> int | None:
    """Return the process that writes a run now, by its lock; None if nobody does."""
    try:
        file = os.open(folder / "run.lock", os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        told = os.pread(file, 32, 0).decode("ascii", "replace").strip()
        return int(told) if told.isdecimal() else 0
    finally:
        os.close(file)
    return None

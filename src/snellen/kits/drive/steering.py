"""What is wished of a run that goes on, sent to it, and its answer."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import EnvironmentProblem, UsageError
from ...engine.control import WISH, Wish, read_state, read_wish, write_whole
from ...store.part_progress import Attempt, read_attempts

PATIENCE_S, PARTS_PATIENCE_S = 10.0, 60.0
LOOK_S, PARTS_LOOK_S = 0.05, 0.5


def steer(folder: Path, *, paused: bool | None = None, rate: float | None = None, workers: int | None = None) -> Any:
    """Send a wish to a run and return how things stand once it has heard; a run that does not go on is refused."""
    parts = running_parts(folder)
    if parts:
        return steer_parts(folder, len(parts), paused=paused, rate=rate, workers=workers)
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


def running_parts(folder: Path) -> list[Attempt]:
    """Return the parts of a run that are asked now."""
    return [one for one in read_attempts(folder) if one.progress is not None and one.state == "running"]


def steer_parts(folder: Path, count: int, *, paused: bool | None, rate: float | None, workers: int | None) -> Any:
    """Send a wish to all parts that run and return how things stand with all of them together.

    A rate and a number of workers are of the run: each part gets its share of those that run now.
    """
    before = read_wish(folder)
    number = (before.number if before else 0) + 1
    share = {
        "rate": None if rate is None else rate / count,
        "workers": None if workers is None else workers // count or 1,
    }
    wished = {name: value for name, value in {"paused": paused, **share}.items() if value is not None}
    # All that was wished so far: a part that is requeued later hears only the last wish.
    write_whole(folder / WISH, msgspec.structs.replace(before or Wish(0), number=number, **wished))
    ends = time.monotonic() + PARTS_PATIENCE_S
    while time.monotonic() < ends:
        said = [one.progress.control for one in running_parts(folder) if one.progress]
        if all(one.get("number") == number for one in said):
            return _together(said, number)
        time.sleep(PARTS_LOOK_S)
    silent = sum(one.get("number") != number for one in said)
    raise EnvironmentProblem(
        f"{silent} of {len(said)} parts of {folder} have not answered within {PARTS_PATIENCE_S:g} s"
    )


def _together(said: list[dict[str, Any]], number: int) -> dict[str, Any]:
    sums = {name: sum(one.get(name) or 0 for one in said) for name in ("workers", "most_workers", "rate", "in_flight")}
    return {"number": number, "parts": len(said), "paused": all(one["paused"] for one in said), **sums}


def check_runs(folder: Path) -> None:
    """Refuse a folder that is no run, or a run that nobody writes now."""
    if owner_of(folder) is None and read_attempts(folder):
        raise UsageError(f"no part of {folder} is asked now: `snellen show {folder}` says how far it is")
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

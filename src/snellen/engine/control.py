"""A run that goes on, told from outside to pause, to go on, to send slower or with fewer workers; it says what it did.

Two files of the run's folder: `control.json` is the wish, `control-state.json` the answer. Neither outlives the run.
Of a run in parts the wish is for each of them, and stays until all are done; each answers in its progress.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ..core.errors import EnvironmentProblem

WISH, STATE = "control.json", "control-state.json"
EVERY_S, PARTS_EVERY_S = 0.2, 1.0


class Wish(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What somebody wants of a run; what is None stays as it is."""

    number: int
    """Counts the wishes of a run: its answer names the last it has heard."""
    paused: bool | None = None
    rate: float | None = None
    """Requests a second; 0: as many as go."""
    workers: int | None = None


class Adjustable(Protocol):
    """What can be told: the engine."""

    def adjust(self, wish: Wish) -> dict[str, Any]:
        """Do what is wished and return how things stand."""
        ...


@contextmanager
def listening(folder: Path, engine: Adjustable) -> Iterator[None]:
    """Do what is wished of a run during the block."""
    forget(folder)
    try:
        with overhearing(folder, engine, lambda state: write_whole(folder / STATE, state), EVERY_S):
            yield
    finally:
        forget(folder)


@contextmanager
def overhearing(
    folder: Path, engine: Adjustable, answer: Callable[[dict[str, Any]], None], every_s: float = PARTS_EVERY_S
) -> Iterator[None]:
    """Do what is wished during the block and answer each wish; a wish that is there when it begins counts."""
    task = asyncio.get_running_loop().create_task(_listen(folder, engine, answer, every_s))
    try:
        yield
    finally:
        task.cancel()


def forget(folder: Path) -> None:
    """Remove wish and answer: a run that begins does not stand still because an earlier one was told to."""
    for name in (WISH, STATE):
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)


async def _listen(folder: Path, engine: Adjustable, answer: Callable[[dict[str, Any]], None], every_s: float) -> None:
    heard = 0
    while True:
        wish = read_wish(folder)
        if wish is not None and wish.number != heard:
            heard = wish.number
            answer({"number": heard, **engine.adjust(wish)})
        await asyncio.sleep(every_s)


def read_wish(folder: Path) -> Wish | None:
    """Return the last wish, or None; one that is none is as if nobody had said it."""
    try:
        return msgspec.json.decode((folder / WISH).read_bytes(), type=Wish)
    except (OSError, msgspec.DecodeError):
        return None


def read_state(folder: Path) -> dict[str, Any]:
    """Return the run's last answer, or nothing."""
    try:
        state = json.loads((folder / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_whole(path: Path, value: Any) -> None:
    """Write a small file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(msgspec.json.encode(value))
        beside.replace(path)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None

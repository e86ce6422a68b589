"""A command in its process: asynchronous code from synchronous, few passes of the cycle collector, and signals.

Signals come to one decision each: drain, leave at once, or nothing because it was said a moment ago. Ctrl-C drains, a
second one leaves. SIGTERM, SIGUSR1 and SIGUSR2 come from schedulers: they drain, and the command ends with
`EXIT_AGAIN`: start me again. Slurm sends SIGTERM twice within milliseconds: that counts once.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from .errors import ToldToEnd

RARE = 50_000
"""Objects that outlive their makers between two collections; Python's own 700 cost a fifth of a short request."""

FAULTS = 100
"""So many failed attempts are collected together: each leaves a ring of frames, some ten kilobytes."""
SCHEDULERS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
ONCE_S = 5.0
"""A scheduler's signals within so many seconds of its first are one."""
Result = TypeVar("Result")


def collect_after_faults(count: int) -> None:
    """Collect what failed attempts left, every hundredth time: with rare collections it would stay for hours."""
    if count % FAULTS == 0:
        gc.collect(1)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect cycles rarely in the block: answered trials leave none, and every pass over those in flight costs."""
    before = gc.get_threshold()
    gc.set_threshold(max(RARE, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end and return its result; inside a running event loop, in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_a_thread(work)


def _in_a_thread(work: Coroutine[Any, Any, Result]) -> Result:
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def known() -> Result:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="snellen") as threads:
        result = threads.submit(asyncio.run, known())
        try:
            return result.result()
        except KeyboardInterrupt:  # the notebook's stop button: what is stored stays, the rest ends
            for loop, task in running:
                _cancel(loop, task)
            raise


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any] | None) -> None:
    if task is not None and not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)


class Heard:
    """What a command was told by signals so far."""

    def __init__(self) -> None:
        self._first: float | None = None

    @property
    def again(self) -> bool:
        """Tell whether a scheduler asked it to end: whoever started it starts it again."""
        return self._first is not None

    def is_repeated(self) -> bool:
        """Note a scheduler's signal; tell whether it only repeats what was said a moment ago."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
            return False
        return now - self._first < ONCE_S


_heard = Heard()


def heard_again() -> bool:
    """Tell whether a scheduler asked this command to end."""
    return _heard.again


@contextmanager
def heeding_schedulers() -> Iterator[Heard]:
    """Let a scheduler's signals end the block by ToldToEnd wherever nothing is in flight; yield what was heard."""
    global _heard  # noqa: PLW0603 - signals are the process's own: there is one of them
    before, _heard = _heard, Heard()
    if threading.current_thread() is not threading.main_thread():
        yield _heard
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if not _heard.is_repeated():
            raise ToldToEnd

    handlers = [(number, signal.signal(number, on_signal)) for number in SCHEDULERS]
    try:
        yield _heard
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)
        _heard = before


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """First signal: take nothing new and drain; a second Ctrl-C leaves at once. Nothing stored is lost either way."""
    task = asyncio.current_task()
    if threading.current_thread() is not threading.main_thread() or task is None:
        yield
        return
    loop, seen, heard = asyncio.get_running_loop(), [], _heard

    def on_signal(number: signal.Signals) -> None:
        if number in SCHEDULERS and heard.is_repeated():
            return
        seen.append(number)
        if len(seen) == 1:
            stop()
        else:
            task.cancel()

    numbers = (signal.SIGINT, *SCHEDULERS)
    before = [(number, signal.getsignal(number)) for number in numbers]
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number, handler in before:
            loop.remove_signal_handler(number)
            if callable(handler):
                signal.signal(number, handler)

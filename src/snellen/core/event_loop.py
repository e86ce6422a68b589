"""Long work in one process: asynchronous code from synchronous, and few passes of the cycle collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

RARE = 50_000
"""Objects that outlive their makers between two collections; Python's own 700 cost a fifth of a short request."""


FAULTS = 100
"""So many failed attempts are collected together: each leaves a ring of frames, some ten kilobytes."""


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


Result = TypeVar("Result")


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

"""Asynchronous work from synchronous code, also where an event loop runs already: in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

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

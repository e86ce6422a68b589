"""The mock server on a thread of its own, for tests whose own event loop comes and goes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from snellen.mock.server import MockOptions, Running, start


@contextmanager
def emulator(options: MockOptions) -> Iterator[Running]:
    """Serve until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(start(options), loop).result()
    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(_end(running), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(running: Running) -> None:
    await running.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)

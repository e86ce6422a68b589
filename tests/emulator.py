"""The mock server on a thread of its own, for tests whose own event loop comes and goes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from snellen.kits.mock.commands import mock_server
from snellen.kits.mock.library import build_options
from snellen.kits.mock.server import MockOptions, Running, start


@contextmanager
def emulator(options: MockOptions, port: int = 0, *, trivial: bool = False) -> Iterator[Running]:
    """Serve until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(start(options, port, trivial=trivial), loop).result()
    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(_end(running), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def mock_thread(arguments: Sequence[object] = ()) -> AbstractContextManager[Running]:
    """Serve what `snellen mock-server ARGUMENTS` would, without the second that its process takes to start."""
    values = mock_server.make_context("mock-server", [str(argument) for argument in arguments]).params
    port, trivial = values.pop("port"), values.pop("trivial")
    for name in ("as_json", "task", "limit"):
        del values[name]
    return emulator(build_options(values), port, trivial=trivial)


async def _end(running: Running) -> None:
    await running.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)

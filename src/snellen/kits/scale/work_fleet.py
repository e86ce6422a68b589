"""Work on many items by replicas: each item travels as its bytes, results come in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from threading import Thread

from ...core.errors import EnvironmentProblem, ModelError, SnellenError
from .driver import Replicas
from .items import WorkItem
from .leases import LostTooOften

LEASE = 4
"""Items a lease at most: a page takes as long as a reply, and there are fewer of them."""
AHEAD = 2 * LEASE
"""Items a replica that may be done or under way before their turn: so memory is bounded."""
BYTES_UNDER_WAY = 64 * 2**20
TIMES = {1: "once", 2: "twice"}


class ItemLost(EnvironmentProblem):
    """An item was lost with its replicas so often that nobody is given it any more."""


class WorkFleet:
    """Replicas that do work for a caller that waits: started with the first item, kept until `close`.

    Of each replica at most `ahead` items are under way or done before their turn.
    """

    def __init__(self, open_fleet: Callable[[], Replicas], ahead: int = AHEAD) -> None:
        self._open, self._ahead = open_fleet, ahead
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._replicas: Replicas | None = None

    def results_of(self, items: Iterable[bytes], name: Callable[[int], str] | None = None) -> Iterator[bytes]:
        """Yield the results of items in their order; `name` says which one is meant, counted from 0."""
        loop, replicas = self._started()
        under_way: deque[tuple[Future[bytes], int]] = deque()
        size, ended = 0, _Ended(items)
        try:
            for number, item in enumerate(ended):
                named = name(number) if name is not None else f"item {number + 1}"
                asked = asyncio.run_coroutine_threadsafe(_ask(replicas, WorkItem(named, item)), loop)
                under_way.append((asked, len(item)))
                size += len(item)
                while size > BYTES_UNDER_WAY or len(under_way) > self._ahead * len(replicas.replicas):
                    size -= under_way[0][1]
                    yield under_way.popleft()[0].result()  # nothing here holds it while it is taken
            while under_way:
                yield under_way.popleft()[0].result()
        finally:
            for asked, _ in under_way:
                asked.cancel()
        if ended.problem is not None:
            raise ended.problem

    def close(self) -> None:
        """End the replicas; nothing is left running."""
        loop, thread, replicas = self._loop, self._thread, self._replicas
        self._loop = self._thread = self._replicas = None
        if loop is None or thread is None:
            return
        if replicas is not None:
            asyncio.run_coroutine_threadsafe(replicas.close(), loop).result()
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> tuple[asyncio.AbstractEventLoop, Replicas]:
        """Return the loop in which the replicas live, and the replicas, once one of them can work."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=self._loop.run_forever, name="snellen work", daemon=True)
            self._thread.start()
        if self._replicas is None:
            self._replicas = asyncio.run_coroutine_threadsafe(self._opened(), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._replicas.check(), self._loop).result()
        return self._loop, self._replicas

    async def _opened(self) -> Replicas:
        return self._open()


def map_by_replicas(open_fleet: Callable[[], Replicas], items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the results of items in their order; a fleet works ahead of whoever takes them, within bounds of bytes."""
    with closing(WorkFleet(open_fleet)) as fleet:
        yield from fleet.results_of(items)


async def _end_all() -> None:
    """End what still runs in this loop, so that nothing of it outlives the loop."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


class _Ended:
    """Items until one cannot be made: that is said once all before it are done, as in one process."""

    def __init__(self, items: Iterable[bytes]) -> None:
        self._items = items
        self.problem: SnellenError | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._items
        except SnellenError as error:
            self.problem = error


async def _ask(replicas: Replicas, item: WorkItem) -> bytes:
    try:
        result: bytes = await replicas.do(item)
    except LostTooOften as error:
        times = TIMES.get(error.ended, f"{error.ended} times")
        silent = f" and silenced {error.lost - error.ended}" if error.lost > error.ended else ""
        raise ItemLost(f"{item.name} ended its process {times}{silent}: {error.why}") from None
    except ModelError as error:
        raise EnvironmentProblem(f"{item.name}: {error}") from None
    return result

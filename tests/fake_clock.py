"""A clock that only moves when told, or when everyone sleeps."""

from __future__ import annotations

import asyncio
import heapq


class FakeClock:
    """Sleeping costs no time: the earliest sleeper wakes when the event loop has nothing else to do."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._driver: asyncio.Task[None] | None = None

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, future))
        if self._driver is None or self._driver.done():
            self._driver = asyncio.create_task(self._drive())
        await future

    async def _drive(self) -> None:
        while self._sleepers:
            for _ in range(20):  # everyone who can run, runs before time moves
                await asyncio.sleep(0)
            until, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                self.now = max(self.now, until)
                future.set_result(None)

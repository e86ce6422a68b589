"""Time as a dependency: the real clock, and the seam that lets tests run without sleeping."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """What the engine needs to know of time."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never steps back."""
        ...

    def time(self) -> float:
        """Return seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


def wall_time() -> str:
    """Return this moment (UTC, ISO 8601) to the millisecond; every reply is noted with it."""
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1_000)
    return f"{_second(second)}.{millisecond:03}+00:00"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None).isoformat()


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Return `time.perf_counter()`, the finest monotonic clock."""
        return time.perf_counter()

    def time(self) -> float:
        """Return `time.time()`."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)

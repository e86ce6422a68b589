"""Time as a dependency: the real clock, and the seam that lets tests run without sleeping."""

from __future__ import annotations

import asyncio
import time
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

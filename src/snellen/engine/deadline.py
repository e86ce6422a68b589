"""Awaitables to results or TimeoutError, with one timer for all: `asyncio.timeout` sets one for each.

That is to guard against what hardly ever happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlines:
    """Cuts off what takes longer than it may."""

    def __init__(self) -> None:
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, seconds: float | None, work: Awaitable[T]) -> T:
        """Return what `work` returns, or cancel it and raise TimeoutError after so many seconds.

        A task waits for one at a time.
        """
        task = asyncio.current_task()
        if seconds is None or task is None:
            return await work
        loop = task.get_loop()
        end = self._ends[task] = loop.time() + seconds
        if self._timer is None or end < self._timer.when():
            self._wake_at(end, loop)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._late and task.cancelling() == 1:  # cancelled by us and by nobody else
                raise TimeoutError from None
            raise
        finally:
            del self._ends[task]
            if task in self._late:
                self._late.remove(task)
                task.uncancel()

    def _wake_at(self, end: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(end, self._cut_off, loop)

    def _cut_off(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for task, end in self._ends.items():
            if end <= now and task not in self._late:
                self._late.add(task)
                task.cancel()
        waiting = [end for task, end in self._ends.items() if task not in self._late]
        if waiting:
            self._wake_at(min(waiting), loop)

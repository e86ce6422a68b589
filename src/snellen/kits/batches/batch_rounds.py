"""Passes over a plan until no request waits: each stores what batches answered and parks what they did not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from ...engine.state import RunState
from .batch_queue import BatchQueue

AskOnce = Callable[[], Awaitable[RunState]]
"""One pass over the plan."""
OnSignals = Callable[[Callable[[], None]], AbstractContextManager[None]]


async def ask_in_rounds(
    queue: BatchQueue, ask_once: AskOnce, on_signals: OnSignals, *, poll_s: float, leave: bool, until: float | None
) -> RunState:
    """Run passes until all is answered, or the batches are left."""
    total: RunState | None = None
    while True:
        await queue.look()
        state = await ask_once()
        stopped = state.unfinished
        if total is None:
            total = state
        else:
            total.add_pass(state)
        if stopped and not state.over_limit:  # whoever stops it wants nothing more sent
            return _left(total, queue)
        await queue.flush()
        if stopped:
            return _left(total, queue)
        queue.settle()
        if not queue.ledger.open:
            return total
        with on_signals(queue.leave):
            if leave or not await queue.wait(poll_s, until):
                return _left(total, queue)


def _left(total: RunState, queue: BatchQueue) -> RunState:
    total.in_batches, total.unfinished = queue.ledger.waiting, True
    return total

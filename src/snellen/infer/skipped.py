"""A failed trial to failures of those that cannot be asked without it: what was planned never vanishes."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.jobs import Ask, Item
from ..core.types import Failure, FailureKind, Prediction, Request, TrialKey


async def skip_after(ask: Ask, lost: TrialKey, failure: Failure, waiting: Iterable[tuple[Item, TrialKey]]) -> None:
    """Store the trials that wait for the answer of `lost` as failed without sending them; a later run asks them."""
    reason = f"not asked: {lost.sample} before it failed ({failure.kind.value})"
    for item, key in waiting:
        await ask(item, Request(key, ()), Prediction(key, failure=Failure(FailureKind.SKIPPED, reason, attempts=0)))

"""A failed trial to failures of those that cannot be asked without it: what was planned never vanishes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.jobs import Ask, Item
from ..core.types import Failure, FailureKind, Prediction, Request, TrialKey


async def skip_after(ask: Ask, asked: Sequence[Prediction], waiting: Iterable[tuple[Item, TrialKey]]) -> None:
    """Store the trials that wait for an answer among `asked` that failed as failed, unsent; a later run asks them."""
    lost = next((prediction.key, prediction.failure) for prediction in asked if prediction.failure is not None)
    reason = f"not asked: {lost[0].sample} before it failed ({lost[1].kind.value})"
    for item, key in waiting:
        await ask(item, Request(key, ()), Prediction(key, failure=Failure(FailureKind.SKIPPED, reason, attempts=0)))

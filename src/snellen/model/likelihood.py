"""What every way of scoring candidates shares: the request for priors, and the refusal of what cannot be scored."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ..core.errors import ModelError
from ..core.types import FailureKind, Request, Usage

MINUS_INFINITY = -1e30


def ask_for_priors(request: Request) -> Request:
    """Return the request for the log-likelihoods of the same choices after the content-free prompt."""
    likelihood = msgspec.structs.replace(request.likelihood, baseline=(), with_prompt=False)
    return msgspec.structs.replace(request, messages=request.likelihood.baseline, likelihood=likelihood)


def check_choices(request: Request, token_counts: Sequence[int]) -> None:
    """Refuse a candidate without tokens: its likelihood would be 1 whatever the picture shows."""
    for choice, count in zip(request.choices, token_counts, strict=True):
        if count == 0:
            what = "has no candidates" if request.choices == ("",) else f"candidate {choice!r} has no tokens"
            raise ModelError(FailureKind.REQUEST, f"sample {request.key.sample!r}: {what}")


def byte_counts(request: Request) -> list[int]:
    """Return the length of each candidate in bytes of UTF-8."""
    return [len(choice.encode()) for choice in request.choices]


def storable(values: Sequence[float]) -> list[float]:
    """Return log-probabilities that JSON can hold: minus infinity becomes a number no model reaches; NaN is refused."""
    if any(math.isnan(value) for value in values):
        reason = "the model gave a log-probability that is not a number (try --model-arg dtype=float32)"
        raise ModelError(FailureKind.DECODE, reason)
    return [max(float(value), MINUS_INFINITY) for value in values]


def sum_usages(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the tokens of several calls together; a count that one of them did not tell is not known of all."""
    told = [one for one in usages if one is not None]
    if not told or len(told) < len(usages):
        return None
    columns = zip(*map(msgspec.structs.astuple, told), strict=True)
    return Usage(*(None if None in counts else sum(counts) for counts in columns))

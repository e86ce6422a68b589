"""The sampling parameters of one trial: the task's, a seed for each repeat, and what the sample says for itself."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ..core.types import Params, Sample


def params_of_trial(params: Params, sample: Sample, repeat: int) -> Params:
    """Return the parameters sent for one trial.

    Each repeat gets its own sampling seed when one is sent, or all repeats would be one. A sample's own limit of tokens
    wins over the task's.
    """
    own: dict[str, Any] = {}
    if repeat and params.seed is not None:
        own["seed"] = params.seed + repeat
    if "max_tokens" in sample.meta:
        own["max_tokens"] = sample.meta["max_tokens"]
    return replace(params, **own) if own else params

"""The `usage` of OpenAI-style servers to counts, wherever each of them puts the same number."""

from __future__ import annotations

from typing import Any

import msgspec

from ...core.types import Usage


class _Details(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    image_tokens: int | None = None
    multimodal_tokens: dict[str, int] = {}


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None


_NONE = _Details()


def read_usage(value: Any) -> Usage | None:
    """Return the counts of a `usage` object; None where there is none, or none that can be read."""
    if not isinstance(value, dict):
        return None
    try:
        counts = msgspec.convert(value, _Counts, strict=False)
    except msgspec.ValidationError:
        return None
    prompt, reply = counts.prompt_tokens_details or _NONE, counts.completion_tokens_details or _NONE
    totals = counts.prompt_tokens, counts.completion_tokens
    thought = _first(reply.reasoning_tokens, counts.reasoning_tokens)
    cached = _first(prompt.cached_tokens, counts.cached_tokens, counts.prompt_cache_hit_tokens)
    return Usage(*totals, thought, cached, _first(prompt.image_tokens, prompt.multimodal_tokens.get("image")))


def _first(*counts: int | None) -> int | None:
    """Return the first count that is told: servers put the same number in different places."""
    for count in counts:
        if count is not None:
            return count
    return None

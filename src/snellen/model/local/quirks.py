"""What an architecture does unlike the others, where its configuration does not say so: facts, by model type."""

from __future__ import annotations

from typing import Any

READS_PROMPT_BOTH_WAYS = frozenset(("paligemma",))
"""Prefix language models: every prompt token sees every other (token type 0), the answer's see those before (1)."""
COUNTS_FROM_ONE = frozenset(("paligemma",))
"""The first token stands at position 1."""

ANSWERS_BEFORE_THE_END = frozenset(("git",))
"""Their tokenizer closes a text with a token of its own; an answer goes on in its place, not after it."""


def reads_both_ways(model: Any) -> bool:
    """Tell whether the prompt's tokens see the ones after them: no cut and no prompt log-probability is right there."""
    return _model_type(model) in READS_PROMPT_BOTH_WAYS


def first_position(model: Any) -> int:
    """Return the position of a prompt's first token."""
    return int(_model_type(model) in COUNTS_FROM_ONE)


def drops_closing_token(model: Any) -> bool:
    """Tell whether the token that closes a prompt has to go before the answer."""
    return _model_type(model) in ANSWERS_BEFORE_THE_END


def _model_type(model: Any) -> str:
    return str(getattr(getattr(model, "config", None), "model_type", ""))

"""Log-likelihoods as lm-eval and lmms-eval write them, one pair (value, is greedy) an option, as numbers."""

from __future__ import annotations

from typing import Any

from .foreign_rows import is_nothing

_TRUTHS = (True, False, "True", "False")
_PAIR = 2


def likelihoods_in(replies: Any) -> list[tuple[float, ...]]:
    """Return the values of all options, once a repeat; nothing where these are no log-likelihoods but texts.

    `[[["-0.1", "False"]], [["-0.5", "False"]]]` (an option, a repeat, a pair), or without the level of repeats.
    """
    if not isinstance(replies, list) or not replies:
        return []
    options = [[_value(entry)] if _is_pair(entry) else _values(entry) for entry in replies]
    if any(not values or None in values for values in options):
        return []
    return [tuple(float(value) for value in repeat if value is not None) for repeat in zip(*options, strict=False)]


def _values(entry: Any) -> list[float | None]:
    return [_value(pair) if _is_pair(pair) else None for pair in entry] if isinstance(entry, list) else []


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == _PAIR and value[1] in _TRUTHS and _value(value) is not None


def _value(pair: Any) -> float | None:
    if is_nothing(pair[0]) or isinstance(pair[0], bool | list | dict):
        return None
    try:
        return float(pair[0])
    except ValueError:
        return None

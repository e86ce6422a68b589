"""Two configurations to one line that names what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SHOWN = 5
VALUE_LIMIT = 60


def describe_difference(old: Any, new: Any) -> str:
    """Return `a.b was 1, now 2; …`, the first few differences."""
    changes = list(_walk("", old, new))
    lines = [f"{path} was {_short(was)}, now {_short(now)}" for path, was, now in changes[:SHOWN]]
    more = f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return "; ".join(lines) + more


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _walk(f"{path}.{key}" if path else str(key), old.get(key), new.get(key))
    elif old != new:
        yield path, old, new


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= VALUE_LIMIT else text[: VALUE_LIMIT - 1] + "…"

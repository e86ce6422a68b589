"""`--constrain` to the fields each kind of server knows it by, and a constrained reply to the answer in it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from ...core.errors import UsageError

WISHES = ("options", "json")
MARKS = "MARKS"


@cache
def _styles() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("snellen") / "catalog" / "servers" / "constraints.toml").read_text("utf-8"))


def constraint_of(wish: str | None, style: str, provider: str) -> dict[str, Any] | None:
    """Return what tells a server the wish, its marks still open; None without a wish; refuse what it cannot be told."""
    if wish is None:
        return None
    if wish not in WISHES:
        raise UsageError(f"--constrain {wish!r} is none of {', '.join(WISHES)}")
    fields: dict[str, Any] | None = _styles().get(style, {}).get(wish)
    if fields is None:
        known = [f"--constrain {name}" for name in _styles().get(style, {})]
        offers = f"it knows {', '.join(known)}" if known else "it has no such thing that we know"
        raise UsageError(f"--constrain {wish}: {provider} cannot be told so; {offers}")
    return fields


def with_marks(value: Any, marks: Sequence[str]) -> Any:
    """Return the fields with the marks of one question's options."""
    if isinstance(value, dict):
        return {name: with_marks(part, marks) for name, part in value.items()}
    return list(marks) if value == MARKS else value


def unwrapped(text: str) -> str:
    """Return the answer in a constrained reply: of an object its `answer`, of anything else the reply itself."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    answer = value.get("answer") if isinstance(value, dict) else None
    return answer if isinstance(answer, str) else text

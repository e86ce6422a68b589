"""`--constrain` to the fields each kind of server knows it by, and a constrained reply to the answer in it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from ...core.errors import StopRun, UsageError
from ...core.text import clean_text
from ...core.types import FailureKind

WISHES = ("options", "json")
MARKS = "MARKS"
SHOWN = 40
"""Letters of a reply that an error quotes."""


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
        raise UsageError(f"--constrain {wish}: {provider} has no way to ask for it; {offers}")
    return fields


def with_marks(value: Any, marks: Sequence[str]) -> Any:
    """Return the fields with the marks of one question's options."""
    if isinstance(value, dict):
        return {name: with_marks(part, marks) for name, part in value.items()}
    return list(marks) if value == MARKS else value


def held_answer(wish: str, text: str, marks: Sequence[str], finish: str | None) -> str:
    """Return the answer in a constrained reply; stop where one shows that the server ignores the wish.

    Some servers take the fields and leave them: such a reply is a free one, and would be counted as another protocol's.
    """
    answer = unwrapped(text) if wish == "options" else text
    if _is_held(wish, answer, marks) or (finish == "length" and _may_become(wish, answer.lstrip(), marks)):
        return answer
    offered = f"one of {', '.join(marks)}" if wish == "options" else "JSON"
    said = " ".join(clean_text(answer).split())
    said = said if len(said) <= SHOWN else f"{said[: SHOWN - 1]}…"
    fix = "leave it out, or name the server's kind (vllm-server/NAME, your own card)"
    message = f"the server does not keep to --constrain {wish}: it answered {said!r}, which is not {offered}; {fix}"
    raise StopRun(FailureKind.CAPABILITY, message)


def _may_become(wish: str, cut: str, marks: Sequence[str]) -> bool:
    """Tell whether a reply that was cut is the beginning of what was wished for."""
    return cut.startswith(("{", "[")) or (wish == "options" and any(mark.startswith(cut) for mark in marks))


def _is_held(wish: str, answer: str, marks: Sequence[str]) -> bool:
    if wish == "options":
        return answer.strip() in marks
    try:
        msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return False
    return True


def unwrapped(text: str) -> str:
    """Return the answer in a constrained reply: of an object its `answer`, of anything else the reply itself."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    answer = value.get("answer") if isinstance(value, dict) else None
    return answer if isinstance(answer, str) else text

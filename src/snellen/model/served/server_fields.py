"""`--constrain` and `--reasoning` to the fields each kind of server knows, and a constrained reply to its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.config import read_shipped
from ...core.errors import StopRun, UsageError
from ...core.text import clean_text
from ...core.types import FailureKind

LEVELS = ("off", "low", "medium", "high", "on")


class Reasoning(NamedTuple):
    """What is sent for a wish."""

    fields: dict[str, Any]
    room: int
    """Tokens to allow beyond the limit of the answer."""


def reasoning_fields(wish: str, style: str, provider: str) -> Reasoning:
    """Return what to send for `off`, `low`, `medium`, `high`, `on` or a number of tokens; else refuse by name."""
    table = read_shipped("servers/reasoning.toml")
    known: dict[str, Any] = table["styles"].get(style, {})
    if wish.isdigit() and int(wish) > 0:
        if "tokens" not in known:
            raise UsageError(f"--reasoning {wish}: {provider} takes no number of tokens; {_offers(known)}")
        return Reasoning(_filled(known["tokens"], int(wish)), int(wish))
    if wish not in LEVELS:
        raise UsageError(f"--reasoning {wish!r} is none of {', '.join(LEVELS)} and no number of tokens")
    chosen = known.get(wish)
    if chosen is None and wish in table["room"] and "on" in known:
        raise UsageError(f"--reasoning {wish}: {provider} has no levels; {_offers(known)}")
    if chosen is None:
        raise UsageError(f"--reasoning {wish}: it is not known how to ask {provider} for it; {_offers(known)}")
    return Reasoning(chosen, 0 if wish == "off" else table["room"].get(wish, table["room"]["medium"]))


def _offers(known: dict[str, Any]) -> str:
    names = [f"--reasoning {name if name != 'tokens' else 'N'}" for name in known]
    return f"it knows {', '.join(names)}" if names else "-p params.extra_body.FIELD=VALUE sends any field"


def _filled(value: Any, tokens: int) -> Any:
    if isinstance(value, dict):
        return {name: _filled(part, tokens) for name, part in value.items()}
    return tokens if value == "N" else value


def merge_fields(body: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the fields put into it, tables into tables; what the body says itself has the last word."""
    merged = dict(body)
    for name, value in fields.items():
        if isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = merge_fields(merged[name], value)
        else:
            merged.setdefault(name, value)
    return merged


WISHES = ("options", "json")
MARKS = "MARKS"
SHOWN = 40
"""Letters of a reply that an error quotes."""


def constraint_of(wish: str | None, style: str, provider: str) -> dict[str, Any] | None:
    """Return what tells a server the wish, its marks still open; None without a wish; refuse what it cannot be told."""
    if wish is None:
        return None
    if wish not in WISHES:
        raise UsageError(f"--constrain {wish!r} is none of {', '.join(WISHES)}")
    wishes = read_shipped("servers/constraints.toml").get(style, {})
    fields: dict[str, Any] | None = wishes.get(wish)
    if fields is None:
        known = [f"--constrain {name}" for name in wishes]
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

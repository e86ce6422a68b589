"""`--reasoning` to the fields each kind of server knows it by, and the room it needs beyond the answer."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ...core.errors import UsageError

LEVELS = ("off", "low", "medium", "high", "on")


class Reasoning(NamedTuple):
    """What is sent for a wish."""

    fields: dict[str, Any]
    room: int
    """Tokens to allow beyond the limit of the answer."""


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((files("snellen") / "catalog" / "servers" / "reasoning.toml").read_text("utf-8"))


def reasoning_fields(wish: str, style: str, provider: str) -> Reasoning:
    """Return what to send for `off`, `low`, `medium`, `high`, `on` or a number of tokens; else refuse by name."""
    table = _table()
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

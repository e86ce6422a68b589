"""Replies that providers were seen to send, and what must come of each: data for tests and for the mock server."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec


class ExpectedOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must come of a case; what is None is not looked at."""

    kind: str | None = None
    again: bool | None = None
    stop: bool = False
    wait: float | None = None
    no_wait: bool = False
    says: str = ""
    hides: str = ""
    partial: str | None = None
    change: str | None = None
    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    host: str | None = None
    warns: str | None = None
    """What the run is warned of, in part."""
    model: str | None = None
    input: int | None = None
    output: int | None = None
    thought: int | None = None
    cached: int | None = None
    visual: int | None = None


class ProviderCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One case of catalog/servers/cases.toml."""

    id: str
    dialect: str
    expect: ExpectedOutcome
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""
    chunks: tuple[str, ...] = ()
    from_memory: bool = False


@cache
def provider_cases() -> dict[str, ProviderCase]:
    """Return all cases by their id."""
    text = (files("snellen") / "catalog" / "servers" / "cases.toml").read_text("utf-8")
    cases = msgspec.convert(tomllib.loads(text)["cases"], list[ProviderCase])
    return {case.id: case for case in cases}

"""A card and a protocol to one task; and suites: which benchmarks a report quotes together, under which number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...core.config import convert
from ...core.errors import ConfigError, UsageError, did_you_mean
from ...core.tasks import Task
from .peer_cards import peer_cards, versioned


class SuiteMember(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One benchmark of a suite."""

    task: str
    metric: str = ""
    """What of it counts; empty: what its card is quoted by."""
    scale: float = 1.0
    """What makes a share of it: 0.001 for points of 1,000."""
    weight: float = 1.0


class Suite(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A card of catalog/suites: either bare `tasks`, or `members` with a headline."""

    title: str = ""
    tasks: tuple[str, ...] = ()
    members: tuple[SuiteMember, ...] = ()
    headline: str = ""
    """The name of the mean of its members; empty: the suite has none."""
    protocol: str = ""
    """The protocol its number is quoted in; it is taken only if asked for."""
    notes: str = ""
    marks: tuple[str, ...] = ()
    from_memory: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the benchmarks it wants, whether there is a card for them or not."""
        return self.tasks or tuple(dict.fromkeys(member.task for member in self.members))


def read_suite(table: Mapping[str, Any], name: str) -> Suite:
    """Return a suite from its card; one that names nothing is refused."""
    tasks = table.get("tasks")
    bare = isinstance(tasks, list) and all(isinstance(task, str) for task in tasks)
    if not bare and not table.get("members"):
        raise ConfigError(f'suite {name!r} must name its tasks: tasks = ["…"]')
    suite = convert(dict(table), Suite, f"suite {name!r}")
    if not suite.names or (suite.tasks and suite.members):
        raise ConfigError(f'suite {name!r} must name its tasks: tasks = ["…"], or members = [{{ task = "…" }}]')
    return suite


Protocol = TypeVar("Protocol")
FIRST = "official"
"""The protocol of a card that names no other as its own."""
ABOUT, PROTOCOLS = "about", "protocols"
"""The two tables of a card that are not fields of a task."""
MERGED = ("params", "score_options")
READER = "peer"
"""The scorer that reads as a protocol's tool does."""
TOLD = ("why", "marks")
"""What a protocol says to people."""


class About(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a card tells people of its benchmark; each fact says where it was seen, or that it is from memory."""

    number: int = 0
    """Its place in the order of what is quoted most."""
    size: str = ""
    quoted: str = ""
    """Which split and which number papers quote."""
    choice: str = ""
    """What Snellen does, and why."""
    pitfalls: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    """Where the facts of the card were seen."""
    from_memory: tuple[str, ...] = ()
    """Facts nobody has checked: not to be quoted."""
    missing: tuple[str, ...] = ()
    """What of the benchmark's own rules is not here."""
    judge: str = ""
    """The judge that the benchmark's own figures were made with."""
    official: str = ""
    """Where no shape of its own is the official one: which shape that is, or why none is read."""


class ProtocolText(Struct, frozen=True, omit_defaults=True):
    """What a protocol says to people; the rest of it are fields of the task."""

    why: str = ""
    """How it asks, reads and counts, in a sentence or two."""
    fallback: str = ""
    marks: tuple[str, ...] = ()


def protocols_of(table: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the protocols of a card's table by name."""
    found: dict[str, Mapping[str, Any]] = table.get(PROTOCOLS) or {}
    return found


def about_card(table: Mapping[str, Any], name: str) -> About:
    """Return what a card tells people."""
    return convert(table.get(ABOUT) or {}, About, f"task {name!r}, about")


def protocol_texts(table: Mapping[str, Any]) -> dict[str, ProtocolText]:
    """Return what the protocols of a card say to people."""
    return {name: msgspec.convert(dict(one), ProtocolText) for name, one in protocols_of(table).items()}


def under_protocol(table: Mapping[str, Any], name: str, wanted: str | None) -> dict[str, Any]:
    """Return the table of the task under a protocol, the card's own one where none is wanted."""
    known = protocols_of(table)
    task = {key: value for key, value in table.items() if key not in (ABOUT, PROTOCOLS)}
    if not known and not wanted:
        return task
    chosen, _, version = (wanted or str(table.get("protocol") or FIRST)).partition("@")
    protocol = protocol_named(chosen, known, name)
    if version and versioned(chosen) != f"{chosen}@{version}":
        raise UsageError(f"task {name!r}: protocol {wanted!r} is not here, {versioned(chosen)} is: --protocol {chosen}")
    _check(protocol, name, chosen)
    return _as_its_tool(_overlay(task, protocol), chosen) | {"protocol": chosen}


def protocol_named(protocol: str, known: Mapping[str, Protocol], task: str) -> Protocol:
    """Return one of the protocols of a task; refuse a name that it does not have."""
    if not known:
        raise UsageError(f"task {task!r} has no protocols, so --protocol {protocol} says nothing: leave it out")
    if protocol not in known:
        has = f"it has: {', '.join(known)}"
        raise UsageError(f"task {task!r} has no protocol {protocol!r}{did_you_mean(protocol, known)}; {has}")
    return known[protocol]


def _as_its_tool(task: dict[str, Any], protocol: str) -> dict[str, Any]:
    """Return the task with what the protocol's tool takes off every reply before it reads it."""
    tool = peer_cards().get(protocol)
    if tool is None or not tool.reply or READER not in task.get("scorers", ()):
        return task
    return {**task, "score_options": {"reply": tool.reply, **task.get("score_options", {})}}


def _check(protocol: Mapping[str, Any], name: str, chosen: str) -> None:
    """Refuse a field that no task has: it would be ignored."""
    unknown = [key for key in protocol if key not in TOLD and key not in Task.__struct_fields__]
    if unknown:
        near = did_you_mean(unknown[0], Task.__struct_fields__)
        raise UsageError(f"task {name!r}, protocol {chosen!r}: unknown field {unknown[0]!r}{near}")


def _overlay(task: Mapping[str, Any], protocol: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(task)
    for key, value in protocol.items():
        if key in TOLD:
            continue
        own_loader = key == "dataset" and "loader" in value
        merged = key in MERGED or (key == "dataset" and not own_loader)
        changed[key] = {**changed.get(key, {}), **value} if merged else value
    return changed

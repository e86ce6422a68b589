"""Suites as data: which benchmarks a report or a board quotes together, and how its one number is made of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...core.config import convert
from ...core.errors import ConfigError


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

"""The tasks of a run to the headlines of the suites of which all members were measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..data.atlas.protocols import Suite, SuiteMember
from ..data.catalog import Catalog
from ..stats.intervals import Z95, sum_interval
from .aggregates.headline import headline

Tasks = Mapping[str, Mapping[str, Any]]


def suite_figures(tasks: Tasks) -> dict[str, dict[str, Any]]:
    """Return the headline of every suite of which all members that have a card were measured."""
    catalog = Catalog()
    suites = {name: catalog.suite(name) for name in catalog.names("suites")}
    known = set(catalog.names("datasets"))
    asked = {name: suite for name, suite in suites.items() if suite.headline and _is_asked(suite, tasks, known)}
    return {name: suite_figure(suite, tasks) for name, suite in asked.items()}


def _is_asked(suite: Suite, tasks: Tasks, known: set[str]) -> bool:
    with_card = [task for task in suite.names if task in known]
    return len(with_card) > 1 and all(task in tasks for task in with_card)


def suite_figure(suite: Suite, tasks: Tasks) -> dict[str, Any]:
    """Return a suite's mean with its interval; with a member lacking it has none, and only that of those present.

    Members have different questions, so their errors add up as independent ones.
    """
    found = [(member, _estimate(member, tasks)) for member in suite.members]
    present = [(member, estimate) for member, estimate in found if estimate is not None]
    lacking = [_why_lacking(member, tasks) for member, estimate in found if estimate is None]
    mean = _mean(present)
    whole = mean if not lacking else {"value": None, "stderr": None, "ci95": None}
    return {
        "name": suite.headline,
        **whole,
        "members": {_label(member): member.scale * estimate["value"] for member, estimate in present},
        "lacking": lacking,
        "mean_of_present": mean["value"],
        "protocols": sorted(set(_protocols(tasks, suite))),
        "quoted_in": suite.protocol,
    }


def _protocols(tasks: Tasks, suite: Suite) -> Iterator[str]:
    yield from (tasks[name].get("protocol", {}).get("name", "") for name in suite.names if name in tasks)


def _label(member: SuiteMember) -> str:
    return f"{member.task}:{member.metric}" if member.metric else member.task


def _estimate(member: SuiteMember, tasks: Tasks) -> Mapping[str, Any] | None:
    result = tasks.get(member.task)
    if result is None:
        return None
    estimate = result["metrics"].get(member.metric) if member.metric else headline(result)[1]
    return estimate if estimate is not None and estimate["value"] is not None else None


def _why_lacking(member: SuiteMember, tasks: Tasks) -> str:
    if member.task not in tasks:
        return f"{member.task}: not measured"
    metric = member.metric or headline(tasks[member.task])[0]
    return f"{member.task}: has no {metric or 'figure'}"


def _mean(present: list[tuple[SuiteMember, Mapping[str, Any]]]) -> dict[str, Any]:
    weights = sum(member.weight for member, _ in present)
    if not weights:
        return {"value": None, "stderr": None, "ci95": None}
    value = sum(member.weight * member.scale * estimate["value"] for member, estimate in present) / weights
    found = [(member.weight * member.scale / weights, estimate) for member, estimate in present]
    known = all(estimate["stderr"] is not None for _, estimate in found)
    stderr = math.sqrt(math.fsum((share * one["stderr"]) ** 2 for share, one in found)) if known else None
    bounded = [(share, one["value"], bounds) for share, one in found if (bounds := _bounds(one)) is not None]
    return {
        "value": value,
        "stderr": stderr,
        "ci95": list(sum_interval(bounded)) if len(bounded) == len(found) else None,
    }


def _bounds(estimate: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return a member's interval; of figures that have only an error, the normal one."""
    if estimate["ci95"] is not None:
        low, high = estimate["ci95"]
        return low, high
    value, stderr = estimate["value"], estimate["stderr"]
    return (value - Z95 * stderr, value + Z95 * stderr) if stderr else None

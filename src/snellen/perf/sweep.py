"""Objectives and a way to measure one load in, the highest load that meets them and the curve on the way out."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from ..core.errors import UsageError
from .metrics import DEFINITIONS, Objectives, choose_window, describe, is_good
from .timeline import RequestRecord, Timeline, Window, steady_window

KEEPING_UP = 0.95
"""Below this ratio of finished to sent requests a queue grows, and no latency of such a run means anything for long."""


class Point(Struct, omit_defaults=True):
    """One measured load of a sweep."""

    load: float
    """Requests per second (open loop) or concurrency (closed loop)."""
    throughput: float
    good_share: float
    keeping_up: float
    meets: bool
    latencies: dict[str, dict[str, float]] = {}
    limited: str = ""
    """Why the generator, not the server, was the bottleneck."""


class Sweep(Struct):
    """What a search found. `best` is None when not even the lowest load meets the objectives."""

    unit: str
    objectives: dict[str, float]
    attainment: float
    best: float | None
    lowest_failing: float | None
    points: list[Point]
    note: str = ""


Measure = Callable[[float], Awaitable[Point]]


def judge(timeline: Timeline, load: float, objectives: Objectives, attainment: float) -> Point:
    """Turn the timeline of one load into a point of the curve."""
    records = timeline.requests
    window = steady_window(records) or choose_window(timeline, "total")
    members = [record for record in records if window.holds(record)] or list(records)
    good = sum(is_good(record, objectives) for record in members) / len(members)
    keeping_up = _keeping_up(records, window, len(members)) if timeline.load.get("due") else 1.0
    delivered = sum(window.delivered(record) for record in records if record.ok)
    throughput = delivered / window.length if window.length > 0 else 0.0
    meets, limited = good >= attainment and keeping_up >= KEEPING_UP, str(timeline.watch.get("limited", ""))
    return Point(load, throughput, good, keeping_up, meets, _latencies(members), limited)


def _keeping_up(records: Sequence[RequestRecord], window: Window, sent: int) -> float:
    """Return finished / sent inside the window of an open loop; too few requests cannot tell."""
    finished = sum(window.start <= record.end < window.end for record in records if record.ok)
    return finished / sent if sent >= 20 else 1.0


def _latencies(members: list[RequestRecord]) -> dict[str, dict[str, float]]:
    table = {}
    for definition in DEFINITIONS:
        values = [value for record in members for value in definition.values(record)] if definition.unit == "s" else []
        if values:
            table[definition.name] = describe(values, ("Average", "Median", "P95", "P99"))
    return table


async def search(
    measure: Measure, *, first: float, ceiling: float, precision: float = 0.05, whole: bool = False
) -> list[Point]:
    """Double the load until it fails, then halve the gap (geometrically) until it is within `precision`."""
    if not 0 < first <= ceiling:
        raise UsageError(f"a sweep needs 0 < start <= ceiling, not {first:g} and {ceiling:g}")
    points: list[Point] = []
    low, high = 0.0, math.inf
    load = first
    while True:
        point = await measure(load)
        points.append(point)
        low, high = (max(low, load), high) if point.meets else (low, min(high, load))
        following = next_load(low, high, first, ceiling, precision, whole=whole)
        if following is None:
            return points
        load = following


def next_load(low: float, high: float, first: float, ceiling: float, precision: float, *, whole: bool) -> float | None:
    """Return the load to try next, or None when the search is over. `low` passed (0: none did), `high` failed."""
    if math.isinf(high):
        return min(low * 2, ceiling) if low < ceiling else None
    if low == 0:
        low = first / 64
        if high <= low * 2:
            return None
    if high / low <= 1 + precision or (whole and high - low <= 1):
        return None
    middle = math.sqrt(low * high)
    return float(min(max(round(middle), low + 1), high - 1)) if whole else middle


def conclude(points: list[Point], unit: str, objectives: Objectives, attainment: float) -> Sweep:
    """Name the highest load that met the objectives below the lowest that did not."""
    lowest_failing = min((point.load for point in points if not point.meets), default=None)
    ceiling = math.inf if lowest_failing is None else lowest_failing
    passing = [point.load for point in points if point.meets and point.load < ceiling]
    limited = next((point.limited for point in points if point.limited), "")
    note = f"the load generator was the bottleneck at some loads ({limited}): the server may do more" if limited else ""
    if passing and lowest_failing is None:
        note = note or "every load met the objectives: the server can do more than the ceiling of this sweep"
    ordered = sorted(points, key=lambda point: point.load)
    return Sweep(unit, dict(objectives), attainment, max(passing, default=None), lowest_failing, ordered, note)


def sweep_table(sweep: Sweep) -> list[dict[str, Any]]:
    """Return one plain row a point, for tables and pictures."""
    rows = []
    for point in sweep.points:
        row: dict[str, Any] = {"load": point.load, "throughput": point.throughput}
        row |= {"good": point.good_share, "meets": point.meets}
        shown = [name for name in ("TTFT", "TPOT", "E2ELScheduled") if name in point.latencies]
        rows.append(row | {f"{name} P99": point.latencies[name]["P99"] for name in shown})
    return rows

"""What a run's tables do not say: its protocol, what the protocol's own tool would print, the numbers of suites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def protocol_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on the protocol of a task, and one on what its own tool would print."""
    protocol = result.get("protocol")
    if not protocol:
        return
    yield f"protocol {protocol['name']}, quoted by {result['headline']}"
    if protocol["peer"]:
        yield protocol["peer"]["why"]


def suite_lines(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for every suite whose members were measured together."""
    for name, suite in results.get("suites", {}).items():
        if suite["value"] is None:
            present = suite["mean_of_present"]
            mean = "" if present is None else f"; the mean of those present is {present * 100:.2f}"
            yield f"suite {name}: no {suite['name']}, it lacks {'; '.join(suite['lacking'])}{mean}"
            continue
        interval = "" if suite["ci95"] is None else f" [{suite['ci95'][0] * 100:.2f}, {suite['ci95'][1] * 100:.2f}]"
        yield f"suite {name}: {suite['name']} {suite['value'] * 100:.2f}{interval}"


def moved_lines(moved: Mapping[str, Any]) -> Iterator[str]:
    """Yield, for tasks asked in two protocols, what each part of the protocol did to the number."""
    for task, one in moved.items():
        values = (one.first_value, one.second_value)
        factor = 1.0 if any(value is not None and abs(value) > 1 for value in values) else 100.0
        numbers = " → ".join(_times(factor, value) for value in values)
        yield f"{task}: protocol {one.first} → {one.second}, as their tools print it {numbers} ({one.samples} samples)"
        parts = ", ".join(f"{part} {_times(factor, change, '+')}" for part, change in one.parts.items())
        yield f"  moved by: {parts}{f'; most by the {one.most}' if one.most else ''}"


def _times(factor: float, value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value * factor:{sign}.2f}"

"""What `snellen compare` says of two protocols: which part moved the number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


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

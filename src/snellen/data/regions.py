"""The columns of a sample that name regions of its pictures, to boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import msgspec

from ..core.types import Sample

REGIONS = ("boxes", "box")
"""Columns that name where to look: no groups, however few of them there are."""


def told_boxes(sample: Sample) -> list[Any]:
    """Return the regions that the data names, each four numbers or a mapping of page and box."""
    for place in (sample.meta, sample.tags):
        for name in REGIONS:
            value = _read(place.get(name))
            if isinstance(value, list) and value:
                return [value] if is_box(value) else value
    return []


def _read(value: Any) -> Any:
    """Return a list that a column holds as text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        return msgspec.json.decode(text if text.startswith(("[", "{")) else f"[{text}]")
    except msgspec.DecodeError:
        return None


def is_box(values: Any) -> TypeGuard[Sequence[float]]:
    """Tell whether something is a list of four numbers."""
    return isinstance(values, list) and len(values) == 4 and all(isinstance(v, int | float) for v in values)

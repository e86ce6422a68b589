"""A path into a record (`messages[-1].content`) to what stands there: what `--map FIELD=PATH` can name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
_PATH = re.compile(r"(?:[^.\[\]]+|\[-?\d+\])(?:\.[^.\[\]]+|\[-?\d+\])*")


def value_at(record: Any, path: str) -> Any:
    """Return what stands at `messages[-1].content` in a record; a column of that very name goes first.

    Several paths, as `a,b`, are joined by `/`. Nothing there is None.
    """
    if isinstance(record, Mapping) and path in record:
        return record[path]
    if "," in path:
        parts = [value_at(record, part.strip()) for part in path.split(",")]
        return "/".join(map(str, parts)) if all(part is not None for part in parts) else None
    return _follow(record, path) if _PATH.fullmatch(path) else None


def _follow(value: Any, path: str) -> Any:
    for name, place in _STEP.findall(path):
        if place:
            inside = isinstance(value, list) and -len(value) <= int(place) < len(value)
            value = value[int(place)] if inside else None
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


def root_of(path: str) -> str:
    """Return the column that a path begins in."""
    found = _STEP.match(path)
    return found[1] if found and found[1] else path


def paths_among(columns: Collection[str]) -> list[str]:
    """Return those of the names that lead into a column instead of being one's name alone."""
    return [name for name in columns if "," not in name and root_of(name) != name and _PATH.fullmatch(name)]


def with_values_at(row: dict[str, Any], paths: Collection[str], named: Collection[str]) -> dict[str, Any]:
    """Return a row with what stands at the paths as columns of these names.

    A list that they lead into, and that nobody named itself, is no column then: `messages` would be a dialogue.
    """
    found = {path: value for path in paths if path not in row and (value := value_at(row, path)) is not None}
    roots = {root_of(path) for path in found}
    kept = {
        name: value for name, value in row.items() if name not in roots or name in named or not isinstance(value, list)
    }
    return kept | found

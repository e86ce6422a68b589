"""Whether a configuration only asks more than a stored one: more inferences or further variants of the same trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROWING = ("repeats", "variants")


def growth(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return in words what is asked beyond the stored configuration, or nothing if more than that differs.

    What was asked stays valid: a trial hangs on its own sample, variant and repeat, never on how many others there are.
    """
    before, after = stored.get("tasks"), wanted.get("tasks")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or before.keys() != after.keys():
        return []
    if {**stored, "tasks": None} != {**wanted, "tasks": None}:
        return []
    grown: list[str] = []
    for name in before:
        words = _of_task(before[name], after[name])
        if words is None:
            return []
        grown += [f"{name}: {word}" for word in words]
    return grown


def _of_task(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str] | None:
    """Return what one task asks more, nothing if it asks the same, None if it is another task."""
    rest = [{key: value for key, value in task.items() if key not in GROWING} for task in (before, after)]
    fewer = after["repeats"] < before["repeats"] or not set(before["variants"]) <= set(after["variants"])
    shared = bool((after.get("infer_options") or {}).get("majority"))  # then a round hangs on all others' answers
    if rest[0] != rest[1] or fewer or shared:
        return None
    words = []
    if after["repeats"] > before["repeats"]:
        words.append(f"{before['repeats']} → {after['repeats']} inferences")
    if len(after["variants"]) > len(before["variants"]):
        words.append(f"{len(before['variants'])} → {len(after['variants'])} variants")
    return words

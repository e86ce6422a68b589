"""Whether a configuration only asks more than a stored one: more inferences, variants or rows of the same trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

GROWING = ("repeats", "variants", "data")

Appended = Callable[[str], str]
"""A task's name to what was appended to its data, in words: `8 → 10 rows`; nothing if its first rows differ."""


def growth(stored: Mapping[str, Any], wanted: Mapping[str, Any], appended: Appended = lambda _: "") -> list[str]:
    """Return in words what is asked beyond the stored configuration, or nothing if more than that differs.

    What was asked stays valid: a trial hangs on its own sample, variant and repeat, never on how many others there are.
    """
    before, after = stored.get("tasks"), wanted.get("tasks")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or before.keys() != after.keys():
        return []
    limits = stored.get("limit"), wanted.get("limit")
    without = {"tasks": None, "limit": None}  # a limit only says how many rows there are: the rows are compared
    if {**stored, **without} != {**wanted, **without}:
        return []
    grown: list[str] = []
    for name in before:
        words = _of_task(name, before[name], after[name], appended)
        if words is None:
            return []
        grown += [f"{name}: {word}" for word in words]
    return grown or ([f"limit {limits[0]} → {limits[1]}"] if limits[0] != limits[1] else [])


def _of_task(name: str, before: Mapping[str, Any], after: Mapping[str, Any], appended: Appended) -> list[str] | None:
    """Return what one task asks more, nothing if it asks the same, None if it is another task."""
    if "variants" not in after or "variants" not in before:  # predictions made elsewhere: nothing is asked
        return None
    rest = [{key: value for key, value in task.items() if key not in GROWING} for task in (before, after)]
    if rest[0] != rest[1] or not _keeps_trials(before, after):
        return None
    trials = _more_trials(before, after)
    if before.get("data") == after.get("data"):
        return trials
    rows = "" if _shows_own_rows(after) else appended(name)
    return [rows, *trials] if rows else None


def _keeps_trials(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether every inference and variant that was asked is still asked, and asked the same."""
    fewer = after["repeats"] < before["repeats"] or not set(before["variants"]) <= set(after["variants"])
    shared = bool((after.get("infer_options") or {}).get("majority"))  # then a round hangs on all others' answers
    return not fewer and not (shared and _more_trials(before, after))


def _more_trials(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    words = []
    if after["repeats"] > before["repeats"]:
        words.append(f"{before['repeats']} → {after['repeats']} inferences")
    if len(after["variants"]) > len(before["variants"]):
        words.append(f"{len(before['variants'])} → {len(after['variants'])} variants")
    return words


def _shows_own_rows(task: Mapping[str, Any]) -> bool:
    """Tell whether examples are drawn from the rows themselves: then more rows change what was shown before."""
    prompt = task.get("prompt")
    prompts = [prompt, *prompt.values()] if isinstance(prompt, Mapping) else []
    shots = [one.get("shots") for one in prompts if isinstance(one, Mapping)]
    return any(one.get("retriever", "zero") != "zero" and not one.get("pool") for one in shots if one)

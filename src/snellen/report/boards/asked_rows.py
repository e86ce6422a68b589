"""Which rows a figure rests on: figures of other rows, or of some that happened to be asked first, are no rivals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.tasks import RunHeader
from ...core.text import plural

ALL = "all asked"


def rows_asked(header: RunHeader, results: Mapping[str, Any], task: str) -> tuple[str, str]:
    """Return which rows a task of a run planned, and whether it asked them; an imported run may not say."""
    counted = header.counted.get(task)
    told = header.config.get("tasks", {})
    data = told.get(task, {}).get("data", "") if isinstance(told, Mapping) else ""
    rows = ", ".join(
        [*([plural(counted.samples, "question")] if counted else []), *([f"rows {data[:8]}"] if data else [])]
    )
    return rows or "rows unknown", _how_far(results.get("status", {}), task)


def _how_far(status: Mapping[str, Any], task: str) -> str:
    """Say how much of a run that is not over was asked; one that stopped when its interval was narrow is over."""
    waiting = status.get("not_yet_asked", {}).get(task, 0)
    until_ci = status.get("until_ci")
    if not waiting or status.get("complete") or (until_ci and until_ci["stopped"]):
        return ALL
    planned = status["planned"][task]
    return f"unfinished: {planned - waiting:,} of {planned:,} asked"

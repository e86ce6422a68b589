"""A run folder to what is left of it, and a damaged one to a sound one."""

from __future__ import annotations

from pathlib import Path

from ..store.damage import Health, Repaired
from ..store.damage import look_at_run as look_at_store
from ..store.damage import repair_run as repair_store


def look_at_run(folder: str | Path) -> Health:
    """Return whether a run is sound, and how many of its rows can be read; nothing is changed."""
    return look_at_store(Path(folder))


def repair_run(folder: str | Path) -> Repaired:
    """Save every readable row of a damaged run into a new run.db; the same `snellen run` then asks what was lost."""
    return repair_store(Path(folder))

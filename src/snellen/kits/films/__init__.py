"""Drawn films: a seed to a story with one right answer."""

from __future__ import annotations

from ...core.registry import Registry


def register(registry: Registry) -> None:
    """Add the loader of drawn films, and the threshold of the level they are drawn at."""
    registry.add("loader", "film", "snellen.kits.films.loader:load")
    registry.add("aggregate", "threshold", "snellen.kits.films.level_threshold:threshold_of_level")

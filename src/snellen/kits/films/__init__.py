"""Drawn films: a seed to a story with one right answer."""

from __future__ import annotations

from ...core.registry import Registry


def register(registry: Registry) -> None:
    """Add the loader of drawn films."""
    registry.add("loader", "film", "snellen.kits.films.loader:load")

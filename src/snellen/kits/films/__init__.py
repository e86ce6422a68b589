"""Drawn films: a seed to a story with one right answer, and whether what answers it was in the frames shown."""

from __future__ import annotations

from ...core.registry import Registry


def register(registry: Registry) -> None:
    """Add the loader of drawn films, and the scorer of what a policy of frames shows."""
    registry.add("loader", "film", "snellen.kits.films.loader:load")
    registry.add("scorer", "needle-shown", "snellen.kits.films.shown_frames:score_shown")

"""Whether a test was seen before, and what could have been found."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add the command `contaminated`."""
    here = "snellen.kits.arms"
    words = "Say whether a test was seen before, and what could have been found."
    registry.add("command", "contaminated", Command(f"{here}.commands:contaminated", words, "Measure"))

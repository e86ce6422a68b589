"""Another harness's number beside ours: every reply where the two part, and in whose favour."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add the command `second-opinion`."""
    words = "Read another harness's predictions again: its number, ours, and where they differ."
    target = "snellen.kits.bridges.commands:second_opinion_command"
    registry.add("command", "second-opinion", Command(target, words, "Read again"))

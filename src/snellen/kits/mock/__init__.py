"""An OpenAI-compatible server with simulated readers and scripted faults, for tests and for trying things out."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add the command `mock-server`."""
    words = "Serve simulated readers and scripted faults, OpenAI-compatible."
    registry.add("command", "mock-server", Command("snellen.kits.mock.commands:mock_server", words, "Upkeep"))

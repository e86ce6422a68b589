"""Requests that wait in the batches of a provider: files sent, looked at, collected, and asked in rounds."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add asking by batches, and the command `batch`."""
    registry.add("asking", "batch", "snellen.kits.batches.batch_queue")
    words = "Look at the batches of a run, or cancel them."
    registry.add("command", "batch", Command("snellen.kits.batches.commands:batch", words, "Upkeep"))

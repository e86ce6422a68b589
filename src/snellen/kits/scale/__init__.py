"""Requests to replicas that hold a model: leases to processes of this machine or to actors of a Ray cluster."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add the executors `processes` and `ray`, and the command `cluster`."""
    registry.add("executor", "processes", "snellen.kits.scale.executor:FLEET")
    registry.add("executor", "ray", "snellen.kits.scale.executor:FLEET")
    words = "Look at a Ray cluster before a run does: nodes, versions, model."
    registry.add("command", "cluster", Command("snellen.kits.scale.commands:cluster", words, "Upkeep"))

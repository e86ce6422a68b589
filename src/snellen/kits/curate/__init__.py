"""Coarse annotations to an audited dataset: draft, gates, review, publish."""

from __future__ import annotations

from ...core.registry import Command, Registry

NEEDS = ("cure",)


def register(registry: Registry) -> None:
    """Add the command `curate`."""
    words = "Build a dataset with an LLM and people: draft, gates, review, publish."
    registry.add("command", "curate", Command("snellen.kits.curate.commands:curate", words, "Workshop"))

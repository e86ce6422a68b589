"""Chains of reasoning to a tuned model: data, training by TRL, preferences, what was gained and what leaked."""

from __future__ import annotations

from ...core.registry import Command, Registry

NEEDS = ("cure",)


def register(registry: Registry) -> None:
    """Add the command `train`, and the scorer of rationales."""
    words = "Tune a model's rationales, and measure what that gained."
    registry.add("command", "train", Command("snellen.kits.train.commands:train", words, "Workshop"))
    registry.add("scorer", "rationale", "snellen.kits.train.rationale_facts:score")

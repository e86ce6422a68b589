"""Chains of reasoning to a tuned model: data, training by TRL, preferences, what was gained and what leaked."""

from __future__ import annotations

from ...core.registry import Command, Page, Registry

NEEDS = ("cure",)


def register(registry: Registry) -> None:
    """Add the command `train`, the scorer of rationales, and the pages of trainings, which are listed beside runs."""
    here = "snellen.kits.train"
    words = "Tune a model's rationales, and measure what that gained."
    registry.add("command", "train", Command(f"{here}.commands:train", words, "Workshop"))
    registry.add("scorer", "rationale", f"{here}.rationale_facts:score")
    pages = f"{here}.training_page"
    look = Page(f"{pages}:training", known_by="training.json", listed=f"{pages}:listed")
    registry.add("page", "/training/{key}", look)
    registry.add("page", "/training/{key}/state", Page(f"{pages}:state"))
    registry.add("page", "/training/{key}/metrics", Page(f"{pages}:metrics"))

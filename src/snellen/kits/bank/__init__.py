"""Many models' results by question: fewer questions, a gate for releases, gold answers with a history."""

from __future__ import annotations

from ...core.registry import Command, Page, Registry

NEEDS = ("curate",)
"""The review desk."""


def register(registry: Registry) -> None:
    """Add the commands `bank`, `gate`, `audit` and `data diff`, their pages, what ends a run by a bank, other golds."""
    here = "snellen.kits.bank"
    words = {
        "bank": "Build and check a bank of many models' results: fewer questions for the same interval.",
        "gate": "Is it still the same model? Ask until that is settled; exit 0 same, 1 worse, 4 not settled.",
        "audit": "Rank gold answers by how doubtful they are, review them, keep the errata.",
    }
    for name, text in words.items():
        registry.add("command", name, Command(f"{here}.commands:{name}", text, "Measure"))
    diff = "Say what changed between two versions of a benchmark: rows, golds, options, words, pictures."
    registry.add("command", "data diff", Command(f"{here}.commands:diff", diff, "Data and models"))
    registry.add("stop", "bank", f"{here}.bank_limit")
    registry.add("score-file", "errata", f"{here}.golds:score_range")
    registry.add("page", "/banks", Page(f"{here}.pages:banks", "Banks", "bar"))
    registry.add("page", "/run/{key}/gate", Page(f"{here}.pages:gate", "Gate", "run", when=f"{here}.pages:has_gate"))
    registry.add(
        "page", "/run/{key}/audit", Page(f"{here}.pages:audit", "Audit", "run", when=f"{here}.pages:has_audit")
    )

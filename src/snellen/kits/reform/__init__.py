"""ReForm-Eval: its sixty-one datasets made from raw annotations, its formulations, and runs as its own files."""

from __future__ import annotations

from ...core.registry import Command, Registry

NEEDS = ("bridges",)
"""The rows of predictions that were made elsewhere."""

FORMULATIONS = ("SingleChoice", "Generation", "OCROpenEnded", "KIEOpenEnded", "MultiInference", "Consistency")
"""What kinds of files `snellen score FILE --formulation` reads; the last two are of FlagEvalMM and CURE."""


def register(registry: Registry) -> None:
    """Add the loader, items, formulations with scorer and figures, the form of files, and two commands of `data`."""
    here = "snellen.kits.reform"
    registry.add("loader", "reform", f"{here}.card_loader:LOADER")
    registry.add("items", "reform", f"{here}.items")
    for name in FORMULATIONS:
        registry.add("formulation", name, f"{here}.formulations:open_formulation")
    registry.add("scorer", "annotated", f"{here}.flageval_rules:score")
    registry.add("aggregate", "reform", f"{here}.figures:reform_figures")
    registry.add("export", "reform", f"{here}.run_files:write")
    for name, words in {
        "data build": "Re-formulate a dataset into a portable bundle, and check it.",
        "data export": "Write a dataset's prompts, options and labels for a model outside.",
    }.items():
        registry.add("command", name, Command(f"{here}.commands:{name.split()[1]}", words, "Data and models"))

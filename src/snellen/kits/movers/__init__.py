"""Command lines and files of other systems, taken as they are: run as ours, or written as a task file."""

from __future__ import annotations

from ...core.registry import Command, Registry

NEEDS = ("reform",)


def register(registry: Registry) -> None:
    """Add `reform-eval`, `flagevalmm`, `aisbench` and `migrate`."""
    here = "snellen.kits.movers.commands"
    words = {
        "reform-eval": "Run a command line of ReForm-Eval's run_eval.py, and print ours.",
        "flagevalmm": "Run a command line of FlagEvalMM, and print ours.",
        "aisbench": "Run a command line of AISBench, and print ours.",
        "migrate": "Write a task file from a task or dataset file of another system; nothing in it is run.",
    }
    for name, text in words.items():
        registry.add("command", name, Command(f"{here}:{name.replace('-', '_')}", text, "Coming from elsewhere"))

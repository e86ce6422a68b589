"""Runs in parts on clusters: scripts for Slurm and Kubernetes, the joining of parts, and checkpoints as they appear."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add the commands `submit`, `merge` and `follow`."""
    place = "snellen.kits.arrays"
    submit = "Write a Slurm array or a Kubernetes job of a run in parts, and submit it."
    merge = "Join the parts of a run (--shard) to the run that one process leaves."
    registry.add("command", "submit", Command(f"{place}.submit_command:submit", submit, "Measure"))
    registry.add("command", "merge", Command(f"{place}.merge_command:merge", merge, "Measure"))

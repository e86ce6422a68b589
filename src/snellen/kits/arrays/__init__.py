"""Runs in parts on clusters: scripts for Slurm and Kubernetes, the joining of parts, and checkpoints as they appear."""

from __future__ import annotations

from ...core.registry import Command, Page, Registry


def register(registry: Registry) -> None:
    """Add asking in parts, the commands `submit`, `merge` and `follow`, and the page of curves."""
    place = "snellen.kits.arrays"
    registry.add("asking", "parts", f"{place}.parts")
    submit = "Write a Slurm array or a Kubernetes job of a run in parts, and submit it."
    merge = "Join the parts of a run (--shard) to the run that one process leaves."
    registry.add("command", "submit", Command(f"{place}.commands:submit", submit, "Measure"))
    follow = "Measure each new checkpoint of a training once, and draw its learning curve."
    registry.add("command", "follow", Command(f"{place}.commands:follow", follow, "Measure"))
    registry.add("page", "/curves", Page(f"{place}.curve:curves_page", "Curves", "bar"))
    registry.add("command", "merge", Command(f"{place}.commands:merge", merge, "Measure"))

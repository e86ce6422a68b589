"""Snellen driven by programs: jobs over HTTP, tools over MCP, a run that goes on, and how to use it all well."""

from __future__ import annotations

from ...core.registry import Command, Registry

HEADING = "Upkeep"


def register(registry: Registry) -> None:
    """Add the commands `serve`, `mcp`, `ctl` and `skill`."""
    here = "snellen.kits.drive.commands"
    for name, words in {
        "serve": "Take jobs over HTTP on this machine: plan, run within a limit, status, results, cancel.",
        "mcp": "Be a tool server for coding assistants over stdio; read-only unless --allow-run.",
        "ctl": "Pause, resume or slow down a run that goes on.",
        "skill": "Print or install the skill file: how an assistant uses Snellen well.",
    }.items():
        registry.add("command", name, Command(f"{here}:{name}", words, HEADING))

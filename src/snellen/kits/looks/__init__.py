"""Looking again: questions whose model may call tools, and what that was worth."""

from __future__ import annotations

from ...core.registry import Part, Registry


def register(registry: Registry) -> None:
    """Add the inferencer `look`, the settings that ask with it, and what is said of tasks that it asked."""
    here = "snellen.kits.looks"
    registry.add("inferencer", "look", f"{here}.inferencer:LOOK")
    registry.add("rewrite", "look", f"{here}.planning:with_tools")
    part = Part(
        "look",
        describe=f"{here}.figures:describe",
        tables=f"{here}.part:look_tables",
        section=f"{here}.part:looks_section",
        filters=f"{here}.figures:look_filters",
        trial=f"{here}.trial_page:looks_part",
        regions=f"{here}.trial_page:looked_at",
        compare=f"{here}.pairs:compare_looks",
        compared=f"{here}.part:compared_sheet",
        way=f"{here}.part:way",
        turns=f"{here}.planning:growth",
    )
    registry.add("part", "looks", part)

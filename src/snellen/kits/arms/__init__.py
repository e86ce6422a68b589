"""What the picture is worth: questions asked with and without it; and whether a test was seen before."""

from __future__ import annotations

from ...core.registry import Command, Part, Registry


def register(registry: Registry) -> None:
    """Add the arms of a run, what they say, and the command `contaminated`."""
    here = "snellen.kits.arms"
    part = Part(
        axes=("control", "tempo", "frames"),
        check=f"{here}.planning:check_rows",
        describe=f"{here}.figures:describe_arms",
        files=f"{here}.part:write_arms",
        tables=f"{here}.part:arms_tables",
        section=f"{here}.part:arms_section",
        filters=f"{here}.figures:picture_filters",
    )
    registry.add("rewrite", "arms", f"{here}.planning:with_arms")
    registry.add("part", "arms", part)
    words = "Say whether a test was seen before, and what could have been found."
    registry.add("command", "contaminated", Command(f"{here}.commands:contaminated", words, "Measure"))

"""Rules for parsed pages held against the laws they should obey, and a page that shows what was read."""

from __future__ import annotations

from ...core.registry import Command, Page, Registry

NEEDS = ("pages",)


def register(registry: Registry) -> None:
    """Add the command `scorer-audit`, the loader of drawn pages and the page of what was read."""
    here = "snellen.kits.parsing"
    words = "Say which laws a rule for parsed pages breaks, each with the smallest example."
    registry.add("command", "scorer-audit", Command(f"{here}.commands:scorer_audit", words, "Read again"))
    registry.add("loader", "drawn-pages", f"{here}.drawn_pages:load")
    look = Page(f"{here}.parsed_page:parsed", "Pages read", "run", when=f"{here}.parsed_page:has_pages")
    registry.add("page", "/run/{key}/parsed", look)

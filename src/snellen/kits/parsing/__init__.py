"""Pages turned into text: replies read into blocks and measured by our rule and by those of benchmarks.

Beside the scorers: laws that such rules should obey, drawn pages, and the page that shows what was read.
"""

from __future__ import annotations

from ...core.registry import Command, Page, Registry

NEEDS = ("pages",)


def register(registry: Registry) -> None:
    """Add the scorers and loaders of parsed pages, the command `scorer-audit` and the page of what was read."""
    here = "snellen.kits.parsing"
    registry.add("scorer", "parse", f"{here}.scorers:score")
    registry.add("scorer", "parse_official", f"{here}.scorers:score_official")
    registry.add("aggregate", "olmocr", f"{here}.scorers:olmocr_figures")
    words = "Say which laws a rule for parsed pages breaks, each with the smallest example."
    registry.add("command", "scorer-audit", Command(f"{here}.commands:scorer_audit", words, "Read again"))
    registry.add("loader", "page-bench", f"{here}.page_bench:load")
    registry.add("loader", "drawn-pages", f"{here}.drawn_pages:load")
    look = Page(f"{here}.parsed_page:parsed", "Pages read", "run", when=f"{here}.parsed_page:has_pages")
    registry.add("page", "/run/{key}/parsed", look)

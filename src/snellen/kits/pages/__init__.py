"""Long documents as page images: rendered, degraded, with needles."""

from __future__ import annotations

from ...core.registry import Command, Registry


def register(registry: Registry) -> None:
    """Add loaders, how documents are asked, what is said of them, needles, degradations, exports, a look at fonts, and
    the commands `docs`, `mc` and `niah`."""
    here = "snellen.kits.pages"
    registry.add("loader", "longbench-v2", f"{here}.loader:load_choice")
    registry.add("loader", "niah", f"{here}.loader:load_needles")
    registry.add("inferencer", "document", f"{here}.document:DOCUMENT")
    registry.add("scorer", "needle", f"{here}.needle_scorer:score")
    registry.add("scorer", "needle-case", f"{here}.needle_scorer:score_case")
    registry.add("scorer", "needle-shown", f"{here}.needle_scorer:score_shown")
    for name in ("compensated", "ladder"):
        registry.add("aggregate", name, f"{here}.document_ladder:{name}")
    registry.add("aggregate", "variants", f"{here}.document_ladder:compare_variants")
    registry.add("aggregate", "page-cost", f"{here}.document_ladder:page_cost")
    registry.add("edit", "perturb", f"{here}.perturb")
    registry.add("export", "mc", f"{here}.script_files:write_choices")
    registry.add("export", "niah", f"{here}.script_files:write_needles")
    registry.add("check", "fonts", f"{here}.font_check:look_at_fonts")
    words = "Render texts as pages, degrade pages, plant needles."
    registry.add("command", "docs", Command(f"{here}.docs_command:docs", words, "Workshop"))
    words = "Multiple choice over page images, compatible with the LongBench scripts."
    registry.add("command", "mc", Command(f"{here}.mc_command:mc", words, "Workshop"))
    words = "Needle questions over page images, compatible with the NIAH scripts."
    registry.add("command", "niah", Command(f"{here}.mc_command:niah", words, "Workshop"))

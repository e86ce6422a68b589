"""Writes docs/why: a page for each card of a published benchmark, from the card alone. `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snellen.api.card_words import describe_card
from snellen.data.catalog import Catalog

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "why"
TIER_1 = 20
"""The benchmarks that are quoted most have these numbers."""
HEAD = """# Why is my number different?

One page a benchmark: its protocols with their prompts, what other tools do, where numbers part, what Snellen does.
Written from the cards by `tools/benchmark_pages.py`; protocols stand in [Published benchmarks](../published.md).

| benchmark | card | quoted | official files |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    catalog = Catalog()
    cards = {name: catalog.task_table(name) for name in catalog.names("datasets")}
    videos = catalog.expand("video-quoted")
    numbers = {name: (card.get("about") or {}).get("number", 0) for name, card in cards.items()}
    first = sorted((name for name in cards if 1 <= numbers[name] <= TIER_1), key=lambda name: (numbers[name], name))
    order = [*first, *videos]
    rows = [
        f"| [{cards[name]['title']}]({name}.md) | `{name}` | {cards[name]['about'].get('quoted', '')} "
        f"| {official_files(cards[name])} |\n"
        for name in order
    ]
    return {"index.md": HEAD + "".join(rows)} | {f"{name}.md": describe_card(name) for name in order}


def official_files(card: Mapping[str, Any]) -> str:
    """Return the files of the authors that a card reads, or why it reads none of its own."""
    source = (card["dataset"].get("sources") or {}).get("official")
    if source is None:
        return str(card["about"]["official"])
    templates = [source["templates"]["file"]] if "templates" in source else []
    files = ", ".join(f"`{file}`" for file in (*source["files"], *source.get("beside", ()), *templates))
    return f"{files}: recognised and refused" if "refuse" in source else files


def differing(wanted: dict[str, str]) -> list[str]:
    """Return the pages that are not as the cards say, and those no card has any more."""
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


if __name__ == "__main__":
    made = pages()
    changed = differing(made)
    if "--check" in sys.argv:
        if changed:
            raise SystemExit(
                f"docs/why is not as the cards say: {', '.join(changed)}; run python tools/benchmark_pages.py"
            )
    else:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in changed:
            if name in made:
                (FOLDER / name).write_text(made[name], encoding="utf-8")
            else:
                (FOLDER / name).unlink()

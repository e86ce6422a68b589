"""Writes the table of providers into docs/models.md from their cards. `--check` only compares."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "models.md"
MARK = "<!-- providers: written by tools/provider_table.py -->\n"
HEAD = "| provider | who | key | reasoning | pictures | from memory |\n|---|---|---|---|---|---|\n"


def row(path: Path) -> str:
    """Return the line of one card."""
    card = tomllib.loads(path.read_text(encoding="utf-8"))
    images = card.get("images", {})
    limits = [f"≤ {images['max_side']} px"] if "max_side" in images else []
    limits += [f"≤ {images['max_bytes'] / 1e6:g} MB"] if "max_bytes" in images else []
    keys = " or ".join(f"`{name}`" for name in card["key_env"]) or "–"
    memory = ", ".join(card.get("from_memory", [])) or "–"
    cells = [
        f"`{path.stem}/{card['example']}`",
        card["title"],
        keys,
        card.get("reasoning", "–"),
        ", ".join(limits) or "–",
        memory,
    ]
    return "| " + " | ".join(cells) + " |\n"


def page() -> str:
    """Return the page with its table."""
    cards = sorted((ROOT / "src" / "snellen" / "catalog" / "providers").glob("*.toml"))
    return PAGE.read_text(encoding="utf-8").partition(MARK)[0] + MARK + "\n" + HEAD + "".join(map(row, cards))


if __name__ == "__main__":
    wanted = page()
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == wanted else "docs/models.md: run tools/provider_table.py")
    PAGE.write_text(wanted, encoding="utf-8")

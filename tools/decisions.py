"""Writes docs/adr/index.md from the decisions beside it: the title of each page. `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "adr"
HEAD = """# Decisions

What was decided where others would ask why, with what was measured, by subject. A page says what holds now; how it
came about is in the history of the repository. This list is written by `make docs`.

"""


def line(page: Path) -> str:
    """Return the line of one page; a page without a title is an error, named."""
    title = page.read_text(encoding="utf-8").partition("\n")[0]
    if not title.startswith("# "):
        raise SystemExit(f"{page.name}: the first line must be '# Title'")
    return f"- [{title[2:].strip()}]({page.name})\n"


def index() -> str:
    """Return the whole index page."""
    return HEAD + "".join(sorted(line(page) for page in FOLDER.glob("*.md") if page.name != "index.md"))


if __name__ == "__main__":
    target = FOLDER / "index.md"
    if "--check" not in sys.argv:
        target.write_text(index(), encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != index():
        raise SystemExit("docs/adr/index.md is out of date: run `make docs`")

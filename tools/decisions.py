"""Writes docs/adr/index.md from the decisions beside it: number, title, status. `--check` only compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "adr"
TITLE = re.compile(r"^# (?:ADR )?0*(\d+)[.:]? +(.+)$")
STATUS = re.compile(r"^\*\*Status\.\*\* *(.+?)\.?$", re.MULTILINE)
HEAD = """# Decisions

One page a decision: what it was about, what was measured, what was decided, what it costs. A decision without a
status line is accepted. One that no longer holds stays, and says so on a line of its own below its title
(`**Status.** superseded by 0071`). This table is written by `make docs`.

| | decision | status |
|---:|---|---|
"""


def row(page: Path) -> str:
    """Return the table row of one decision; a page without a proper title is an error, named."""
    text = page.read_text(encoding="utf-8")
    match = TITLE.match(text.splitlines()[0])
    if match is None or int(match[1]) != int(page.name[:4]):
        raise SystemExit(f"{page.name}: the first line must be '# NUMBER. Title' with the number of its file")
    status = STATUS.search(text)
    return f"| {match[1]} | [{match[2]}]({page.name}) | {status[1] if status else 'accepted'} |\n"


def index() -> str:
    """Return the whole index page."""
    return HEAD + "".join(row(page) for page in sorted(FOLDER.glob("[0-9]*.md")))


if __name__ == "__main__":
    target = FOLDER / "index.md"
    if "--check" not in sys.argv:
        target.write_text(index(), encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != index():
        raise SystemExit("docs/adr/index.md is out of date: run `make docs`")

"""Figures of long tests to the tables of docs/reliability.md: written by the command that measured them, with date and commit.

`make crash`, `make fault` and `make soak` set SNELLEN_FIGURES to the page; without it nothing is written.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = "| what was done | figure | date | commit |\n|---|---|---|---|\n"


def note_figure(command: str, what: str, figure: str) -> None:
    """Put one row into the table of `make COMMAND`, in the place of its former figure."""
    page = os.environ.get("SNELLEN_FIGURES")
    if page:
        path = Path(page)
        path.write_text(with_row(path.read_text(), command, what, f"| {what} | {figure} | {today()} | {commit()} |"))


def with_row(page: str, command: str, what: str, row: str) -> str:
    """Return the page with the row between the marks of a command; rows keep their order, a new one comes last."""
    begin, end = f"<!-- figures of make {command} -->\n", f"<!-- end of make {command} -->"
    before, found, rest = page.partition(begin)
    table, closed, after = rest.partition(end)
    assert found and closed, f"docs/reliability.md has no table of make {command}"
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()[2:] if line.startswith("|")}
    rows[what] = row
    return before + begin + HEAD + "".join(f"{line}\n" for line in rows.values()) + end + after


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


@cache
def commit() -> str:
    """Return the commit that was measured (SNELLEN_COMMIT for an exported tree); + tells of sources not in it."""
    if told := os.environ.get("SNELLEN_COMMIT"):
        return told
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "status", "--porcelain", "--", "src"], capture_output=True, text=True, check=False)
    return (name.stdout.strip() or "–") + ("+" if changed.stdout.strip() else "")


if os.environ.get("SNELLEN_FIGURES"):
    commit()  # what is imported now is what will be measured, however long that takes

"""Commands parse, call the library and print: they reach for nothing to the left of api but core and what prints."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CLI = Path(__file__).resolve().parents[3] / "src/snellen/cli"
MODULES = [
    "docs.py",
    "mc.py",
    "curate.py",
    "data.py",
    "options.py",
    *(f"perf/{name}.py" for name in ("command", "output", "settings")),
]
ALLOWED = ("api", "core", "report.terminal")


def imported_rooms(file: Path) -> set[str]:
    depth = len(file.relative_to(CLI).parts)
    nodes = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    return {node.module or "" for node in nodes if node.level == depth + 1}


@pytest.mark.parametrize("name", MODULES)
def test_a_command_imports_only_the_library_and_what_prints(name: str) -> None:
    foreign = {room for room in imported_rooms(CLI / name) if not room.startswith(ALLOWED)}
    assert not foreign, f"cli/{name} goes round api: {sorted(foreign)}"

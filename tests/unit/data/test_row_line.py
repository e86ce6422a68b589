"""The modules that read rows stand in a line: the later knows the earlier, and not the other way round."""

from __future__ import annotations

import ast
from pathlib import Path

from snellen.data import loaders

FOLDER = Path(loaders.__file__).parent
LINE = [name.strip(" .\n") for name in (loaders.__doc__ or "").partition(":")[2].split(",")]


def imported(name: str) -> set[str]:
    """Return the modules of the same folder that a module imports, also inside functions."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    return {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
    }


def test_each_module_of_rows_imports_only_those_before_it() -> None:
    assert LINE[0] == "row_source" and LINE[-1] == "table"
    wrong = [(name, other) for place, name in enumerate(LINE) for other in imported(name) - set(LINE[:place])]
    assert not wrong


def test_every_module_of_rows_stands_in_the_line() -> None:
    assert {path.stem for path in FOLDER.glob("row_*.py")} <= set(LINE)

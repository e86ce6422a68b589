"""The modules that read replies stand in layers, as the room's own page says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import snellen.extract

ROOM = Path(snellen.extract.__path__[0])


def imported(path: Path) -> set[str]:
    """Return the modules of the room that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {name.name for name in node.names}
    return found


def test_each_module_imports_only_what_stands_before_it() -> None:
    lines = [line for line in (snellen.extract.__doc__ or "").splitlines() if line.startswith("- ")]
    order = [name for line in lines for name in re.findall(r"`(\w+)`", line.partition(":")[0])]
    modules = {path.stem: path for path in ROOM.glob("*.py") if path.stem != "__init__"}
    assert sorted(order) == sorted(modules), "each module stands in one line"
    backwards = {
        f"{name} imports {other}"
        for name, path in modules.items()
        for other in imported(path)
        if order.index(other) >= order.index(name)
    }
    assert not backwards

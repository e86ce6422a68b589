"""Every name that the package registers leads to what it names: most are resolved only when somebody uses them."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from snellen.core.builtins import default_registry
from snellen.core.registry import KINDS


def defined_in(module: str) -> set[str]:
    """Return the names at the top of a module's source; nothing is imported, as some need an extra."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_registered_is_there(kind: str) -> None:
    targets = {name: getattr(entry, "target", entry) for name, entry in default_registry().entries(kind).items()}
    named = {name: target.partition(":") for name, target in targets.items() if isinstance(target, str)}
    lost = [name for name, (module, _, attribute) in named.items() if {attribute} - defined_in(module) - {""}]
    assert not lost

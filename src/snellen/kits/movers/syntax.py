"""Python files of other systems to plain values, read as syntax: nothing in them is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import DataError

UNKNOWN = object()
"""A value that only running the file would give."""


def read_assignments(path: Path) -> dict[str, Any]:
    """Return what a file assigns at its top level: literals, `dict(...)`, names of what it assigned before.

    A class or function is its name; what only running would tell is left out.
    """
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as Python: {error}") from None
    known: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            value = _value(node.value, known)
            known |= {target.id: value for target in node.targets if isinstance(target, ast.Name)}
    return {name: value for name, value in known.items() if value is not UNKNOWN}


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [value for one in node.elts if (value := _value(one, known)) is not UNKNOWN]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _sum(_value(node.left, known), _value(node.right, known))
    pairs = _pairs(node)
    if pairs is None:
        return UNKNOWN
    made: dict[str, Any] = {}
    for key, value in pairs:
        found = _value(value, known)
        if key is None:
            made |= found if isinstance(found, dict) else {}
        elif found is not UNKNOWN:
            made[key] = found
    return made


def _pairs(node: ast.expr) -> list[tuple[str | None, ast.expr]] | None:
    """Return the pairs of `{...}` and of `dict(...)`; None of anything else. A key None stands for `**`."""
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return [(None if key is None else str(key), value) for key, value in zip(keys, node.values, strict=True)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [(word.arg, word.value) for word in node.keywords]
    return None


def _sum(left: Any, right: Any) -> Any:
    return left + right if type(left) is type(right) and isinstance(left, str | list) else UNKNOWN

"""The tree drawn in `core/errors.py` is the tree of its classes, with their exit codes."""

from __future__ import annotations

import re

from snellen.core import errors
from snellen.core.errors import SnellenError


def drawn(kind: type[SnellenError], depth: int = 0) -> list[tuple[int, str, str]]:
    """Return (depth, name, exit code) of a class and those below it, as `errors.py` defines them."""
    below = [
        row for each in kind.__subclasses__() if each.__module__ == errors.__name__ for row in drawn(each, depth + 1)
    ]
    return [(depth, kind.__name__, str(kind.exit_code)), *below]


def test_the_drawn_tree_is_the_real_one() -> None:
    lines = [
        re.match(r"([│├└─ ]*)([A-Z]\w+)(?:\s+exit (\d))?", line)
        for line in (errors.__doc__ or "").split("\n\n")[1].splitlines()
    ]
    shown = [(len(line[1]) // 4, line[2], line[3]) for line in lines if line]
    assert sorted(name for _, name, _ in shown) == sorted(name for _, name, _ in drawn(SnellenError))
    real = {name: (depth, code) for depth, name, code in drawn(SnellenError)}
    assert {name: depth for depth, name, _ in shown} == {name: depth for name, (depth, _) in real.items()}
    assert all(code in (None, real[name][1]) for _, name, code in shown)

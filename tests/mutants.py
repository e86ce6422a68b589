"""Mutation testing: a seeded sample of small faults in the rooms that make numbers, each run against the tests that name its module.

    python tests/mutants.py --count 400 --seed 13 --rooms stats,scoring,store,engine --state .mutants.jsonl

Each mutant is a file in a folder of its own that stands before `src` on the path; the sources themselves are never touched.
What was judged is in the state file, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or,
    ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.USub: ast.UAdd,
}  # fmt: skip
SURVIVED, KILLED, TIMED_OUT = "survived", "killed", "timeout"


class Mutant(NamedTuple):
    """One fault: the module, which of its possible faults, its line and what it is."""

    module: str
    number: int
    line: int
    what: str

    @property
    def path(self) -> Path:
        return SOURCES.joinpath(*self.module.split(".")).with_suffix(".py")

    def text(self) -> str:
        """Return the module's text with the fault in it."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        node, _, fields = next(itertools.islice(faults(tree), self.number, None))
        for name, value in fields.items():
            setattr(node, name, value)
        return ast.unparse(ast.fix_missing_locations(tree))


def mutate(node: ast.AST) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what may be changed at a node: a name for it, and the fields to set."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) and type(node.op) in SWAPS:
        other = SWAPS[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", {"op": other()}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not dropped", {"operand": ast.UnaryOp(ast.Not(), node.operand)}
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        other = SWAPS[type(node.ops[0])]
        yield f"{type(node.ops[0]).__name__} -> {other.__name__}", {"ops": [other(), *node.ops[1:]]}
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield f"{node.value!r} -> {value!r}", {"value": value}
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return None", {"value": ast.Constant(None)}
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "branch turned", {"test": ast.UnaryOp(ast.Not(), node.test)}


def faults(tree: ast.Module) -> Iterator[tuple[ast.AST, str, dict[str, Any]]]:
    """Yield every possible fault of a module; what no test can see is left alone."""
    passed = {id(part) for node in ast.walk(tree) for skip in _unread(node) for part in ast.walk(skip)}
    for node in ast.walk(tree):
        if id(node) not in passed:
            yield from ((node, what, fields) for what, fields in mutate(node))


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield the possible mutants of a module."""
    module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for number, (node, what, _) in enumerate(faults(ast.parse(path.read_text(encoding="utf-8")))):
        yield Mutant(module, number, getattr(node, "lineno", 0), what)


def _unread(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that no test can see: types, and the texts of errors."""
    if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
        yield node.annotation
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
        yield node.returns
    if isinstance(node, ast.Raise) and node.exc is not None:
        yield node.exc
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        yield node
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr):
        yield node.value  # the name of a union of types


@cache
def tests_naming(module: str) -> tuple[str, ...]:
    """Return the unit tests that import a module by its name, those of its own room first; golden ones where no unit test does."""
    package, _, name = module.rpartition(".")
    quoted, parent = re.escape(module), re.escape(package)
    pattern = re.compile(rf"(from|import) {quoted}\b|from {parent} import .*\b{name}\b|\"{quoted}[\":.]")
    own = ROOT / "tests" / "unit" / module.split(".")[1]
    for folder in (ROOT / "tests" / "unit", ROOT / "tests" / "golden"):
        files = [file for file in sorted(folder.rglob("test_*.py")) if pattern.search(file.read_text(encoding="utf-8"))]
        if files:
            return tuple(map(str, sorted(files, key=lambda file: (file.parent != own, file))))
    return ()


def judge(mutant: Mutant, limit_s: float) -> str:
    """Run the module's tests with the mutant in the module's place; any failure, crash or endless loop kills it."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        shutil.copytree(SOURCES / "snellen", Path(folder) / "snellen", copy_function=os.symlink)
        place = Path(folder, *mutant.module.split(".")).with_suffix(".py")
        place.unlink()
        place.write_text(mutant.text(), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-p",
            "no:cov",
            "--no-header",
            "-m",
            "not slow",
        ]
        command = [sys.executable, "-m", "pytest", *options, *tests_naming(mutant.module)]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
    return SURVIVED if done.returncode == 0 else KILLED


def main() -> int:
    """Judge the sample and print the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--rooms", default="stats,scoring,store,engine")
    parser.add_argument("--state", type=Path, default=ROOT / ".mutants.jsonl")
    parser.add_argument("--limit-s", type=float, default=120.0)
    parser.add_argument("--bar", type=float, default=0.75)
    asked = parser.parse_args()
    paths = [path for room in asked.rooms.split(",") for path in sorted((SOURCES / "snellen" / room).rglob("*.py"))]
    every = [mutant for path in paths for mutant in mutants_of(path)]
    chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    known = (
        {row["key"]: row for row in map(json.loads, asked.state.read_text().splitlines())}
        if asked.state.exists()
        else {}
    )
    started = time.monotonic()

    def work(mutant: Mutant) -> dict[str, Any]:
        key = hashlib.sha256(f"{mutant.module}\n{mutant.text()}".encode()).hexdigest()[:16]
        if key in known:
            return known[key]
        row = {"key": key, "module": mutant.module, "line": mutant.line, "what": mutant.what}
        row["verdict"] = judge(mutant, asked.limit_s)
        with asked.state.open("a", encoding="utf-8") as state:
            state.write(json.dumps(row) + "\n")
        return row

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        rows = list(pool.map(work, chosen))
    return report(rows, len(every), time.monotonic() - started, asked.bar)


def report(rows: list[dict[str, Any]], every: int, seconds: float, bar: float) -> int:
    """Print the survivors and the figure a room; return 1 below the bar."""
    for row in (row for row in rows if row["verdict"] == SURVIVED):
        print(f"survived  {row['module']}:{row['line']}  {row['what']}")
    rooms = sorted({row["module"].split(".")[1] for row in rows})
    for room in [*rooms, "all"]:
        mine = [row["verdict"] != SURVIVED for row in rows if room in ("all", row["module"].split(".")[1])]
        print(f"{room:8} {sum(mine)}/{len(mine)} killed ({sum(mine) / len(mine):.1%})")
    print(f"{len(rows)} of {every} possible mutants in {seconds / 60:.1f} min")
    return int(sum(row["verdict"] != SURVIVED for row in rows) < bar * len(rows))


if __name__ == "__main__":
    sys.exit(main())

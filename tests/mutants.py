"""Small faults in the rooms that make numbers, each run against the tests that name its module: how many are found?

A mutant stands in a copy of the package (of links) before `src` on the path; the sources are never touched. Before any mutant
of a module its tests must pass as it is. What was judged is in the state file: a run that was stopped goes on where it was.
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
BOTH_WAYS = "Add Sub, Mult Div, Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, BitAnd BitOr"
PAIRS = [pair.split() for pair in BOTH_WAYS.split(", ")]
ONE_WAY = [["FloorDiv", "Div"], ["Mod", "Mult"], ["Pow", "Mult"], ["USub", "UAdd"]]
SWAPS = {getattr(ast, old): getattr(ast, new) for old, new in [*PAIRS, *(pair[::-1] for pair in PAIRS), *ONE_WAY]}
PYTEST = [
    "-m",
    "pytest",
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:cov",
    "-p",
    "no:randomly",
    "--no-header",
]
BAR = 0.75
SURVIVED, KILLED, TIMED_OUT = "survived", "killed", "timeout"
VERDICTS = {0: SURVIVED, 1: KILLED, 2: KILLED, 5: SURVIVED}
"""pytest's exit codes: all passed, some failed, the module cannot be imported, nothing was there to run."""


class Mutant(NamedTuple):
    """One fault: the module, which of its possible faults, its line and what it is."""

    module: str
    number: int
    line: int
    what: str


def text_of(mutant: Mutant) -> str:
    """Return the module's text with the fault in it."""
    tree = ast.parse(SOURCES.joinpath(*mutant.module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    node, _, fields = next(itertools.islice(faults(tree), mutant.number, None))
    for name, value in fields.items():
        setattr(node, name, value)
    return ast.unparse(ast.fix_missing_locations(tree))


def mutate(node: ast.AST) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what may be changed at a node: a name for it, and the fields to set."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) and type(node.op) in SWAPS:
        yield f"{type(node.op).__name__} -> {SWAPS[type(node.op)].__name__}", {"op": SWAPS[type(node.op)]()}
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
    """Yield every possible fault of a module; types and the texts of errors, which no test of numbers sees, are left alone."""
    passed = {id(part) for node in ast.walk(tree) for skip in _unseen(node) for part in ast.walk(skip)}
    for node in ast.walk(tree):
        if id(node) not in passed:
            yield from ((node, what, fields) for what, fields in mutate(node))


def _unseen(node: ast.AST) -> Iterator[ast.AST]:
    parts = (getattr(node, name, None) for name in ("annotation", "returns", "exc"))
    yield from (part for part in parts if isinstance(part, ast.AST))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr):
        yield node.value  # the name of a union of types


STAGES = ("unit", "golden", "integration")
"""Folders of tests, the quickest first: who survives one goes to the next."""


@cache
def tests_naming(module: str, folder: str) -> tuple[str, ...]:
    """Return the tests of a folder that name a module, those of its own room first."""
    package, _, name = module.rpartition(".")
    quoted, parent = re.escape(module), re.escape(package)
    pattern = re.compile(rf"(from|import) {quoted}\b|from {parent} import .*\b{name}\b|\"{quoted}[\":.]")
    own = ROOT / "tests" / folder / module.split(".")[1]
    files = sorted((ROOT / "tests" / folder).rglob("test_*.py"))
    naming = [file for file in files if pattern.search(file.read_text(encoding="utf-8"))]
    return tuple(map(str, sorted(naming, key=lambda file: (file.parent != own, file))))


def judge(module: str, text: str | None, folder: str, limit_s: float) -> str:
    """Run the module's tests with this text in its place (None: as it is); a failure or an endless loop kills the mutant."""
    if not tests_naming(module, folder):
        return SURVIVED
    with tempfile.TemporaryDirectory(prefix="mutant-") as copied:
        shutil.copytree(SOURCES / "snellen", Path(copied) / "snellen", copy_function=os.symlink)
        if text is not None:
            place = Path(copied, *module.split(".")).with_suffix(".py")
            place.unlink()
            place.write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": copied, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *PYTEST, "-m", "not slow and not nightly", *tests_naming(module, folder)]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
    return VERDICTS[done.returncode]


@cache
def limit_of(module: str, folder: str) -> float:
    """Return how long its tests may take: ten times what they take as they are, where they must pass."""
    started = time.monotonic()
    if (verdict := judge(module, None, folder, 600.0)) != SURVIVED:
        wrong = f"the tests of {module} do not pass without a mutant ({verdict})"
        raise SystemExit(f"{wrong}: {tests_naming(module, folder)}")
    return 10.0 + 10.0 * (time.monotonic() - started)


def main() -> int:
    """Judge the sample, print the survivors and the figure of each room; 1 below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--rooms", default="stats,scoring,store,engine")
    parser.add_argument("--state", type=Path, default=ROOT / ".mutants.jsonl")
    options = parser.parse_args()
    every = list(all_mutants(options.rooms.split(",")))
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    options.state.touch()
    known = dict(json.loads(line) for line in options.state.read_text(encoding="utf-8").splitlines())

    def work(mutant: Mutant) -> str:
        text = text_of(mutant)
        verdicts = (stage(mutant.module, text, folder) for folder in STAGES)
        return next((verdict for verdict in verdicts if verdict != SURVIVED), SURVIVED)

    def stage(module: str, text: str, folder: str) -> str:
        tests = "".join(Path(test).read_text(encoding="utf-8") for test in tests_naming(module, folder))
        key = hashlib.sha256(f"{module}\n{text}\n{tests}".encode()).hexdigest()
        if key not in known:
            known[key] = judge(module, text, folder, limit_of(module, folder))
            with options.state.open("a", encoding="utf-8") as state:
                state.write(json.dumps([key, known[key]]) + "\n")
        return str(known[key])

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        judged = list(zip(chosen, pool.map(work, chosen), strict=True))
    for mutant, verdict in judged:
        if verdict == SURVIVED:
            print(f"survived  {mutant.module}:{mutant.line}  {mutant.what}")
    for room in (*options.rooms.split(","), ""):
        kills = [verdict != SURVIVED for mutant, verdict in judged if mutant.module.startswith(f"snellen.{room}")]
        print(f"{room or 'all':8} {sum(kills)}/{len(kills)} killed ({sum(kills) / max(len(kills), 1):.1%})")
    print(f"out of {len(every)} possible mutants")
    return int(sum(kills) < BAR * len(kills))


def all_mutants(rooms: list[str]) -> Iterator[Mutant]:
    """Yield every possible mutant of the rooms."""
    for path in (path for room in rooms for path in sorted((SOURCES / "snellen" / room).rglob("*.py"))):
        module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for number, (node, what, _) in enumerate(faults(ast.parse(path.read_text(encoding="utf-8")))):
            yield Mutant(module, number, getattr(node, "lineno", 0), what)


if __name__ == "__main__":
    sys.exit(main())

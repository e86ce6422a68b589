"""Small faults in the rooms that make numbers, each run against the tests that execute its line: how many are found?

First the tests run once as they are, followed by coverage: this map says who executes which line, and who fails without a mutant
judges none. A mutant stands in a copy of the package (of links) before `src` on the path; the sources are never touched. Its tests
run in a fork of a process that has everything else imported, and a test that finds it must pass alone without it. Map and verdicts
are kept in `build/mutants`: a run that was stopped goes on where it was, and only changed files of tests are mapped anew.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
PLACE = ROOT / "build" / "mutants"
BOTH_WAYS = "Add Sub, Mult Div, Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, BitAnd BitOr"
PAIRS = [pair.split() for pair in BOTH_WAYS.split(", ")]
ONE_WAY = [["FloorDiv", "Div"], ["Mod", "Mult"], ["Pow", "Mult"], ["USub", "UAdd"]]
SWAPS = {getattr(ast, old): getattr(ast, new) for old, new in [*PAIRS, *(pair[::-1] for pair in PAIRS), *ONE_WAY]}
FOLDERS = "unit,golden,integration"
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:cov", "--no-header", "-m", "not slow and not nightly"]
ALONE = ["-x", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
PRELOADED = ("hypothesis", "numpy", "PIL.Image", "scipy.stats", "aiohttp", "starlette.applications", "sqlite3")
GUARDS = ("strict", "frozen", "kw_only", "slots", "eq")
BAR = 0.78
BUDGET_S = 40.0
"""The tests of a mutant, nearest and quickest first, as many as take this long without it."""
STANDSTILL_S = 60.0
"""Less than 0.3 s of computing in so long is a standstill, on a busy machine too."""
SURVIVED, KILLED, TIMED_OUT, NOT_RUN = "survived", "killed", "timeout", "not run"
VERDICTS = {0: SURVIVED, 1: KILLED, 2: KILLED, 5: SURVIVED}
"""pytest's exit codes: all passed, some failed, the module cannot be imported, nothing was there to run."""


class Mutant(NamedTuple):
    """One fault: the module, which of its possible faults, its line and what it is."""

    module: str
    number: int
    line: int
    what: str


def file_of(module: str) -> Path:
    """Return a module's source."""
    return SOURCES.joinpath(*module.split(".")).with_suffix(".py")


@cache
def source_of(module: str) -> str:
    """Return a module's text."""
    return file_of(module).read_text(encoding="utf-8")


def text_of(mutant: Mutant) -> str:
    """Return the module's text with the fault in it."""
    tree = ast.parse(source_of(mutant.module))
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
    """Yield every possible fault of a module.

    Types, the texts of errors and what only guards the programmer (`strict=` of a zip, `frozen=` of a class) are left alone: no
    test of a result sees them.
    """
    passed = {id(part) for node in ast.walk(tree) for skip in _unseen(node) for part in ast.walk(skip)}
    for node in ast.walk(tree):
        if id(node) not in passed:
            yield from ((node, what, fields) for what, fields in mutate(node))


def _unseen(node: ast.AST) -> Iterator[ast.AST]:
    parts = (getattr(node, name, None) for name in ("annotation", "returns", "exc"))
    yield from (part for part in parts if isinstance(part, ast.AST))
    if isinstance(node, ast.keyword) and node.arg in GUARDS:
        yield node.value
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr):
        yield node.value  # the name of a union of types


def all_mutants(rooms: list[str]) -> Iterator[Mutant]:
    """Yield every possible mutant of the rooms."""
    for path in (path for room in rooms for path in sorted((SOURCES / "snellen" / room).rglob("*.py"))):
        module = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for number, (node, what, _) in enumerate(faults(ast.parse(source_of(module)))):
            yield Mutant(module, number, getattr(node, "lineno", 0), what)


def statement_lines(module: str, line: int) -> set[int] | None:
    """Return the lines of the statement around a line, without its block; None where it is executed by the import."""
    tree = ast.parse(source_of(module))
    inside = [node for node in ast.walk(tree) if getattr(node, "lineno", line + 1) <= line <= node.end_lineno]  # type: ignore[attr-defined]
    functions = [node for node in inside if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not any(node.body[0].lineno <= line for node in functions):
        return None
    statement = max((node for node in inside if isinstance(node, ast.stmt)), key=lambda node: node.lineno)
    block = getattr(statement, "body", None)
    return set(range(statement.lineno, (block[0].lineno if block else statement.end_lineno or line) + 1))


class Follower:
    """A plug-in of pytest: writes which lines each test executes, how long it takes and whether it passes."""

    def __init__(self, stem: str) -> None:
        import coverage

        rooms = [f"*/snellen/{room}/*" for room in os.environ["MUTANT_ROOMS"].split(",")]
        self._coverage = coverage.Coverage(data_file=f"{stem}.coverage", include=rooms, config_file=False)
        self._stem, self._seconds = stem, defaultdict[str, float](float)

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration if report.passed else float("inf")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        Path(f"{self._stem}.json").write_text(json.dumps(self._seconds), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Follow the tests where this module is loaded as a plug-in: in the workers of xdist."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        config.pluginmanager.register(Follower(f"{os.environ['MUTANT_MAP']}-{worker}"))


class Map:
    """Which tests execute which line, and how long each of them takes."""

    def __init__(self, rooms: list[str], folders: list[str]) -> None:
        self._rooms, place = rooms, PLACE / "map"
        place.mkdir(parents=True, exist_ok=True)
        index = place / "index.json"
        known = json.loads(index.read_text(encoding="utf-8")) if index.exists() else {}
        sources = _digest(*(path for room in rooms for path in sorted((SOURCES / "snellen" / room).rglob("*.py"))))
        wanted = {str(path.relative_to(ROOT)): _digest(path) + sources for path in tests_naming(rooms, folders)}
        changed = [file for file, digest in wanted.items() if known.get(file, [""])[0] != digest]
        name = str(1 + max((int(number) for _, number in known.values()), default=0))
        if changed:
            self._follow(place / name, changed)
            known.update({file: [wanted[file], name] for file in changed})
            index.write_text(json.dumps(known), encoding="utf-8")
        self.seconds: dict[str, float] = {}
        self._tests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for data in sorted(place.glob("*.coverage")):
            self._read(data, {file for file in wanted if known[file][1] == data.name.partition("-")[0]})

    def _follow(self, stem: Path, tests: list[str]) -> None:
        copied = copy_package(PLACE / "as-it-is")
        environment = {**os.environ, "PYTHONPATH": f"{copied}{os.pathsep}{ROOT / 'tests'}", "MUTANT_MAP": str(stem)}
        environment.update(
            MUTANT_ROOMS=",".join(self._rooms), PYTHONPYCACHEPREFIX=str(PLACE / "pyc"), OMP_NUM_THREADS="1"
        )
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        spread = ["-p", "mutants", "-n", str(os.cpu_count()), "--dist", "worksteal"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *OPTIONS, *spread, *tests], cwd=ROOT, env=environment, check=False
        )

    def _read(self, data_file: Path, files: set[str]) -> None:
        import coverage

        seconds = json.loads(data_file.with_suffix(".json").read_text(encoding="utf-8"))
        valid = {test for test, took in seconds.items() if took < float("inf") and test.partition("::")[0] in files}
        self.seconds.update({test: seconds[test] for test in valid})
        data = coverage.CoverageData(str(data_file))
        data.read()
        for path in data.measured_files() if valid else ():
            for line, contexts in data.contexts_by_lineno(path).items():
                self._tests[str(Path(path).resolve())][line].update(valid.intersection(contexts))

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant's line; those of its own room first, the quick before the slow."""
        lines, own = statement_lines(mutant.module, mutant.line), f"tests/unit/{mutant.module.split('.')[1]}/"
        executed = self._tests[str(file_of(mutant.module))]
        # What the import executes is executed for all who call the module later.
        found = set().union(*(tests for line, tests in executed.items() if lines is None or line in lines))
        chosen, budget = list[str](), BUDGET_S
        for test in sorted(found, key=lambda test: (not test.startswith(own), self.seconds[test], test)):
            budget -= self.seconds[test]
            if chosen and budget < 0:
                break
            chosen.append(test)
        return chosen


def package_of(room: str) -> str:
    """Return a room, or a kit as its folder is named (`kits/bank`), as an import names it."""
    return room.replace("/", ".")


def tests_naming(rooms: list[str], folders: list[str]) -> Iterator[Path]:
    """Yield the files of tests that name a module of the rooms; those that compare with recordings, or are named here, all do."""
    named = re.compile(rf"snellen\.({'|'.join(map(package_of, rooms))})\b")
    places = [ROOT / "tests" / folder for folder in folders]
    for path in (
        path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("test_*.py")))
    ):
        if path in places or "golden" in path.parts or named.search(path.read_text(encoding="utf-8")):
            yield path


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"\n".join(file.read_bytes() for file in files)).hexdigest()


def copy_package(place: Path) -> Path:
    """Return a folder with the package as links to the sources."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(
        SOURCES / "snellen", place / "snellen", copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__")
    )
    return place


class Judge:
    """Runs tests against a text of a module, in forks of its process."""

    def __init__(self) -> None:
        self._copy = copy_package(PLACE / f"copy-{os.getpid()}")
        self._sound: dict[str, bool] = {}
        self._stamp = itertools.count(1_000_000_000)
        sys.pycache_prefix, sys.dont_write_bytecode = str(PLACE / "pyc"), False
        os.environ.update(PYTHONPATH=str(self._copy), PYTHONPYCACHEPREFIX=str(PLACE / "pyc"), OMP_NUM_THREADS="1")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for name in PRELOADED:
            importlib.import_module(name)

    def verdict(self, mutant: Mutant, tests: list[str], seconds: float) -> str:
        """Return what became of a mutant; a test that fails alone as it is judges nobody."""
        limit_s = 20.0 + 10.0 * seconds
        while tests:
            verdict, failed = self._run(tests, limit_s, mutant)
            if verdict == NOT_RUN:  # the module cannot be imported; or pytest does not find a test by its name
                if self._run(tests, limit_s)[0] != NOT_RUN:
                    return KILLED
                files = sorted({test.partition("::")[0] for test in tests})
                tests = files if files != tests else []
            elif not failed or verdict != KILLED or self._is_sound(failed):
                return verdict
            else:
                tests = [test for test in tests if test != failed] if failed in tests else []
        return SURVIVED

    def _is_sound(self, test: str) -> bool:
        if test not in self._sound:
            self._sound[test] = self._run([test], 120.0)[0] == SURVIVED
        return self._sound[test]

    def _run(self, tests: list[str], limit_s: float, mutant: Mutant | None = None) -> tuple[str, str]:
        place = self._copy.joinpath(*mutant.module.split(".")).with_suffix(".py") if mutant else None
        told = self._copy / "failed"
        told.write_text("", encoding="utf-8")
        if mutant and place:
            place.unlink()
            place.write_text(text_of(mutant), encoding="utf-8")
            # A time of its own, or the bytecode of another mutant of the same size would be taken.
            stamp = next(self._stamp)
            os.utime(place, (stamp, stamp))
        try:
            # Of the clock, for what waits without computing; long, because others may have the processor.
            return self._wait(self._start(tests, told, limit_s), 12 * limit_s), told.read_text(encoding="utf-8")
        finally:
            if mutant and place:
                place.unlink()
                place.symlink_to(file_of(mutant.module))

    def _start(self, tests: list[str], told: Path, limit_s: float) -> int:
        if pid := os.fork():
            return pid
        code = 3
        try:
            os.setsid()
            # Of the processor, not of the clock: a busy machine is no endless loop.
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s)))
            os.chdir(ROOT)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            sys.path.insert(0, str(self._copy))
            code = int(pytest.main([*OPTIONS, *ALONE, *tests], plugins=[Failed(told)]))
        finally:
            os._exit(code)

    def _wait(self, pid: int, limit_s: float) -> str:
        """Wait for a fork; one that hardly computes any more waits for what a mutant took away."""
        began = stood = time.monotonic()
        computed = 0.0
        try:
            while time.monotonic() < began + limit_s and time.monotonic() < stood + STANDSTILL_S:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    code = os.waitstatus_to_exitcode(status)
                    return VERDICTS.get(code, NOT_RUN) if code >= 0 else TIMED_OUT
                if (now := _cpu_seconds(pid)) > computed + 0.3:
                    computed, stood = now, time.monotonic()
                time.sleep(0.02)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return TIMED_OUT
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what the tests have started


def _cpu_seconds(pid: int) -> float:
    """Return what a process and its children that ended have computed."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Failed:
    """A plug-in of pytest: writes the name of the test that fails."""

    def __init__(self, told: Path) -> None:
        self._told = told

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._told.write_text(report.nodeid, encoding="utf-8")


_JUDGE: list[Judge] = []


def _work(task: tuple[Mutant, str, list[str], float]) -> tuple[str, str]:
    mutant, key, tests, seconds = task
    if not _JUDGE:
        _JUDGE.append(Judge())
    return key, _JUDGE[0].verdict(mutant, tests, seconds)


def main() -> int:
    """Judge the sample, print the survivors and the figure of each room; 1 below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--rooms", default="stats,scoring,store,engine,kits/bank,kits/parsing")
    parser.add_argument("--folders", default=FOLDERS, help="of tests, or files; fewer find fewer, sooner")
    parser.add_argument("--state", type=Path, default=PLACE / "verdicts.jsonl")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    every = list(all_mutants(rooms))
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    tests = Map(rooms, options.folders.split(","))
    for left in PLACE.glob("copy-*"):
        shutil.rmtree(left)
    options.state.touch()
    known = dict(json.loads(line) for line in options.state.read_text(encoding="utf-8").splitlines())
    tasks = {mutant: _task(mutant, tests) for mutant in chosen}
    waiting = [task for task in tasks.values() if task[1] not in known]
    with (
        multiprocessing.get_context("spawn").Pool(options.workers) as pool,
        options.state.open("a", encoding="utf-8") as state,
    ):
        for key, verdict in pool.imap_unordered(_work, waiting):
            known[key] = verdict
            state.write(json.dumps([key, verdict]) + "\n")
            state.flush()
    judged = [(mutant, known[tasks[mutant][1]]) for mutant in chosen]
    for mutant, verdict in sorted(judged):
        if verdict == SURVIVED:
            print(f"survived  {mutant.module}:{mutant.line}  {mutant.what}  ({len(tasks[mutant][2])} tests)")
    for room in (*rooms, ""):
        kills = [
            verdict != SURVIVED for mutant, verdict in judged if mutant.module.startswith(f"snellen.{package_of(room)}")
        ]
        print(f"{room or 'all':12} {sum(kills)}/{len(kills)} killed ({sum(kills) / max(len(kills), 1):.1%})")
    late = sum(verdict == TIMED_OUT for _, verdict in judged)
    print(f"out of {len(every)} possible mutants; {late} of the killed took too long")
    return int(sum(kills) < BAR * len(kills))


def _task(mutant: Mutant, tests: Map) -> tuple[Mutant, str, list[str], float]:
    chosen = tests.tests_of(mutant)
    files = sorted({test.partition("::")[0] for test in chosen})
    parts = [mutant.module, text_of(mutant), *chosen, _digest(*(ROOT / file for file in files))]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return mutant, key, chosen, sum(tests.seconds[test] for test in chosen)


if __name__ == "__main__":
    sys.exit(main())

"""The rooms import only to their left, nothing knots, and the house style holds."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "snellen"
ROOMS = [
    "core",
    "stats",
    "extract",
    "data",
    "prompt",
    "model",
    "mock",
    "infer",
    "store",
    "engine",
    "fleet",
    "scoring",
    "sight",
    "perf",
    "report",
    "curate",
    "train",
    "api",
    "cli",
]
FILES = sorted(SRC.rglob("*.py"))
FORBIDDEN_NAMES = ("utils", "common", "helpers", "manager")
LONGEST_MODULE, LONGEST_FUNCTION, DEEPEST_FOLDER = 700, 60, 2


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "snellen" else None


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Names of types that a command is told of, but never calls, are no way round `api`."""
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    return tree


def imported_modules(file: Path, *, at_run_time: bool = False) -> set[str]:
    here = ["snellen", *file.relative_to(SRC).with_suffix("").parts]
    package = here[:-1]
    found: set[str] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(without_type_checking(tree) if at_run_time else tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            up = package[: len(package) - node.level + 1]
            found |= {".".join([*up, *(node.module or name.name).split(".")]) for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_room_imports_only_rooms_to_its_left(file: Path) -> None:
    parts = file.relative_to(SRC).parts
    if len(parts) == 1:
        return  # the root package names everything lazily
    assert parts[0] in ROOMS, f"{parts[0]} is not a room: add it to ROOMS and to docs/architecture.md"
    place = ROOMS.index(parts[0])
    for module in imported_modules(file):
        room = room_of(module)
        if room in ROOMS:
            assert ROOMS.index(room) <= place, f"{file.relative_to(SRC)} imports {module}, which is to its right"


CLI_ROOMS = {"cli", "api", "core", "report"}
"""What a command may import: its one call of `api`, the records and errors of `core`, and how `report` shows a result."""


@pytest.mark.parametrize("file", sorted((SRC / "cli").rglob("*.py")), ids=lambda file: str(file.relative_to(SRC)))
def test_a_command_calls_api_and_nothing_else(file: Path) -> None:
    others = {module for module in imported_modules(file, at_run_time=True) if room_of(module) in {*ROOMS} - CLI_ROOMS}
    assert not others, f"{file.relative_to(SRC)} imports {sorted(others)}"


def test_every_extra_is_used_and_every_hint_names_one() -> None:
    project = tomllib.loads((SRC.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    source = "\n".join(file.read_text("utf-8") for file in FILES)
    hints = set(re.findall(r"""MissingExtra\("(\w+)"|snellen\[(\w+)\]""", source))
    assert {first or second for first, second in hints} - {""} <= set(extras)
    from snellen.api.machine import EXTRAS

    modules = {
        "vl-convert-python": "vl_convert",
        "huggingface-hub": "huggingface_hub",
        "python-calamine": "python_calamine",
        "google-auth": "google.auth",
        "mlflow-skinny": "mlflow",
    }
    for extra, (named, _) in EXTRAS.items():
        packages = [re.split(r"[<>=\[]", requirement)[0] for requirement in extras[extra]]
        assert tuple(modules.get(package, package) for package in packages) == named, extra
    for extra in set(extras) - {"dev", "docs", "browser", "hf-test"}:  # these are what tests and documentation need
        for requirement in extras[extra]:
            package = re.split(r"[<>=\[]", requirement)[0]
            assert re.search(rf"\b{modules.get(package, package)}\b", source), (
                f"{package} of extra {extra} is used by nobody"
            )


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_house_style(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    relative = file.relative_to(SRC)
    assert len(relative.parts) - 1 <= DEEPEST_FOLDER
    assert not any(part in FORBIDDEN_NAMES or part.startswith("base_") for part in relative.with_suffix("").parts)
    assert text.count("\n") <= LONGEST_MODULE
    assert ast.get_docstring(tree), f"{relative} does not say what it turns into what"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, (
                f"{relative}: {node.name} is longer than {LONGEST_FUNCTION} lines"
            )


def test_the_page_shows_the_order_of_rooms_once_and_as_it_is() -> None:
    page = (SRC.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("`core · ")] == [f"`{' · '.join(ROOMS)}`"]

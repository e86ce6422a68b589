"""The rooms import only to their left, a command calls only `api`, and names say what a thing is: one test a rule."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path

from snellen.core.builtins import default_registry
from snellen.core.errors import MissingExtra
from snellen.core.registry import KINDS, resolve_target, shipped_kits

SRC = Path(__file__).resolve().parents[2] / "src" / "snellen"
ROOMS = [
    "core",
    "stats",
    "extract",
    "data",
    "prompt",
    "model",
    "infer",
    "store",
    "engine",
    "scoring",
    "sight",
    "perf",
    "report",
    "api",
    "cli",
    "kits",
]
FILES = sorted(SRC.rglob("*.py"))
FORBIDDEN_NAMES = ("utils", "common", "helpers", "manager")
DEEPEST_FOLDER = 2


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "snellen" else None


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Names of types that a command is told of, but never calls, are no way round `api`."""
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    return tree


@cache
def imported_modules(file: Path, *, at_run_time: bool = False) -> frozenset[str]:
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
    return frozenset(found)


def test_every_folder_is_a_room() -> None:
    strange = {file.relative_to(SRC).parts[0] for file in FILES if file.parent != SRC} - {*ROOMS}
    assert not strange, "add it to ROOMS and to docs/architecture.md"


def test_a_room_imports_only_rooms_to_its_left() -> None:
    place = {room: number for number, room in enumerate(ROOMS)}
    wrong = [
        f"{file.relative_to(SRC)} imports {module}"
        for file in FILES
        if file.parent != SRC  # the root package names everything lazily
        for module in imported_modules(file)
        if place.get(room_of(module) or "", -1) > place[file.relative_to(SRC).parts[0]]
    ]
    assert not wrong, "\n".join(wrong)


def kit_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if parts[:2] == ["snellen", "kits"] and len(parts) > 2 else None


def test_nothing_outside_a_kit_imports_it_but_kits_that_say_so() -> None:
    """The core knows no kit, the root package included; a kit says in `NEEDS` which others it stands on."""
    wrong = []
    for file in FILES:
        own = kit_of(".".join(["snellen", *file.relative_to(SRC).parts]))
        needs = importlib.import_module(f"snellen.kits.{own}").__dict__.get("NEEDS", ()) if own else ()
        found = {kit_of(module) for module in imported_modules(file)} - {None, own, *needs}
        wrong += [f"{file.relative_to(SRC)} imports kit {kit}" for kit in found]
    assert not wrong, "\n".join(wrong)


def test_a_kit_is_a_folder_that_registers_itself_and_is_named_nowhere_else() -> None:
    folders = {file.parent.name for file in FILES if file.parent.parent == SRC / "kits"}
    assert {*shipped_kits()} == folders
    named = [
        f"{file.relative_to(SRC)} names {kit}"
        for file in FILES
        if not file.is_relative_to(SRC / "kits")
        for kit in re.findall(r"snellen\.kits\.(\w+)", file.read_text(encoding="utf-8"))
    ]
    assert not named, "\n".join(named)


def test_what_registers_a_kit_imports_nothing_but_the_registry() -> None:
    wrong = {
        f"{name} imports {module}"
        for name in shipped_kits()
        for module in imported_modules(SRC / "kits" / name / "__init__.py")
        if module not in ("__future__", "snellen.core.registry")
    }
    assert not wrong


def test_whatever_is_registered_is_there() -> None:
    """A name is data until somebody asks for it: a module that has moved is found here, not by that person."""
    registry, gone = default_registry(), []
    for kind in KINDS:
        for name in registry.names(kind):
            try:
                found = registry.get(kind, name)
                target = getattr(found, "target", None)  # of a command or a page
                if isinstance(target, str):
                    resolve_target(target)
            except MissingExtra:
                continue
            except (ImportError, AttributeError) as error:
                gone.append(f"{kind} {name}: {error}")
    assert not gone, "\n".join(gone)


def test_whatever_a_script_imports_is_there() -> None:
    """Benchmarks, tools and examples are run now and then: a name that has moved is found here."""
    root, gone = SRC.parents[1], []
    for file in sorted(file for folder in ("benchmarks", "tools", "examples") for file in root.glob(f"{folder}/*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("snellen"):
                module = importlib.import_module(node.module or "")
                for name in (name.name for name in node.names):
                    try:
                        getattr(module, name, None) or importlib.import_module(f"{node.module}.{name}")
                    except ImportError:
                        gone.append(f"{file.name}: {node.module}.{name}")
    assert not gone, "\n".join(gone)


CLI_ROOMS = {"cli", "api", "core", "report"}
"""What a command may import: its one call of `api`, the records and errors of `core`, and how `report` shows a result."""


def test_a_command_calls_api_and_nothing_else() -> None:
    others = {*ROOMS} - CLI_ROOMS
    wrong = [
        f"{file.relative_to(SRC)} imports {module}"
        for file in FILES
        if file.is_relative_to(SRC / "cli")
        for module in imported_modules(file, at_run_time=True)
        if room_of(module) in others
    ]
    assert not wrong, "\n".join(wrong)


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
        "markdown-it-py": "markdown_it",
        "beautifulsoup4": "bs4",
        "opentelemetry-proto": "opentelemetry",
    }
    for extra, (named, _) in EXTRAS.items():
        packages = [re.split(r"[<>=\[]", requirement)[0] for requirement in extras[extra]]
        assert tuple(modules.get(package, package) for package in packages) == named, extra
    for extra in set(extras) - {
        "dev",
        "docs",
        "browser",
        "hf-test",
        "bridges-test",
    }:  # these are what tests and documentation need
        for requirement in extras[extra]:
            package = re.split(r"[<>=\[]", requirement)[0]
            assert re.search(rf"\b{modules.get(package, package)}\b", source), (
                f"{package} of extra {extra} is used by nobody"
            )


def test_no_name_hides_what_a_module_does_and_no_folder_lies_deeper_than_a_sub_room() -> None:
    paths = [file.relative_to(SRC).with_suffix("") for file in FILES]
    vague = [
        str(path)
        for path in paths
        if len(path.parts) - 1 > DEEPEST_FOLDER
        or any(part in FORBIDDEN_NAMES or part.startswith("base_") for part in path.parts)
    ]
    assert not vague


def test_the_page_shows_the_order_of_rooms_once_and_as_it_is() -> None:
    page = (SRC.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("`core · ")] == [f"`{' · '.join(ROOMS)}`"]


def package_of(module: str) -> str:
    return module if (SRC.parent / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


def test_no_packages_import_each_other_in_a_circle() -> None:
    """A folder is a layer: what it imports never leads back to it."""
    edges: dict[str, set[str]] = {}
    for file in FILES:
        here = ".".join(["snellen", *file.parent.relative_to(SRC).parts])
        if file.parent == SRC:
            continue  # the root package names everything lazily
        found = {package_of(module) for module in imported_modules(file) if module.startswith("snellen.")}
        edges.setdefault(here, set()).update(found - {here})

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        left = [start]
        while left:
            new = edges.get(left.pop(), set()) - seen
            seen |= new
            left += new
        return seen

    assert not [package for package in edges if package in reached(package)]

"""What the documentation names is there: files, modules, commands' targets, links, decisions; the lock and the version agree."""

from __future__ import annotations

import fnmatch
import importlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import snellen
from documentation import PAGES, ROOT
from snellen.core.registry import KINDS

DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
PLACES = (ROOT, ROOT / "src" / "snellen", ROOT / "docs", ROOT / "benchmarks")
FILE = re.compile(r"`((?:[\w.*-]+/)*[\w*-]+\.(?:py|sql|sh|yml|css|js))\b[^`]*`")
FOLDER = re.compile(r"`((?:catalog|tests|docs|benchmarks|examples|src|requirements)/[\w/.*-]+)`")
MODULE = re.compile(rf"`(snellen\.(?!(?:{'|'.join(KINDS)})`)[\w.]+)[`(]")  # snellen.KIND is a group of entry points
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#([^)]*))?\)")
NOT_OURS = {"FILE.py", "results.yml", "checked.py", "file.py", "lynx.py", "models/__init__.py"}
"""Files of the reader's own, or of another system, that the guides speak of."""


def test_every_file_that_a_page_names_is_there() -> None:
    gone = []
    for page in [*PAGES, *DECISIONS]:
        text = page.read_text(encoding="utf-8")
        named = set(FILE.findall(text)) | set(FOLDER.findall(text))
        gone += [(page.name, name) for name in named - NOT_OURS if "NAME" not in name and not is_there(name)]
    assert not gone


@cache
def files_by_name() -> frozenset[str]:
    return frozenset(path.name for folder in ("src", "tests") for path in (ROOT / folder).rglob("*"))


@cache
def is_there(name: str) -> bool:
    """A path is found from the project, the package or the docs; a bare file name anywhere in the package or the tests."""
    anywhere = "/" not in name and bool(fnmatch.filter(files_by_name(), name))
    return anywhere or any(next(place.glob(name.rstrip("/")), None) for place in PLACES)


def test_every_module_and_name_that_a_page_names_can_be_imported() -> None:
    named = {(page.name, dotted) for page in PAGES for dotted in MODULE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 10
    gone = {(page, dotted) for page, dotted in named if not resolves(dotted)}
    assert not gone


@cache
def resolves(dotted: str) -> bool:
    """Import as far as there are modules; the rest are names in the last of them."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name, None)
        return found is not None
    return False


def test_every_link_of_a_page_leads_somewhere() -> None:
    broken = [
        (page.name, f"{link}#{heading}")
        for page in [*PAGES, *DECISIONS]
        for link, heading in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists() or (heading and heading not in headings_of(page.parent / link))
    ]
    assert not broken


@cache
def headings_of(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_words_of_the_glossary_are_in_order_and_in_use() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    words = re.findall(r"^\| (?!word)([a-z ]+) \|", section, re.MULTILINE)
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "snellen").rglob("*.py")).lower()
    assert len(words) >= 20 and words == sorted(set(words))
    unused = [word for word in words if word.rstrip("s") not in code]
    assert not unused, f"words that the code no longer uses: take them out of the glossary: {unused}"


def test_every_room_and_sub_room_is_in_the_table_of_rooms() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if re.match(r"\| `\w+` \|", line)}
    for package in (ROOT / "src" / "snellen").glob("**/__init__.py"):
        room, *inner = package.parent.relative_to(ROOT / "src" / "snellen").parts or ("",)
        if room:
            assert room in rows, room
            assert not inner or f"`{inner[0]}`" in rows[room], (room, inner)


def test_the_index_lists_every_decision() -> None:
    assert subprocess.run([sys.executable, "tools/decisions.py", "--check"], cwd=ROOT, check=False).returncode == 0


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= named


def test_the_navigation_has_four_kinds_of_pages() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert re.findall(r"^  - ([A-Z][\w ]+):", text, re.MULTILINE) == ["Start", "How to", "Reference", "Why"]


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: snellen\.(\w+)$", text, re.MULTILINE)) == set(snellen.__all__)


def test_the_changelog_tells_of_this_version() -> None:
    assert f"\n## {snellen.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_lock_holds_every_package_of_the_test_environment_with_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = re.search(r"^TEST_EXTRAS := (.+)$", makefile, re.MULTILINE)[1].split(",")  # type: ignore[index]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(line) for line in project["dependencies"]]
    wanted += [Requirement(line) for extra in extras for line in project["optional-dependencies"][extra]]
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements" / "test.lock").read_text(encoding="utf-8"))
    locked: dict[str, list[str]] = {}
    for entry in entries:
        name, version = re.match(r"([\w.-]+)(?:\[[^]]*\])?==([^\s;]+)", entry).groups()  # type: ignore[union-attr]
        assert "--hash=sha256:" in entry, name
        locked.setdefault(canonicalize_name(name), []).append(version)
    assert "torch" not in locked
    for requirement in wanted:
        name = canonicalize_name(requirement.name)
        if name not in ("snellen", "torch"):
            assert any(requirement.specifier.contains(version) for version in locked.get(name, [])), (
                f"{requirement} is not in requirements/test.lock: run `make lock`"
            )


def test_every_command_of_the_container_recipe_finds_its_files() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    known = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
    assert {step[0] for step in steps} <= known
    copied = [step[1].split()[:-1] for step in steps if step[0] == "COPY" and "--from" not in step[1]]
    assert all((ROOT / name).exists() for names in copied for name in names)
    assert steps[-2][1] == '["snellen"]'

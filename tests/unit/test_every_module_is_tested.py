"""Every module of the rooms that make numbers is named by some test: what nobody names, nobody tests on purpose."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import mutants

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent / "src" / "snellen"
ROOMS = ("scoring", "stats", "store", "engine")


def modules() -> list[str]:
    paths = (path for room in ROOMS for path in (SOURCES / room).rglob("*.py") if path.name != "__init__.py")
    return sorted("snellen." + ".".join(path.relative_to(SOURCES).with_suffix("").parts) for path in paths)


@cache
def named() -> frozenset[str]:
    """What tests name: `from a.b import c` names a.b and a.b.c, a text names what it spells."""
    names: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        for module, what in re.findall(r"from (snellen[\w.]*) import (\([^)]*\)|[^\n]+)", text):
            names.add(module)
            names |= {f"{module}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", what)}
        names |= set(re.findall(r"import (snellen[\w.]+)", text))
        names |= {name.partition(":")[0] for name in re.findall(r"\"(snellen\.[\w.]+[:\w]*)\"", text)}
    return frozenset(names)


def test_there_is_something_to_name() -> None:
    assert len(modules()) > 60
    assert "snellen.stats.intervals" in modules() and "snellen.stats.intervals" in named()
    assert "snellen.stats.nowhere" not in named()


def test_a_test_names_every_module() -> None:
    unnamed = {module for module in modules() if not any(f"{name}.".startswith(f"{module}.") for name in named())}
    assert not unnamed


def test_the_mutants_of_a_kit_are_judged_by_the_tests_that_name_it() -> None:
    found = {path.relative_to(TESTS).parent.as_posix() for path in mutants.tests_naming(["kits/bank"], ["unit"])}
    assert "unit/bank" in found

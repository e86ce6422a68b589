"""The bill of materials and its audit: every part named and locked, problems told, silence of the database told too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bill", ROOT / "tools" / "bill.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bill"] = module
    spec.loader.exec_module(module)
    return module


bill = load()


def part(name: str, **more: object) -> object:
    return bill.Part(
        **{"name": name, "version": "1", "licence": "MIT", "needs": (), "locked": "1", "hashes": ("ab",), **more}
    )


def test_every_part_that_users_install_is_locked_with_hashes() -> None:
    parts = bill.gather("snellen", bill.read_lock())
    names = {one.name for one in parts}
    assert {"snellen", "aiohttp", "msgspec", "numpy", "pillow", "rich", "click"} <= names
    assert not [one.name for one in parts if one.name != "snellen" and not (one.locked and one.hashes)]


def test_the_bill_is_complete_and_the_same_every_time() -> None:
    parts = bill.gather("snellen", bill.read_lock())
    made = bill.to_cyclonedx(parts, "snellen")
    assert made == bill.to_cyclonedx(parts, "snellen")
    assert (made["bomFormat"], made["specVersion"], made["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "1.5",
        "snellen",
    )
    references = {component["bom-ref"] for component in made["components"]}
    assert len(references) == len(parts) - 1
    assert all(set(row["dependsOn"]) <= references for row in made["dependencies"])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"locked": None}, "not in requirements"), ({"hashes": ()}, "without a hash"), ({"locked": "2"}, "2 is locked")],
)
def test_what_is_not_as_locked_is_told(wrong: dict[str, object], told: str) -> None:
    (problem,) = bill.check_lock([part("snellen", locked=None), part("other", **wrong)], "snellen")
    assert told in problem


def test_known_problems_are_told_and_so_is_that_nobody_could_be_asked() -> None:
    parts = [part("snellen"), part("other")]
    assert bill.audit(parts, "snellen", lambda _: [["GHSA-1"]]) == (
        ["other 1: GHSA-1, see https://osv.dev/GHSA-1"],
        True,
    )

    def nobody(_: object) -> list[list[str]]:
        raise OSError

    assert bill.audit(parts, "snellen", nobody) == ([], False)

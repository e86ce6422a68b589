"""Claims of units: one of many gets each, and what a killed process left is claimed again by one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snellen.core.errors import EnvironmentProblem
from snellen.core.homes import Part
from snellen.store.part_progress import Claim, Claims, remove_claims


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.d").mkdir()
    return tmp_path


def claims(folder: Path, index: int, count: int = 64) -> Claims:
    return Claims(folder, Part(index, count), f"{index:04}-of-{count:04}.a0.log")


def test_of_many_that_claim_a_unit_one_gets_it(folder: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        took = list(pool.map(lambda index: claims(folder, index).take((3, 7)), range(16)))
        again = list(pool.map(lambda index: claims(folder, index).take((3, 7), 1), range(16)))
    assert sum(took) == sum(again) == 1
    held = claims(folder, 0).read((3, 7))
    assert (held.generation, held.part) == (1, again.index(True))
    assert claims(folder, 0).held() == {(3, 7): 1} and claims(folder, 0, 8).held() == {}


def test_a_claim_whose_maker_was_killed_at_once_is_nobodys(folder: Path) -> None:
    assert claims(folder, 1).take((0, 0))
    next((folder / "run.d" / "claims").iterdir()).write_bytes(b"")
    assert claims(folder, 2).read((0, 0)) == Claim((0, 0), 0, "") and claims(folder, 2).read((0, 0)).part is None


def test_claims_are_removed_with_the_logs_and_a_folder_that_takes_none_is_said(folder: Path) -> None:
    assert claims(folder, 1).take((0, 0))
    remove_claims(folder)
    remove_claims(folder)
    assert not list((folder / "run.d").iterdir())
    (folder / "run.d" / "claims").write_bytes(b"no folder")
    with pytest.raises(EnvironmentProblem, match="claims"):
        claims(folder, 1).take((0, 0))

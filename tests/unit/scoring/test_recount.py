"""A bounded sample of `make recount`: every number of drawn runs is counted again in plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import recount
from snellen.core.types import Estimate
from snellen.scoring.aggregates.counts import TaskCounts

RUNS = 8
"""Runs a test; other seeds than those of the long target."""


@pytest.mark.parametrize("first", range(100_000, 100_040, RUNS))
def test_every_number_is_that_of_the_recount(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + RUNS):
        run, found = recount.check_seed(seed, tmp_path / str(seed))
        assert not found, f"seed {seed}, {run.shape}: {found[:5]}"


def test_the_recount_finds_a_count_that_is_off_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle = TaskCounts._settle

    def off(self: TaskCounts, estimate: Estimate, seen: int | None, planned: int | None) -> Estimate:
        return settle(self, estimate, seen if seen is None else seen + 1, planned)

    monkeypatch.setattr(TaskCounts, "_settle", off)
    _, found = recount.check_seed(100_000, tmp_path / "run")
    assert any(".left_out: 1, recounted 0" in line for line in found)

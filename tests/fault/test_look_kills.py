"""Trials with tools that are killed at every boundary of every turn are as if nobody had killed them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from waiting import CEILING_S

PROGRAM = Path(__file__).parents[1] / "look_kills.py"


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize(("trials", "workers"), [(2, 1), (3, 4), pytest.param(50, 1, marks=pytest.mark.nightly)])
def test_killed_before_and_after_every_commit_it_ends_as_an_unbroken_run(trials: int, workers: int) -> None:
    """A process of its own forks: this one has threads."""
    command = [sys.executable, str(PROGRAM), str(trials), str(workers)]
    limit_s = CEILING_S * (10 if trials > 3 else 1)
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

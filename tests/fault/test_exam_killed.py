"""An exam that is killed at any moment, ten times over (three in `make test`), and continued, leaves the exam.json of an undisturbed one."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
DRIVER = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from exam_observer import Observer, sit

class Killed(Observer):
    async def predict(self, request, images):
        if self.asked == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().predict(request, images)

sit(Path(sys.argv[2]), Killed(), mode="quick", tests=("acuity", "orientation", "contrast", "recipe"))
"""


def sit_in_process(folder: Path, killed_after: int) -> int:
    command = [sys.executable, "-c", DRIVER, str(TESTS), str(folder), str(killed_after)]
    return subprocess.run(command, check=False, capture_output=True, timeout=300).returncode


@pytest.mark.parametrize(("kills_wanted", "latest"), [(3, 40), pytest.param(10, 14, marks=pytest.mark.slow)])
def test_kills_change_nothing(tmp_path: Path, kills_wanted: int, latest: int) -> None:
    assert sit_in_process(tmp_path / "whole", -1) == 0
    moments = random.Random(20)
    kills = 0
    while kills < kills_wanted:
        ended = sit_in_process(tmp_path / "killed", moments.randint(0, latest))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        kills += 1
    assert kills >= kills_wanted - 2, "the exam was over too early to be killed"
    assert sit_in_process(tmp_path / "killed", -1) == 0
    whole, killed = ((tmp_path / name / "exam.json").read_bytes() for name in ("whole", "killed"))
    assert whole == killed

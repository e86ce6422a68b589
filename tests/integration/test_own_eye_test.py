"""The guide's eye test of one's own (`examples/eye_test.py`) is examined like any other, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run_command
from snellen.cli.exam import read_budget
from snellen.core.errors import UsageError

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "eye_test.py"
QUICK = ("exam", "--model", "blind/first", "--quick", "--no-cache")


def test_the_guide_is_forty_lines_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(GUIDE.read_text("utf-8").splitlines()) <= 40
    folder = tmp_path / "run"
    assert run_command([*QUICK, "--plugin", GUIDE, "--tests", "strokes", "-o", folder, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tests"]["strokes"]
    assert found["verdict"] == "not measurable" and "right when it is easy" in found["reason"]
    assert (folder / "prescription.html").is_file()


def test_two_exams_are_compared_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        assert run_command([*QUICK, "--tests", "orientation", "-o", tmp_path / name]) == 0
    assert "not measurable" in capsys.readouterr().out
    assert run_command(["exam", "compare", tmp_path / "a", tmp_path / "b"]) == 0
    assert "nothing could be compared" in capsys.readouterr().out
    assert run_command(["exam", "compare", tmp_path / "a", tmp_path]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["exam"],
        ["exam", "--model", "blind/first", "--quick", "--fine"],
        ["exam", "--model", "blind/first", "--tests", "x"],
    ],
)
def test_wrong_commands_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_budget_is_requests_tokens_or_money() -> None:
    assert read_budget("2000") == {"requests": 2000}
    assert read_budget("3e6 tokens") == {"tokens": 3_000_000}
    assert read_budget("2.5 euro") == {"max_cost": 2.5}
    for wrong in ("many", "-3", "5 pounds"):
        with pytest.raises(UsageError, match="--budget"):
            read_budget(wrong)

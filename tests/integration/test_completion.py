"""Shells complete our commands and options, and asking them imports nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import run_command

MAIN = "from snellen.cli.main import main; main()"


def completed(words: str, place: int) -> list[str]:
    environment = {**os.environ, "_SNELLEN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    code = "import sys; sys.argv = ['snellen']; " + MAIN
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    assert completed("snellen rep", 1) == ["report", "repair"]
    assert "leaderboard" in completed("snellen ", 1)
    assert "--baseline" in completed("snellen report --b", 2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_every_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["completion", shell]) == 0
    assert "_SNELLEN_COMPLETE" in capsys.readouterr().out


def test_several_tasks_are_summed_up_in_one_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "a-task-with-quite-a-long-name-that-is-never-cut"):
        rows = [{"question": "Which?", "options": ["a", "b"], "answer": "A"}]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    files = sorted(tmp_path.glob("*.jsonl"))
    assert run_command(["run", *files, "--model", "blind/first", "-o", tmp_path / "run"]) == 0
    shown = capsys.readouterr().out.partition("all tasks")[2]
    assert "one" in shown
    assert shown.count("100.0 %") == 2

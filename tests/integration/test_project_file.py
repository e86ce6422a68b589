"""`snellen init` and snellen.toml (`cli.project`): what every command below a folder begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import json_of, run_command

ROW = '{"question": "Cat or dog?", "options": ["cat", "dog"], "answer": "cat"}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my.jsonl").write_text(ROW, "utf-8")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run_command(["init", "my.jsonl", "--model", "blind/first"]) == 0
    return tmp_path


def test_after_init_run_alone_works_also_below_the_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "below")
    results = json_of("run", "--name", "one")
    assert (results["model"], list(results["tasks"])) == ("blind/first", ["my"])
    assert (project / "below" / "runs" / "one" / "run.db").is_file()


def test_a_flag_wins_and_what_was_taken_from_the_file_is_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "--model", "blind/longest", "-o", "r"]) == 0
    line = next(line for line in capsys.readouterr().err.splitlines() if "snellen.toml" in line)
    assert "tasks" in line
    assert "model" not in line.partition("snellen.toml")[2]
    assert json_of("show", "r")["model"] == "blind/longest"


@pytest.mark.parametrize(
    ("line", "named"),
    [('modle = "blind/first"', "model"), ('api_key = "sk-1"', "api_key_env"), ("model = [", "TOML")],
)
def test_a_file_that_cannot_be_meant_is_refused_by_name(
    project: Path, line: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "snellen.toml").write_text(line + "\n", "utf-8")
    assert run_command(["run", "my.jsonl", "--model", "blind/first"]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert "sk-1" not in said


def test_init_replaces_nothing_and_run_without_anything_names_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["init"]) == 2
    (project / "snellen.toml").unlink()
    assert run_command(["run", "--model", "blind/first"]) == 2
    assert "snellen init" in capsys.readouterr().err


def test_a_name_is_a_name(project: Path) -> None:
    assert run_command(["run", "--name", "a/b"]) == 2
    assert run_command(["run", "--name", "a", "-o", "b"]) == 2


def test_help_shows_what_people_use_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["run", "--help"])
    short = capsys.readouterr().out
    run_command(["run", "--help-all"])
    whole = capsys.readouterr().out
    assert ("--map" in short, "--batch-poll" in short, "--batch-poll" in whole) == (True, False, True)
    run_command(["run", "--temp", "0"])
    assert "--temperature" in capsys.readouterr().err

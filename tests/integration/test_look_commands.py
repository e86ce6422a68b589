"""`snellen report`, `show`, `leaderboard`, `compare --format` and `view` as typed."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from command_line import COMMAND, run_command
from hostile_run import make_hostile_run
from made_runs import make_run, make_task
from payloads import PAYLOADS
from snellen.cli.main import cli
from waiting import CEILING_S


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("look")
    for name, skill in (("one", 0.4), ("two", 0.95)):
        make_run(folder / name, model=f"openai/{name}", skill=skill, count=60, task=make_task(repeats=2))
    return folder


def typed(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)


def test_report_writes_one_file(runs: Path) -> None:
    result = typed("report", runs / "one", "--json")
    (file,) = json.loads(result.stdout)["files"]
    assert Path(file) == runs / "one" / "report.html"
    page = Path(file).read_text()
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    value = json.loads((runs / "one" / "results.json").read_text())["tasks"]["shapes"]["metrics"]["accuracy"]["value"]
    assert "openai/one" in page and f"{100 * value:.1f}" in page, "the page names the model and its headline figure"
    assert "openai/two" not in page
    assert "src=" not in page.replace('src="data:', ""), "one file: nothing is loaded from elsewhere"


def test_report_exports_into_the_named_folder(runs: Path, tmp_path: Path) -> None:
    assert typed("report", runs / "one", "--export", "csv", "-o", tmp_path).exit_code == 0
    assert (tmp_path / "trials.csv").read_text().startswith("task,sample,")


@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("terminal", "openai/two"),
        ("markdown", "| 1 | openai/two"),
        ("html", "<!doctype"),
        ("csv", "#,model"),
        ("latex", r"\begin{tabular}"),
    ],
)
def test_leaderboard_in_every_form(runs: Path, form: str, sign: str) -> None:
    assert sign in typed("leaderboard", runs, "--format", form).stdout


def test_leaderboard_as_json(runs: Path) -> None:
    board = json.loads(typed("leaderboard", runs, "--json").stdout)
    assert [line["name"] for line in board["lines"]] == ["two", "one"]


@pytest.mark.parametrize(
    ("form", "sign"),
    [("markdown", "two is better"), ("html", "<!doctype"), ("csv", "metric,A,B"), ("latex", r"\toprule")],
)
def test_compare_in_every_form(runs: Path, form: str, sign: str) -> None:
    assert sign in typed("compare", runs / "one", runs / "two", "--format", form).stdout


def test_show_prints_a_run_and_a_trial(runs: Path) -> None:
    assert "accuracy" in typed("show", runs / "one").stdout
    shown = typed("show", runs / "one", "--sample", "shape-00003").stdout
    for told in ("Which colour has shape number 3?", "A. red", "expected", "rule", "inference 2"):
        assert told in shown
    only = json.loads(typed("show", runs / "one", "--sample", "shape-00003", "--repeat", 2, "--json").stdout)
    assert [trial["prediction"]["key"]["repeat"] for trial in only] == [1]


def test_show_neutralises_terminal_escapes(tmp_path: Path) -> None:
    make_hostile_run(tmp_path)
    hostile = next(payload for payload in PAYLOADS if "\x1b" in payload)
    for arguments in (("show", tmp_path), ("show", tmp_path, "--sample", hostile), ("leaderboard", tmp_path)):
        assert "\x1b" not in typed(*arguments).stdout


@pytest.mark.parametrize(
    "arguments",
    [("show", "RUNS/one", "--sample", "shape-0003"), ("show", "RUNS/none"), ("report", "RUNS"), ("leaderboard", "RUNS/none"), ("leaderboard", "EMPTY"), ("view", "RUNS/none")],
)  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(
    runs: Path, tmp_path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = [argument.replace("RUNS", str(runs)).replace("EMPTY", str(tmp_path)) for argument in arguments]
    assert run_command(told) in (2, 3)
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_view_serves_on_this_machine_only_and_ends_when_told(runs: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra `view` is not installed")
    source = Path(__file__).resolve().parents[2] / "src"
    command = [*COMMAND, "view", str(runs), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(source)}) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        assert address.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0], timeout=CEILING_S)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"openai/one" in opener.open(address, timeout=CEILING_S).read()
        process.terminate()
        process.wait(20)

"""What a plug-in says of a task stands wherever it is read: in the terminal, in files, on the report and the viewer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run_command
from snellen.core.builtins import default_registry
from snellen.report.viewer.run_library import RunLibrary
from snellen.report.viewer.run_page import run_page

PLUGIN = """
from rich.table import Table
from snellen.core.markup import tag
from snellen.core.registry import Part


def describe(scored, keys):
    return {"asked": len(scored.task.variants), "notes": ["wordings were counted"]}, {}


def write(folder):
    (folder / "wordings.txt").write_text("written")


def tables(found):
    table = Table("wordings asked")
    table.add_row(str(found["asked"]))
    yield table


def section(reader, task, found, to):
    yield tag("p", f"asked in {found['asked']} wordings")


def register(registry):
    part = Part(axes=("wording",), describe=describe, files=write, tables=tables, section=section)
    registry.add("part", "wordings", part)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "wordings.py"
    path.write_text(PLUGIN)
    return path


@pytest.fixture
def run(plugin, tmp_path, capsys) -> Path:
    rows, folder = tmp_path / "rows.jsonl", tmp_path / "run"
    row = {"question": "Which?", "options": ["a cat", "a dog"], "answer": "A"}
    rows.write_text("".join(json.dumps(row | {"id": str(number)}) + "\n" for number in range(3)))
    asked = ["run", str(rows), "--model", "blind/first", "--plugin", str(plugin), "-o", str(folder), "--no-cache"]
    assert run_command([*asked, "--variant", "base", "--variant", "wording=1"]) == 0
    assert "wordings asked" in capsys.readouterr().out
    return folder


def test_it_stands_in_results_files_and_report(run):
    (task,) = json.loads((run / "results.json").read_text())["tasks"].values()
    assert task["wordings"]["asked"] == 2
    assert (run / "wordings.txt").read_text() == "written"
    assert "asked in 2 wordings" in (run / "report.html").read_text()


def test_it_stands_on_the_page_of_the_viewer(run, plugin):
    with RunLibrary([run], default_registry([plugin])).listed()[0].held() as opened:
        assert "asked in 2 wordings" in str(run_page(opened, "rows", has_report=True))


def test_a_run_scored_again_prints_it(run, plugin, capsys):
    (run / "report.html").unlink()
    assert run_command(["score", str(run), "--plugin", str(plugin)]) == 0
    assert "wordings asked" in capsys.readouterr().out
    assert "asked in 2 wordings" in (run / "report.html").read_text()

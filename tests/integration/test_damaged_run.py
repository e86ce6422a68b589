"""A damaged run on the command line: one line and exit 3 everywhere, and the way back."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from command_line import run_command


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, list[object]]:
    data = tmp_path / "my.jsonl"
    rows = [
        {"id": str(n), "question": "?", "options": [f"it is {n + 1}", "none"], "answer": f"it is {n + 1}"}
        for n in range(6)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["run", data, "--model", "blind/first", "-o", tmp_path / "run", "--quiet", "--no-cache"]
    assert run_command(command) == 0
    return tmp_path / "run", command


def test_a_damaged_run_is_one_line_then_repaired_and_continued(
    run: tuple[Path, list[object]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, command = run
    assert run_command(["doctor", folder]) == 0
    before = json.loads((folder / "results.json").read_text())["tasks"]
    database = sqlite3.connect(folder / "run.db")
    database.execute("UPDATE predictions SET body = x'7b22' WHERE sample = '3'")
    database.commit()
    database.close()
    for words in (["score", folder], ["report", folder], ["show", folder, "--sample", "3"]):
        capsys.readouterr()
        assert run_command(words) == 3, words
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1 and "snellen repair" in printed, printed
    assert run_command(["doctor", folder, "--json"]) == 3
    health = json.loads(capsys.readouterr().out)
    assert {table["table"]: (table["readable"], table["unreadable"]) for table in health["tables"]} == {
        "meta": (5, 0),
        "samples": (6, 0),
        "predictions": (5, 1),
        "attempts": (0, 0),
        "turns": (0, 0),
    }
    assert run_command(["repair", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["saved"]["predictions"] == 5
    assert run_command(["doctor", folder]) == 0
    assert run_command(command) == 0
    assert json.loads((folder / "results.json").read_text())["tasks"] == before
    assert run_command(["repair", folder]) == 3, "there is nothing to repair"


def test_the_same_command_asks_again_what_cannot_be_read(run: tuple[Path, list[object]]) -> None:
    folder, command = run
    before = json.loads((folder / "results.json").read_text())["tasks"]
    database = sqlite3.connect(folder / "run.db")
    database.execute("UPDATE predictions SET body = x'00'")
    database.commit()
    database.close()
    assert run_command(command) == 0
    assert json.loads((folder / "results.json").read_text())["tasks"] == before

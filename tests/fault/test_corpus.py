"""Two hundred files and replies of a stranger: nothing runs, nothing leaves, nothing fills memory, no output obeys them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from figures import note_figure
from hostile_corpus import ESCAPES, FORMULAS, PAYLOADS, Case, hostile_replies, write_corpus
from waiting import CEILING_S

pytestmark = pytest.mark.slow
CEILING_MB, CEILING_CPU_S = 512, 10.0
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Case]]:
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("corpus") / "files"
    return folder, write_corpus(folder)


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(TESTS), str(TESTS / "fault"), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, "SNELLEN_CACHE_DIR": str(folder / "cache"), "COLUMNS": "200"}


def read_all(folder: Path, cases: list[Case]) -> list[dict[str, Any]]:
    lines = "\n".join(f"{case.reader}\t{case.path}" for case in cases)
    child = [sys.executable, str(TESTS / "corpus_child.py"), str(folder.parent)]
    done = subprocess.run(child, input=lines, capture_output=True, text=True, env=environment(folder.parent), timeout=5 * CEILING_S, check=True)  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def problems(each: dict[str, Any]) -> list[str]:
    """What is wrong with how one file was read."""
    name = Path(each["path"]).name
    checks = {
        f"exit {each['code']}: {each['said'][-600:]}": each["code"] in (0, 1, 2, 3) and "Traceback" not in each["said"],
        "an escape reached the terminal": not each["escape"],
        f"{each['mb']:.0f} MB": each["mb"] <= CEILING_MB,
        f"{each['cpu_s']:.1f} s": each["cpu_s"] <= CEILING_CPU_S,
    }
    return [f"{name}: {what}" for what, holds in checks.items() if not holds]


def test_every_file_is_read_or_refused_within_its_ceilings(corpus: tuple[Path, list[Case]]) -> None:
    folder, cases = corpus
    found = read_all(folder, cases)
    assert len(found) == len(cases) >= 150
    assert not [problem for each in found for problem in problems(each)]
    assert not list(folder.parent.rglob("mark")), "a file of a stranger was run"
    refused = sum(each["code"] != 0 for each in found)
    most, slowest = max(each["mb"] for each in found), max(each["cpu_s"] for each in found)
    told = f"{refused} refused by one line, {len(found) - refused} read; at most {most:.0f} MB resident and {slowest:.1f} s CPU each; 0 programs, connections or files outside"
    note_figure("fault", f"{len(found)} hostile files, each in a child with limits", told)


def test_no_output_obeys_a_hostile_reply(corpus: tuple[Path, list[Case]], mock_server: Any, tmp_path: Path) -> None:
    folder, _ = corpus
    run = tmp_path / "run"
    words = [
        "run",
        folder / "questions.jsonl",
        "--model",
        f"replay/{folder / 'replies.jsonl'}",
        "-o",
        run,
        "--no-cache",
    ]
    told = say(words, tmp_path)
    told += say(["show", run], tmp_path) + say(["show", run, "--sample", "0"], tmp_path)
    told += say(["report", run, "--export", "csv", "-o", tmp_path / "export"], tmp_path) + say(
        ["report", run], tmp_path
    )
    assert "\x1b" not in told and "\x9b" not in told and "\x07" not in told
    page = (run / "report.html").read_text()
    assert "<script>fired" not in page and "onerror=fired" not in page.replace("&quot;", "").replace(
        "onerror=fired()&gt;", ""
    )
    csv.field_size_limit(2**24)
    cells = [
        cell
        for path in (tmp_path / "export").rglob("*.csv")
        for row in csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
        for cell in row
    ]
    assert len(cells) > len(hostile_replies())
    assert not [cell for cell in cells if cell[:1] in "=@\t\r" and cell], "a cell that a spreadsheet would run"
    assert not [cell for cell in cells if any(escape[0] in cell for escape in ESCAPES if escape[0] in "\x1b\x9b\x07")]
    note_figure("fault", f"{len(hostile_replies())} hostile replies through terminal, report.html and CSV", f"{len(ESCAPES)} terminal escapes, {len(FORMULAS)} formulas, {min(60, len(PAYLOADS))} scripts, 5 large ones: 0 obeyed")  # fmt: skip


def say(words: list[object], home: Path) -> str:
    command = [sys.executable, "-c", "from snellen.cli.main import main; main()", *map(str, words)]
    done = subprocess.run(command, capture_output=True, env=environment(home), timeout=CEILING_S, check=False)
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode in (0, 1), text[-2000:]
    return text

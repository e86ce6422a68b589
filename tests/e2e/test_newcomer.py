"""The README as a newcomer types it: every command of its code blocks runs, or is one that needs a server, a GPU or an installation."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from command_line import run_command

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("  #")[0].strip()
    for kind, block in BLOCKS
    if kind in ("", "bash", "sh")
    for line in block.splitlines()
    if line.startswith("snellen ")
]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with the `my.jsonl` that the README speaks of."""
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    PIL.Image.new("RGB", (40, 20), "white").save("a.png")
    rows = [
        {
            "id": n,
            "image": "a.png",
            "question": f"Question {n}?",
            "options": ["cat", "dog", "cow"],
            "answer": "B",
            "topic": n % 2,
        }
        for n in range(12)
    ]
    Path("my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def type_in(command: str, base_url: str) -> int:
    """Run a command as typed, but for the parts a reader replaces: NAME, and the address of the server."""
    words = shlex.split(command.replace("NAME", "mock").replace("http://localhost:8000/v1", base_url))
    return run_command(words[1:])


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) >= 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_runs(
    command: str, mock_server: Callable[..., Any], home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shorter = {"eyechart": " --limit 2", "exam": " --tests acuity"}
    command += next((flags for task, flags in shorter.items() if f" {task} " in command), "")
    assert type_in(command, mock_server().base_url) == 0
    out = capfd.readouterr().out
    assert ("prescription.html" if " exam " in command else "results.json") in out
    folder = next(home.glob("runs/*"))
    assert (
        (folder / "records.jsonl").read_text().count("\n")
        == json.loads((folder / "results.json").read_text())["usage"]["requests"]
        > 0
    )


def figures_out(text: str) -> list[str]:
    """Return the lines of a printed table and chart as their shape: what is a figure, a space or a rule is left out."""
    lines = (re.sub(r"[\d.,–%]+", "0", line) for line in text.splitlines())
    shapes = (re.sub(r"[ ━─┳╇┏┓┡┩┴└\u2800-\u28ff●0]+", " ", line).strip() for line in lines)
    return [shape for shape in shapes if shape]


def test_the_sample_of_the_readme_has_the_shape_of_what_the_demo_prints(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (sample,) = (block for kind, block in BLOCKS if kind == "text" and block.startswith("eyechart"))
    assert run_command(["run", "eyechart", "--model", "reader", "--limit", "9", "-o", home / "demo"]) == 0
    printed = capfd.readouterr().out
    assert set(figures_out(sample)) <= set(figures_out(printed)), "print the README's sample anew with `make demo`"
    heads = next(line for line in printed.splitlines() if "┃ metric" in line)
    assert heads.split() == next(line for line in sample.splitlines() if "┃ metric" in line).split()


def test_the_python_of_the_readme_means_what_its_comment_says() -> None:
    assert snellen.extract_choice("I first thought (A), but it must be (C).", ["cat", "dog", "cow"]).letter == "C"
    assert any("extract_choice" in block for kind, block in BLOCKS if kind == "python")


def test_own_data_is_grouped_resumed_and_refused_as_promised(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    base = ["run", "my.jsonl", "--model", "blind/first", "-o", "run"]
    assert run_command(base) == 0
    assert "by topic" in capfd.readouterr().out
    first = json.loads(Path("run/results.json").read_text())
    assert run_command(base) == 0
    assert json.loads(Path("run/results.json").read_text())["tasks"] == first["tasks"]
    capfd.readouterr()
    assert run_command([*base, "--temperature", "0.7"]) == 2
    assert "temperature was None, now 0.7" in capfd.readouterr().err


@pytest.mark.parametrize("answer", ["B", 1, "dog", "Dog", "(B)", "b."])
def test_the_answer_may_be_a_letter_an_index_or_the_text(home: Path, answer: object) -> None:
    Path("one.jsonl").write_text(json.dumps({"id": 1, "question": "?", "options": ["cat", "dog"], "answer": answer}))
    (sample,) = snellen.load_dataset("one.jsonl")
    assert sample.answers == ("dog",)


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "parquet"])
def test_other_formats_work_too_and_columns_can_be_named(home: Path, ending: str) -> None:
    rows = [{"id": n, "image": "a.png", "prompt": f"Q{n}?", "options": "cat|dog", "answer": "A"} for n in range(3)]
    if ending == "json":
        Path("t.json").write_text(json.dumps(rows))
    elif ending == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), "t.parquet")
    else:
        cut = "," if ending == "csv" else "\t"
        Path(f"t.{ending}").write_text(
            "\n".join([cut.join(rows[0]), *(cut.join(map(str, row.values())) for row in rows)])
        )
    arguments = [
        "run",
        f"t.{ending}",
        "--map",
        "question=prompt",
        "--model",
        "blind/first",
        "-o",
        f"run-{ending}",
        "--quiet",
    ]
    assert run_command(arguments) == 0
    found = json.loads(Path(f"run-{ending}/results.json").read_text())["tasks"]["t"]["metrics"]["accuracy"]
    assert (found["n"], found["value"]) == (3, 1.0)


@pytest.mark.parametrize("command", ["models", "tasks", "doctor", "cache info"])
def test_the_commands_that_only_look(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(command.split()) == 0
    assert capfd.readouterr().out

"""The code of the guides runs as it is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import run_command

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = str(ROOT / "examples" / "colours" / "questions.jsonl")


def code_of(page: str, marker: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    return next(block for block in blocks if marker in block)


def run(tmp_path, capsys, *flags):
    assert run_command(["run", QUESTIONS, "--no-cache", "--quiet", "--json", "-o", str(tmp_path / "run"), *flags]) == 0
    return json.loads(capsys.readouterr().out)["tasks"]["questions"]


def test_the_inferencer_of_the_guide_asks_twice(tmp_path, capsys):
    plugin = tmp_path / "checked.py"
    plugin.write_text(
        code_of("add-your-own-inferencer.md", "Inferencer")
        + '\ndef unsure(prompt):\n    return "B" if "Are you sure" in prompt else "A"\n'
    )
    flags = [
        "--plugin",
        str(plugin),
        "--model",
        "plugin/unsure",
        "--infer-method",
        "checked",
        "--variant",
        "base",
        "--variant",
        "checked=1",
    ]
    result = run(tmp_path, capsys, *flags)
    by_variant = {variant: metrics["accuracy"]["value"] for variant, metrics in result["groups"]["variant"].items()}
    assert by_variant == {"base": 0.0, "checked=1": 1.0}
    assert result["metrics"]["accuracy"]["n"] == 8


def test_the_composed_answers_of_the_guide_are_scored_and_keep_their_fields(tmp_path, capsys):
    plugin = tmp_path / "looks.py"
    plugin.write_text(
        code_of("add-your-own-inferencer.md", "LooksFirst")
        + '\ndef looking(prompt):\n    return "a field of colour" if "what you see" in prompt else "B"\n'
    )
    flags = ["--plugin", str(plugin), "--model", "plugin/looking", "--infer-method", "look-first"]
    result = run(tmp_path, capsys, *flags)
    assert (result["metrics"]["accuracy"]["n"], result["metrics"]["accuracy"]["value"]) == (4, 1.0)
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert [record["text"] for record in records] == ["It shows a field of colour. Answer: B"] * 4
    assert [record["fields"] for record in records] == [{"seen": "a field of colour", "letters": 1}] * 4


@pytest.mark.parametrize(("name", "marker", "trials"), [("checked", "CheckedJob", 8), ("look-first", "LooksFirst", 4)])
def test_an_inferencer_of_the_guides_is_a_load(tmp_path, capsys, mock_server, name, marker, trials):
    plugin = tmp_path / "mine.py"
    plugin.write_text(code_of("add-your-own-inferencer.md", marker))
    server = mock_server("--answer", "B")
    variants = ["--variant", "base", "--variant", "checked=1"] if name == "checked" else []
    command = ["perf", QUESTIONS, "--model", "openai/mock", "--base-url", server.base_url, "--plugin", plugin]
    out = tmp_path / "load"
    more = ["--infer-method", name, *variants, "--warmup", "0", "--no-pictures", "-o", out, "--json"]
    assert run_command([*command, *more]) == 0
    (level,) = json.loads(capsys.readouterr().out)["levels"]
    assert level["total"]["common"]["Success Requests"] == 8
    metrics = json.loads((out / "results.json").read_text())["tasks"]["questions"]["metrics"]
    assert (metrics["accuracy"]["n"], metrics["accuracy"]["value"]) == (trials, 1.0)
    assert metrics["accuracy"]["not_yet_asked"] == 0


def test_the_provider_of_the_guide_answers(tmp_path, capsys):
    plugin = tmp_path / "mine.py"
    plugin.write_text(code_of("add-your-own-model.md", "class Mine"))
    result = run(tmp_path, capsys, "--plugin", str(plugin), "--model", "mine/x")
    assert result["metrics"]["accuracy"]["n"] == 4


@pytest.mark.parametrize("page", ["local-models.md", "add-your-own-model.md"])
def test_every_flag_that_the_pages_name_exists(page):
    from snellen.cli.perf.command import perf
    from snellen.cli.report import report
    from snellen.cli.run import run as command

    known = {name for option in (*command.params, *report.params, *perf.commands["run"].params) for name in option.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (ROOT / "docs" / page).read_text()))
    assert named <= known | {"--model-arg"}

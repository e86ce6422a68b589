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


def test_the_provider_of_the_guide_answers(tmp_path, capsys):
    plugin = tmp_path / "mine.py"
    plugin.write_text(code_of("add-your-own-model.md", "class Mine"))
    result = run(tmp_path, capsys, "--plugin", str(plugin), "--model", "mine/x")
    assert result["metrics"]["accuracy"]["n"] == 4


@pytest.mark.parametrize("page", ["local-models.md", "add-your-own-model.md"])
def test_every_flag_that_the_pages_name_exists(page):
    from snellen.cli.run import run as command

    known = {name for option in command.params for name in option.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (ROOT / "docs" / page).read_text()))
    assert named <= known | {"--model-arg"}

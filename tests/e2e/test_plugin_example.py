"""The worked example of the guide, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run_command

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    "more", [["Colour_Interface"], ["Colour_Interface", "--infer-method", "likelihood"], ["name_colour"]]
)
def test_the_example_reads_every_colour(more, tmp_path, capsys):
    name, *flags = more
    questions = str(EXAMPLES / "colours" / "questions.jsonl")
    arguments = [
        "run",
        questions,
        "--plugin",
        str(EXAMPLES / "my_model.py"),
        "--model",
        f"plugin/{name}",
        "--no-cache",
        "--quiet",
        "--json",
    ]
    assert run_command([*arguments, "-o", str(tmp_path / "run"), *flags]) == 0
    results = json.loads(capsys.readouterr().out)
    accuracy = results["tasks"]["questions"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["failed"]) == (1.0, 4, 0)

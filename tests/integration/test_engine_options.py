"""The offline engine from the command line: its options, what is sampled, and what of it stands in plan and record."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from command_line import run_command
from vllm_standin import LLM, make_module

QUESTIONS = Path(__file__).resolve().parents[2] / "examples" / "colours" / "questions.jsonl"


@pytest.fixture(autouse=True)
def stand_in(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vllm", make_module())
    monkeypatch.setattr(LLM, "context", 10_000)
    monkeypatch.setenv("SNELLEN_CACHE", str(tmp_path / "cache"))


def run(tmp_path, *more):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return run_command(["run", QUESTIONS, "--model", f"vllm/{folder}", "-o", tmp_path / "run", "--no-cache", *more])


def test_options_of_the_engine_are_given_on_the_command_line(tmp_path):
    options = ["engine.enforce_eager=true", "engine.limit_mm_per_prompt.image=2", "dtype=float32"]
    assert run(tmp_path, "--quiet", *(part for option in options for part in ("--model-arg", option))) == 0
    (engine,) = LLM.made
    assert engine.arguments["enforce_eager"] is True
    assert engine.arguments["limit_mm_per_prompt"] == {"image": 2}
    assert engine.arguments["dtype"] == "float32"


def test_what_is_sampled_stands_in_the_plan_and_in_every_record(tmp_path, capfd):
    assert run(tmp_path) == 0
    assert "sampling: greedy (temperature unset: the checkpoint's own)" in capfd.readouterr().err
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert records
    assert all(record["used"]["temperature"] == 0.0 for record in records)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("engine.hf_token=canary-4711", "would be stored"),
        ("engine.dtype=half", "--model-arg dtype="),
        ("engine=eager", "engine"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(tmp_path, capfd, option, message):
    assert run(tmp_path, "--model-arg", option) == 2
    said = capfd.readouterr().err
    assert message in said
    assert "canary" not in said
    assert not LLM.made

"""`--constrain options` on a real vLLM server: every reply is one of the letters, and it is another protocol."""

from __future__ import annotations

import json

import pytest

from command_line import run_command
from engine_questions import NAME, records_of, write_rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
LETTERS = {"A", "B", "C"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("rows"), 12)


def run(rows, server, folder, *more, family="vllm-server"):
    model = ["--model", f"{family}/{NAME}", "--base-url", server, "--temperature", "1", "--sampling-seed", "7"]
    assert run_command(["run", rows, *model, *more, "-o", folder, "--no-cache", "--quiet"]) == 0
    return records_of(folder)


def test_random_weights_answer_in_form(rows, server, tmp_path):
    free = run(rows, server, tmp_path / "free", "--max-tokens", "24")
    held = run(rows, server, tmp_path / "held", "--max-tokens", "24", "--constrain", "options")
    assert not {record["text"] for record in free} & LETTERS
    assert {record["text"] for record in held} <= LETTERS
    assert {record["outcome"] for record in held} == {"scored"}
    print(f"vllm-server/ --constrain options: {len(held)} of {len(held)} replies are an offered letter")


def test_by_the_plain_dialect_a_reply_is_a_letter_or_cut(rows, server, tmp_path):
    """`openai/` asks for JSON, in which random weights may wander through white space until the limit."""
    held = run(rows, server, tmp_path / "held", "--max-tokens", "64", "--constrain", "options", family="openai")
    whole = [record["text"] for record in held if record["finish"] != "length"]
    assert set(whole) <= LETTERS
    print(f"openai/ --constrain options: {len(whole)} replies are an offered letter, {len(held) - len(whole)} cut")


def test_it_is_another_run(rows, server, tmp_path):
    for name, more in (("free", ()), ("held", ("--constrain", "options"))):
        run(rows, server, tmp_path / name, "--max-tokens", "8", *more)
    free, held = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("free", "held"))
    assert free["run"]["id"] != held["run"]["id"]
    assert held["run"]["config"]["model"]["constrain"] == "options"
    assert "constrain" not in free["run"]["config"]["model"]

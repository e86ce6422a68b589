"""vLLM's offline engine through `vllm/`: the values and the words of `hf/` on the same checkpoint, the same command."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from command_line import run_command
from engine_questions import answers_of, questions, to_generate, values_of, whole_texts
from snellen.model.local.transformers import create as create_local
from snellen.model.local.vllm import create as create_vllm
from snellen.model.options import ModelOptions
from waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
DATA = Path(__file__).resolve().parents[2] / "examples" / "colours" / "questions.jsonl"
ENGINE = {"dtype": "float32", "max_model_len": 512, "engine": {"enforce_eager": True}}


@pytest.fixture(scope="module")
def both(wide_checkpoint):
    """What the two ways of running a checkpoint say to all questions, scored and generated."""
    requests = [*questions(), *to_generate()]
    local = ModelOptions(arguments={"dtype": "float32", "device": "cpu"})
    replies = (
        answers_of(create_local, str(wide_checkpoint), local, requests),
        answers_of(create_vllm, str(wide_checkpoint), ModelOptions(arguments=ENGINE), requests),
    )
    wait_until(lambda: not multiprocessing.active_children(), "a closed model leaves no process behind")
    return replies


def test_likelihoods_are_those_of_the_checkpoint_run_here(both):
    mine, theirs = (values_of(replies) for replies in both)
    assert len(mine) == len(theirs) == 48
    worst = max(abs(a - b) for a, b in zip(mine, theirs, strict=True))
    print(f"vllm/ against hf/: 48 values, largest difference {worst:.2e}")
    assert worst <= 1e-3


def test_with_nothing_said_both_are_greedy_and_say_the_same(both):
    mine, theirs = ([reply for reply in replies if reply.loglikelihoods is None] for replies in both)
    assert whole_texts(mine) == whole_texts(theirs)
    assert [reply.usage.output_tokens for reply in mine] == [reply.usage.output_tokens for reply in theirs]
    assert {reply.detail["temperature"] for reply in (*mine, *theirs)} == {0.0}
    print(f"vllm/ and hf/: {len(mine)} replies, all the same")


@pytest.mark.parametrize("method", ["generation", "likelihood"])
def test_the_engine_is_set_on_the_command_line(wide_checkpoint, tmp_path, method, capfd):
    options = ["engine.enforce_eager=true", "dtype=float32", "max_model_len=512"]
    given = [part for option in options for part in ("--model-arg", option)]
    model = ["--model", f"vllm/{wide_checkpoint}", "--infer-method", method, "--max-tokens", "8", *given]
    assert run_command(["run", DATA, *model, "-o", tmp_path / "run", "--no-cache"]) == 0
    said = capfd.readouterr().err
    assert ("sampling: greedy (temperature unset: the checkpoint's own)" in said) is (method == "generation")
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert len(records) == 4
    assert not any(record["error"] for record in records)
    if method == "generation":
        assert {record["used"]["temperature"] for record in records} == {0.0}

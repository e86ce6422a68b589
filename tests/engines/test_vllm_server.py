"""A real vLLM server with a small vision model: its log-probabilities pass the self-test and equal `hf/`'s."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import msgspec
import pytest

from command_line import run_command
from engine_questions import NAME, answers_of, questions, values_of, without_pictures
from exchanges import Recording
from line_doubles import ask
from snellen.core.types import Likelihood
from snellen.model.local.transformers import create as create_local
from snellen.model.options import ModelOptions
from snellen.model.served.http_client import AiohttpClient
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai import create as create_served
from snellen.model.served.served_model import ServedModel

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "data" / "vllm" / "exchanges.json"
RECORD = "SNELLEN_RECORD_EXCHANGES"
"""Set it to write the golden file anew from the server at hand."""


@pytest.fixture(scope="module")
def local(wide_checkpoint):
    options = ModelOptions(arguments={"dtype": "float32", "device": "cpu"})
    return answers_of(create_local, str(wide_checkpoint), options, questions())


def test_served_likelihood_equals_the_checkpoint_run_here(server, local):
    served = answers_of(create_served, NAME, ModelOptions(base_url=server), questions())
    assert {reply.detail["route"] for reply in served} == {"chat-prompt-logprobs"}
    assert not any("untested" in reply.detail for reply in served)
    mine, theirs = values_of(local), values_of(served)
    assert len(mine) == len(theirs) == 48
    worst = max(abs(a - b) for a, b in zip(mine, theirs, strict=True))
    print(f"served against hf/: 48 values, largest difference {worst:.2e}")
    assert worst <= 1e-3
    assert [reply.detail["tokens"] for reply in served] == [reply.detail["tokens"] for reply in local]


def test_whole_texts_are_scored_alike(server, wide_checkpoint):
    """What perplexity needs: the values of the prompt's own tokens, those of the picture among them."""
    whole = [msgspec.structs.replace(request, likelihood=Likelihood(with_prompt=True)) for request in questions()[:4]]
    options = ModelOptions(arguments={"dtype": "float32", "device": "cpu"})
    mine = answers_of(create_local, str(wide_checkpoint), options, whole)
    theirs = answers_of(create_served, NAME, ModelOptions(base_url=server), whole)
    for here, there in zip(mine, theirs, strict=True):
        assert there.detail["prompt_logprobs"] == pytest.approx(here.detail["prompt_logprobs"], abs=1e-3)
        assert len(here.detail["prompt_logprobs"]) > 20


@pytest.mark.parametrize("route", ["text-prompt-logprobs", "echo"])
def test_text_routes_pass_their_test_too(server, route):
    blind = without_pictures(questions()[:2])
    replies = answers_of(create_served, NAME, ModelOptions(base_url=server, arguments={"likelihood": route}), blind)
    assert all(reply.loglikelihoods and "untested" not in reply.detail for reply in replies)


def test_a_run_on_the_command_line(server, tmp_path):
    data = Path(__file__).resolve().parents[2] / "examples" / "colours" / "questions.jsonl"
    model = ["--model", f"openai/{NAME}", "--base-url", server, "--infer-method", "likelihood"]
    assert run_command(["run", data, *model, "-o", tmp_path / "run", "--no-cache", "--quiet"]) == 0
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert {record["outcome"] for record in records} == {"scored"}
    assert {record["used"]["route"] for record in records} == {"chat-prompt-logprobs"}


def test_the_recorded_replies_are_what_it_says(server, local):
    """The golden replies that `make test` answers with; the same values again, or the double is no double any more."""
    values, replies = asyncio.run(_converse(server))
    if os.environ.get(RECORD):
        import torch
        import transformers
        import vllm

        made = {"vllm": vllm.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
        body = {"made_with": made, "served": values, "hf": values_of(local[:2]), "replies": replies}
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(json.dumps(body, separators=(",", ":")) + "\n")
    golden = json.loads(GOLDEN.read_text())
    assert values == pytest.approx(golden["served"], abs=1e-3)
    assert set(replies) == set(golden["replies"])


async def _converse(server):
    values, replies = [], {}
    for route in (None, "text-prompt-logprobs", "echo"):
        http = Recording(AiohttpClient())
        arguments = {} if route is None else {"likelihood": route}
        model = ServedModel(OpenAI(), NAME, ModelOptions(base_url=server, arguments=arguments), http=http)
        asked = questions()[:2]
        for request in asked if route is None else without_pictures(asked):
            reply = await ask(model, request)
            values += reply.loglikelihoods
        await model.close()
        replies |= http.replies
    return values, replies

"""Likelihood over the recorded replies of a real vLLM server: the values of `hf/`, and refusals where the server is changed.

Recorded by tests/engines/test_vllm_server.py, which also checks that a server at hand still says the same.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from engine_questions import questions, values_of
from exchanges import Replaying
from line_doubles import ask
from snellen.core.errors import StopRun
from snellen.model.options import ModelOptions
from snellen.model.served.openai import OpenAI
from snellen.model.served.served_model import ServedModel

GOLDEN = json.loads((Path(__file__).parent / "data" / "vllm" / "exchanges.json").read_text())
CHAT = "chat-prompt-logprobs"


def score(change=lambda reply: reply, **arguments):
    """Ask the recorded server, as it is or changed, the first two questions."""

    async def run():
        http = Replaying(GOLDEN["replies"], change)
        model = ServedModel(OpenAI(), "tiny", ModelOptions(base_url="http://x/v1", arguments=arguments), http=http)
        return [await ask(model, request) for request in questions()[:2]], http.asked

    return asyncio.run(run())


def first_words():
    """What the server said to the self-test's question."""
    (reply,) = (reply for name, reply in GOLDEN["replies"].items() if '"top_logprobs": 20' in name)
    return reply["choices"][0]


def without_numbers(reply):
    """A server that does not tell token numbers."""
    reply.pop("prompt_token_ids", None)
    for choice in reply["choices"]:
        choice.pop("token_ids", None)
    return reply


def without_rivals(reply):
    """A server that names no rivals of its words."""
    for choice in reply["choices"]:
        for row in (choice.get("logprobs") or {}).get("content") or []:
            row["top_logprobs"] = []
    return reply


def shifted(step):
    """A server whose values of the prompt belong to the token before (1) or after (-1)."""

    def change(reply):
        rows = reply.get("prompt_logprobs")
        if rows:
            values = [next(iter(row.values()))["logprob"] if row else 0.0 for row in rows]
            for place, row in enumerate(rows):
                for entry in (row or {}).values():
                    entry["logprob"] = values[min(max(place - step, 1), len(values) - 1)]
        return reply

    return change


def test_the_servers_own_words_are_no_text_that_comes_back_as_its_tokens():
    words = first_words()
    said, first = words["message"]["content"], words["logprobs"]["content"][0]["token"]
    assert first.startswith("<row_"), "a special token, which the text does not show"
    assert not said.startswith(first)
    assert len(words["token_ids"]) == len(words["logprobs"]["content"])


def test_served_likelihood_equals_the_checkpoint_run_here():
    replies, _ = score()
    assert values_of(replies) == pytest.approx(GOLDEN["hf"], abs=1e-3)
    assert {reply.detail["route"] for reply in replies} == {CHAT}
    assert not any("untested" in reply.detail for reply in replies)


def test_a_server_that_tells_no_token_numbers_is_tested_by_texts():
    replies, _ = score(without_numbers)
    assert values_of(replies) == pytest.approx(GOLDEN["hf"], abs=1e-3)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("also", [lambda reply: reply, without_numbers])
def test_the_same_server_off_by_one_is_refused_even_if_it_is_named(step, also):
    for arguments in ({}, {"likelihood": CHAT}):
        with pytest.raises(StopRun, match="not aligned"):
            score(lambda reply: shifted(step)(also(reply)), **arguments)


def test_what_can_be_neither_proved_nor_disproved_is_used_only_if_it_is_named():
    with pytest.raises(StopRun, match=r"not to be tested.*--model-arg likelihood=chat-prompt-logprobs if you know"):
        score(without_rivals)
    replies, _ = score(without_rivals, likelihood=CHAT)
    assert values_of(replies) == pytest.approx(GOLDEN["hf"], abs=1e-3)
    assert all("not to be tested" in reply.detail["untested"] for reply in replies)

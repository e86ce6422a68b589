"""Qwen2-VL and a text model in vLLM's server and in its offline engine: the values and the words of `hf/`."""

from __future__ import annotations

import multiprocessing

import pytest

from engine_questions import (
    NAME,
    answers_of,
    greedily,
    questions,
    several_pictures,
    to_generate,
    values_of,
    whole_texts,
    without_pictures,
)
from engine_servers import CONTEXT, free_port, serving, vllm_command
from snellen.model.local.transformers import create as create_local
from snellen.model.local.vllm import create as create_vllm
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create as create_served
from waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
ENGINE = {"dtype": "float32", "max_model_len": CONTEXT, "engine": {"enforce_eager": True}}


@pytest.fixture(scope="module", params=["qwen2vl", "text"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def requests(kind):
    """Twelve questions to score, twelve to answer, and where there are eyes four with several pictures."""
    made = [*questions(), *greedily(to_generate())]
    return without_pictures(made) if kind == "text" else made + greedily(several_pictures())


@pytest.fixture(scope="module")
def local(kind, requests, checkpoint_of):
    options = ModelOptions(arguments={"dtype": "float32", "device": "cpu"})
    return answers_of(create_local, str(checkpoint_of(kind)), options, requests)


@pytest.fixture(scope="module", params=["server", "offline"])
def theirs(request, kind, requests, checkpoint_of, tmp_path_factory):
    """What the engine says, by its server or in this process."""
    if request.param == "offline":
        said = answers_of(create_vllm, str(checkpoint_of(kind)), ModelOptions(arguments=ENGINE), requests)
        wait_until(lambda: not multiprocessing.active_children(), "a closed model leaves no process behind")
        return request.param, said
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    with serving(vllm_command(checkpoint_of(kind), port), port, log) as running:
        return request.param, answers_of(create_served, NAME, ModelOptions(base_url=running.url), requests)


def test_likelihoods_are_those_of_the_checkpoint_run_here(kind, local, theirs):
    way, said = theirs
    mine, other = values_of(local), values_of(said)
    assert len(mine) == len(other) == 48
    worst = max(abs(a - b) for a, b in zip(mine, other, strict=True))
    print(f"vLLM {way}, {kind}, against hf/: 48 values, largest difference {worst:.2e}")
    assert worst <= 1e-3


def test_greedy_replies_are_those_of_the_checkpoint_run_here(kind, local, theirs):
    way, said = theirs
    mine, other = ([reply for reply in replies if reply.loglikelihoods is None] for replies in (local, said))
    assert whole_texts(mine) == whole_texts(other)
    assert [reply.usage.input_tokens for reply in mine] == [reply.usage.input_tokens for reply in other]
    for here, there in zip(mine, other, strict=True):  # vLLM counts the token that ends a reply, hf/ does not
        assert there.usage.output_tokens - here.usage.output_tokens == (there.finish == "stop")
    print(f"vLLM {way}, {kind}, and hf/: {len(mine)} greedy replies, all the same")

"""Words of a real vLLM server: with one picture and with several, whole and streamed, as `hf/` says them."""

from __future__ import annotations

import pytest

from engine_questions import NAME, answers_of, greedily, several_pictures, to_generate, whole_texts
from snellen.model.local.transformers import create as create_local
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create as create_served

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries


@pytest.fixture(scope="module")
def served(server):
    """Replies to twelve questions with one picture and four with several, whole."""
    return answers_of(create_served, NAME, ModelOptions(base_url=server), greedily(to_generate() + several_pictures()))


@pytest.fixture(scope="module")
def local(wide_checkpoint):
    options = ModelOptions(arguments={"dtype": "float32", "device": "cpu"})
    return answers_of(create_local, str(wide_checkpoint), options, greedily(to_generate() + several_pictures()))


def test_greedy_replies_are_those_of_the_checkpoint_run_here(served, local):
    assert whole_texts(served) == whole_texts(local)
    for name in ("input_tokens", "output_tokens"):
        assert [getattr(reply.usage, name) for reply in served] == [getattr(reply.usage, name) for reply in local]
    print(f"served and hf/: {len(served)} greedy replies and their token counts, all the same")


def test_every_picture_of_several_is_looked_at(served):
    """Each adds the tokens of one."""
    *_, two, three, other_two, twice = served
    assert three.usage.input_tokens - two.usage.input_tokens == two.usage.input_tokens - _one(served)
    assert twice.usage.input_tokens == two.usage.input_tokens
    assert [len(reply.images) for reply in (two, three, other_two, twice)] == [2, 3, 2, 2]


def _one(served):
    """Input tokens of the same words with one picture: the second of the three questions."""
    return served[4].usage.input_tokens


def test_streamed_replies_say_the_same_and_tell_their_times(server, served):
    streamed = answers_of(
        create_served,
        NAME,
        ModelOptions(base_url=server),
        greedily(to_generate() + several_pictures(), stream=True),
    )
    assert whole_texts(streamed) == whole_texts(served)
    assert [reply.usage for reply in streamed] == [reply.usage for reply in served]
    for reply in streamed:
        assert reply.timing.sent < reply.timing.first_token <= reply.timing.done

"""Reading log-probabilities out of servers' replies: what belongs to the candidate and what to the prompt."""

from __future__ import annotations

import math

import pytest

from snellen.core.errors import ModelError
from snellen.core.types import Params, Request, TrialKey, Turn
from snellen.model.served import logprob_routes as routes
from snellen.model.served.logprob_routes import Token

ASKED = Request(
    TrialKey("t", "s"), (Turn("user", "What?"),), Params(max_tokens=99, extra_body={"top_k": 1}), choices=("a",)
)


def test_the_candidate_stands_as_the_assistants_unfinished_words():
    request = routes.scoring_request(ASKED, "a dog")
    assert request.messages[-1] == Turn("assistant", "a dog")
    assert request.params.extra_body == {
        "top_k": 1,
        "prompt_logprobs": 0,
        "add_generation_prompt": False,
        "continue_final_message": True,
    }
    assert (request.params.max_tokens, request.params.temperature) == (1, 0.0)
    bare = routes.scoring_request(ASKED, "")
    assert bare.messages == ASKED.messages
    assert bare.params.extra_body == {"top_k": 1, "prompt_logprobs": 0}


def test_prompt_logprobs_of_chat_and_completions():
    rows = [None, {"5": {"logprob": -1.5, "rank": 3, "decoded_token": "x"}, "9": {"logprob": -0.1, "rank": 1}}]
    wanted = [Token("", None), Token("x", -1.5, "5")]
    assert routes.read_prompt_logprobs({"prompt_logprobs": rows}) == wanted
    assert routes.read_prompt_logprobs({"choices": [{"prompt_logprobs": rows}]}) == wanted
    with pytest.raises(ModelError, match="ignored"):
        routes.read_prompt_logprobs({"choices": [{}]})


def test_the_candidate_is_what_comes_after_the_prompt():
    prompt = [Token("1", None), Token("2", -1.0)]
    assert routes.continuation_values([*prompt, Token("3", -2.0), Token("4", -3.0)], prompt) == [-2.0, -3.0]
    grown = [Token("1", None), Token("23", -4.0), Token("5", -0.5)]
    assert routes.continuation_values(grown, prompt) == [-3.0, -0.5]
    assert routes.continuation_values(prompt, prompt) == []


def test_echo_is_cut_by_characters():
    logprobs = {
        "tokens": ["What", "?", " a", " dog", "!"],
        "token_logprobs": [None, -1, -2, -3, -9],
        "text_offset": [0, 4, 5, 7, 11],
    }
    value = {"choices": [{"logprobs": logprobs}]}
    assert routes.read_echo(value, 5, 11) == [Token(" a", -2), Token(" dog", -3)]
    assert routes.read_echo(value, 6, 11)[0].name == " a", "a token that crosses the boundary belongs to the candidate"
    with pytest.raises(ModelError, match="ignored"):
        routes.read_echo({"choices": [{"logprobs": None}]}, 0, 1)


def test_letters_add_up_over_their_spellings():
    top = [
        Token("A", math.log(0.3)),
        Token(" A", math.log(0.1)),
        Token("(B", math.log(0.2)),
        Token("the", -1.0),
        Token("C", None),
    ]
    values = routes.letter_values(top, ["A", "(B)", "C"])
    assert values[0] == pytest.approx(math.log(0.4))
    assert values[1] == pytest.approx(math.log(0.2))
    assert values[2] <= -1e29


@pytest.mark.parametrize(
    ("choices", "expected"),
    [(("A", "B"), True), (("(A)", "(B)"), True), (("red", "blue"), False), (("A", "(A)"), False), (("",), False)],
)
def test_only_marks_can_be_told_apart_by_one_token(choices, expected):
    assert routes.are_marks(choices) is expected


def test_generated_tokens_of_both_dialects():
    chat = {
        "choices": [
            {
                "message": {"content": "Hi"},
                "logprobs": {
                    "content": [{"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Hi", "logprob": -0.5}]}]
                },
            }
        ]
    }
    assert routes.read_generated(chat) == ("Hi", [Token("Hi", -0.5)], [[Token("Hi", -0.5)]])
    text = {"choices": [{"text": "Hi", "logprobs": {"tokens": ["Hi"], "token_logprobs": [-0.5]}}]}
    assert routes.read_generated(text) == ("Hi", [Token("Hi", -0.5)], [])
    assert routes.read_generated({"choices": []}) == ("", [], [])

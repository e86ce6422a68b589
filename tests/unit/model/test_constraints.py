"""--constrain: each server is told in its own way, the answer is taken out, and it is another protocol."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from snellen.core.errors import ModelError, StopRun, UsageError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Request, TrialKey, Turn
from snellen.kits.clouds.bedrock_model import Bedrock
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel
from snellen.model.served.server_fields import unwrapped

ASKED = Request(TrialKey("t", "s"), (Turn("user", "Which?"),), marks=("A", "B"), shown=("a cat", "a dog"))


class Http:
    """Answers one constrained reply and keeps the body."""

    body: Any = None

    def __init__(self, text: str = '{"answer":"B"}', finish: str = "stop") -> None:
        self._choice = {"index": 0, "message": {"content": text}, "finish_reason": finish}

    async def send(self, url, body, headers, timeout_s):
        self.body = json.loads(b"".join(body))
        return HttpResponse(200, {}, json.dumps({"choices": [self._choice]}).encode())

    async def close(self) -> None:
        pass


def model_of(dialect: Any, wish: str | None, http: Any = None) -> ServedModel:
    return ServedModel(dialect, "m", ModelOptions(base_url="http://x/v1", constrain=wish), http)


@pytest.mark.parametrize("dialect", [OpenAI(), Responses(), Anthropic(), Gemini()])
def test_the_marks_of_each_question_are_sent(dialect: Any) -> None:
    body = json.loads(b"".join(model_of(dialect, "options").write_body(ASKED, {})))
    assert '"enum": ["A", "B"]' in json.dumps(body)
    assert "MARKS" not in json.dumps(body)


def test_the_answer_is_the_reply_and_the_run_is_another() -> None:
    http = Http()
    model = model_of(OpenAI(), "options", http)
    assert asyncio.run(model.predict(ASKED, {})).text == "B"
    assert http.body["response_format"]["type"] == "json_schema"
    assert model.identity()["constrain"] == "options"
    free = model_of(OpenAI(), None, http)
    assert asyncio.run(free.predict(ASKED, {})).text == '{"answer":"B"}'
    assert "constrain" not in free.identity() and "response_format" not in http.body


def test_json_is_left_as_it_is() -> None:
    http = Http()
    assert asyncio.run(model_of(OpenAI(), "json", http).predict(ASKED, {})).text == '{"answer":"B"}'
    assert http.body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("wish", "text", "finish", "offered"),
    [
        ("options", "The answer is B.", "stop", "one of A, B"),
        ("options", "Let me see. The answer", "length", "one of A, B"),
        ("options", '{"answer":"C"}', "stop", "one of A, B"),
        ("json", "B", "stop", "JSON"),
        ("json", "The answer", "length", "JSON"),
    ],
)
def test_a_server_that_ignores_the_wish_stops_the_run(wish: str, text: str, finish: str, offered: str) -> None:
    """`transformers serve` takes response_format, warns in its own log, and answers freely."""
    with pytest.raises(StopRun, match=f"does not keep to --constrain {wish}: it answered .* which is not {offered}"):
        asyncio.run(model_of(OpenAI(), wish, Http(text, finish)).predict(ASKED, {}))


@pytest.mark.parametrize(("text", "finish"), [('{"answer', "length"), (" B\n", "stop"), ("", "stop")])
def test_a_reply_that_was_cut_or_padded_shows_no_such_thing(text: str, finish: str) -> None:
    assert asyncio.run(model_of(OpenAI(), "options", Http(text, finish)).predict(ASKED, {})).text == text


@pytest.mark.parametrize(("dialect", "wish"), [(Bedrock(), "options"), (Anthropic(), "json"), (OpenAI(), "xml")])
def test_what_a_server_cannot_be_told_is_refused(dialect: Any, wish: str) -> None:
    with pytest.raises(UsageError, match="--constrain"):
        model_of(dialect, wish)


def test_a_question_without_options_is_a_failure_not_a_free_reply() -> None:
    with pytest.raises(ModelError, match="shows no options"):
        asyncio.run(model_of(OpenAI(), "options", Http()).predict(Request(ASKED.key, ASKED.messages), {}))


@pytest.mark.parametrize(
    ("text", "answer"),
    [('{"answer":"B"}', "B"), ("B", "B"), ('{"answer":2}', '{"answer":2}'), ("[1]", "[1]"), ("{", "{")],
)
def test_only_an_answer_in_an_object_is_taken_out(text: str, answer: str) -> None:
    assert unwrapped(text) == answer


@pytest.mark.parametrize("flag", [{"constrain": "options"}, {"prompt_cache": True}])
def test_a_model_of_this_machine_is_not_told(flag: dict[str, Any]) -> None:
    import snellen

    with pytest.raises(UsageError, match="is not a served model"):
        snellen.run(snellen.RunSettings(tasks=("eyechart",), model="blind/first", **flag))


@pytest.mark.parametrize("policy", [ImagePolicy(max_side=60), ImagePolicy(min_side=28)])
def test_a_size_is_refused_for_who_opens_pictures_itself(policy: ImagePolicy) -> None:
    import snellen

    with pytest.raises(UsageError, match="opens pictures itself"):
        snellen.run(snellen.RunSettings(tasks=("eyechart",), model="reader", image_policy=policy))

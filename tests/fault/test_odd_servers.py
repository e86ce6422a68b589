"""Replies of any shape: a server may send what it likes, and gets a typed error or a storable answer, never a crash."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_clock import FakeClock
from snellen.core.errors import ModelError, SnellenError
from snellen.core.types import Params, Prediction, Request, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.http_client import HttpStream
from snellen.model.served.openai import OpenAI
from snellen.model.served.post import HttpResponse
from snellen.model.served.replies import wait_of
from snellen.model.served.served_model import ServedModel

DIALECTS = [OpenAI, Anthropic, Gemini]
KEY = TrialKey("t", "s")

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=5), st.just("stop")
)
FIELDS = [
    "choices",
    "message",
    "content",
    "text",
    "delta",
    "usage",
    "prompt_tokens",
    "completion_tokens_details",
    "reasoning_tokens",
]
FIELDS += [
    "finish_reason",
    "reasoning_content",
    "refusal",
    "error",
    "model",
    "candidates",
    "parts",
    "type",
    "stop_reason",
    "index",
]
FIELDS += [
    "usageMetadata",
    "input_tokens",
    "finishReason",
    "promptTokenCount",
    "content_block",
    "stop_details",
    "thought",
]
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)


class Canned:
    """Answers every request with one body."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def send(self, *_: Any) -> HttpResponse:
        return HttpResponse(200, {}, self._body)

    def stream(self, *_: Any) -> Any:
        body = self._body

        class Response:
            async def __aenter__(self) -> HttpStream:
                async def chunks() -> Any:
                    yield body

                return HttpStream(200, {}, chunks())

            async def __aexit__(self, *_: Any) -> None:
                pass

        return Response()

    async def close(self) -> None:
        pass


def ask(dialect: Any, body: bytes, *, stream: bool = False) -> Prediction:
    model = ServedModel(dialect(), "m", ModelOptions(base_url="http://x"), Canned(body))
    return asyncio.run(model.predict(Request(KEY, (Turn("user", "?"),), Params(stream=stream or None)), {}))


def check(dialect: Any, body: bytes, *, stream: bool = False) -> None:
    try:
        prediction = ask(dialect, body, stream=stream)
    except ModelError as error:
        assert str(error)
        return
    assert msgspec.json.decode(msgspec.json.encode(prediction), type=Prediction) == prediction


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=120, deadline=None)
@given(value=values)
def test_any_json_is_a_typed_error_or_a_storable_answer(dialect: Any, value: Any) -> None:
    check(dialect, json.dumps(value).encode())
    check(dialect, b"data: " + json.dumps(value).encode() + b"\n\ndata: [DONE]\n\n", stream=True)


GOOD = {
    "choices": [{"message": {"content": "A"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}


def changed(path: list[Any], value: Any) -> bytes:
    whole: Any = json.loads(json.dumps(GOOD))
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(whole).encode()


@pytest.mark.parametrize("value", [5, 1.5, "x", [], {}, [1], {"a": 1}, True])
@pytest.mark.parametrize(
    "path",
    [["choices"], ["choices", 0], ["choices", 0, "message"], ["choices", 0, "finish_reason"], ["usage"], ["model"]],
)
def test_one_field_of_another_kind(path: list[Any], value: Any) -> None:
    check(OpenAI, changed(path, value))


@pytest.mark.parametrize("field", ["content", "reasoning_content", "refusal"])
@pytest.mark.parametrize("value", [5, [], {}, [{"text": 3}], {"text": "x"}])
def test_one_field_of_the_message_of_another_kind(field: str, value: Any) -> None:
    check(OpenAI, changed(["choices", 0, "message", field], value))


@pytest.mark.parametrize("value", ["12", 1.5, {}, [], "many", -1, 10**30])
def test_odd_counts_of_tokens_never_make_a_run_unreadable(value: Any) -> None:
    for path in (["usage", "completion_tokens_details"], ["usage", "prompt_tokens"]):
        body = changed(path, {"reasoning_tokens": value} if path[-1].endswith("details") else value)
        prediction = ask(OpenAI, body)
        assert prediction.text == "A"
        assert msgspec.json.decode(msgspec.json.encode(prediction), type=Prediction) == prediction


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[" * 100_000, b'{"choices":' * 50_000, b"\xff\xfe", b'"text"', b"<html>", b"NaN", b"{} {}"]
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_bodies_that_are_no_reply(dialect: Any, body: bytes) -> None:
    for stream in (False, True):
        with pytest.raises(ModelError):
            ask(dialect, b"data: " + body + b"\n\n" if stream else body, stream=stream)


@pytest.mark.parametrize(
    "body", [b'{"data": 5}', b'{"data": "x"}', b'{"models": {}}', b"[]", b'{"data": [1, {"id": null}]}', b"5"]
)
def test_an_odd_list_of_models_is_no_list(body: bytes) -> None:
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x"), Canned(body))
    asyncio.run(model.check())


def test_a_list_that_is_no_json_is_an_error_of_ours() -> None:
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x"), Canned(b"<html>"))
    with pytest.raises(SnellenError):
        asyncio.run(model.check())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-4", 0.0),
        ("inf", None),
        ("1e999", None),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("Thu, 01 Jan 1970 00:17:10 GMT", 30.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
        ("\x00", None),
    ],
)
def test_retry_after_is_a_finite_wait_or_none(value: str, expected: float | None) -> None:
    assert wait_of(500, {"Retry-After": value}, b"", FakeClock(1000.0)) == expected


def test_the_key_is_scrubbed_from_what_a_broken_stream_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234")
    event = {"choices": [{"delta": {"content": "your key is sk-canary-1234 \ud800"}}]}
    with pytest.raises(ModelError) as error:
        ask(OpenAI, b"data: " + json.dumps(event).encode() + b"\n\n", stream=True)
    assert error.value.detail == {"partial": "your key is **** \ufffd"}


@pytest.mark.parametrize(
    ("key", "shown"), [("sk-canary-1234-5678", "****"), ("EMPTY", "EMPTY")], ids=["a key", "a placeholder"]
)
def test_a_key_is_scrubbed_from_replies_but_a_placeholder_may_be_an_answer(
    key: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    message = {"content": f"It says {key}.", "reasoning_content": f"I see {key}"}
    prediction = ask(OpenAI, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())
    assert (prediction.text, prediction.reasoning) == (f"It says {shown}.", f"I see {shown}")


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n "])
def test_a_whole_reply_to_a_stream_and_a_byte_order_mark_are_read_and_an_error_is_none(start: bytes) -> None:
    whole = {"id": "c", "choices": [{"index": 0, "message": {"content": "OK"}, "finish_reason": "stop"}]}
    body = start + json.dumps(whole).encode()
    assert {ask(OpenAI, body, stream=stream).text for stream in (False, True)} == {"OK"}
    for bad in (b'{"error": {"message": "overloaded"}}', body[:-9]):
        with pytest.raises(ModelError):
            ask(OpenAI, start + bad.removeprefix(start), stream=True)

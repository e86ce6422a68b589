"""A failure is never an answer: servers that tell of an error with "200 OK", whole or streamed, in every dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from line_doubles import Scripted, jobs, work
from snellen.core.errors import ModelError
from snellen.core.types import FailureKind, Params, Prediction, Request, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.dialect import Dialect
from snellen.model.served.gemini import Gemini
from snellen.model.served.http_client import HttpStream
from snellen.model.served.openai import OpenAI
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel
from snellen.store.cache import ResponseCache


class Canned:
    """Answers every request with one body."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def send(self, *_: Any) -> HttpResponse:
        return HttpResponse(200, {}, self._body)

    def stream(self, *_: Any) -> Any:
        return _Stream(self._body)

    async def close(self) -> None:
        pass


class _Stream:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aenter__(self) -> HttpStream:
        return HttpStream(200, {}, self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        for byte in self._body:
            yield bytes([byte])

    async def __aexit__(self, *_: object) -> None:
        pass


def ask(dialect: Dialect, body: bytes, *, stream: bool = False, choices: tuple[str, ...] = ()) -> Prediction:
    model = ServedModel(dialect, "m", ModelOptions(base_url="http://x"), Canned(body))
    request = Request(TrialKey("t", "s"), (Turn("user", "?"),), Params(stream=stream or None), choices=choices)
    return asyncio.run(model.predict(request, {}))


def events(*values: object, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(value)}\n\n" for value in values]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def choice(text: str = "A", finish: str = "stop", **extra: object) -> dict[str, object]:
    return {"message": {"content": text}, "finish_reason": finish, **extra}


def delta(text: str = "A", finish: str | None = None, **extra: object) -> dict[str, object]:
    return {"delta": {"content": text}, "finish_reason": finish, **extra}


MESSAGE = {"code": 502, "message": "upstream is gone"}
CANDIDATE = {"content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}
BLOCKS = {"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn"}
START = {"type": "message_start", "message": {"model": "m"}}
TEXT = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "A"}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}

WHOLE: list[tuple[Dialect, object]] = [
    *((OpenAI(), {"choices": [choice(finish=reason)]}) for reason in ("error", "abort", "ERROR", "cancelled")),
    (OpenAI(), {"choices": [choice(error=MESSAGE)]}),
    (OpenAI(), {"choices": [choice()], "error": MESSAGE}),
    (OpenAI(), {"choices": [choice()], "error": "upstream is gone"}),
    (OpenAI(), {"object": "error", "message": "upstream is gone", "choices": [choice()]}),
    (OpenAI(), {"error": MESSAGE}),
    (Anthropic(), {"type": "error", "error": MESSAGE, **BLOCKS}),
    (Anthropic(), {"error": MESSAGE, **BLOCKS}),
    (Anthropic(), {**BLOCKS, "stop_reason": "error"}),
    (Gemini(), {"candidates": [CANDIDATE], "error": MESSAGE}),
    (Gemini(), {"candidates": [{**CANDIDATE, "error": MESSAGE}]}),
    *((Gemini(), {"candidates": [{**CANDIDATE, "finishReason": reason}]}) for reason in ("OTHER", "ERROR")),
]

STREAMED: list[tuple[Dialect, bytes]] = [
    *((OpenAI(), events({"choices": [delta(finish=reason)]})) for reason in ("error", "abort")),
    (OpenAI(), events({"choices": [delta()]}, {"choices": [delta(finish="stop", error=MESSAGE)]})),
    (OpenAI(), events({"choices": [delta()]}, {"choices": [delta(finish="stop")], "error": MESSAGE})),
    (OpenAI(), events({"choices": [delta(finish="stop")]}, {"error": MESSAGE})),
    (OpenAI(), events({"choices": [delta(finish="stop")]}, {"object": "error", "message": "upstream is gone"})),
    (
        OpenAI(),
        events({"choices": [delta(finish="stop")]}, done=False) + b'event: error\ndata: {"message": "gone"}\n\n',
    ),
    (OpenAI(), events({"choices": [delta(finish="stop")]}, done=False) + b"event: error\n\ndata: [DONE]\n\n"),
    (OpenAI(), events({"choices": [delta(finish="stop")]}, done=False) + b"event: error"),
    (Anthropic(), events(START, TEXT, END, {"type": "error", "error": MESSAGE})),
    (Anthropic(), events(START, TEXT, {"type": "message_delta", "delta": {"stop_reason": "abort"}})),
    (Gemini(), events({"candidates": [CANDIDATE]}, {"error": MESSAGE})),
    (Gemini(), events({"candidates": [{**CANDIDATE, "finishReason": "OTHER"}]})),
]


@pytest.mark.parametrize(("dialect", "value"), WHOLE)
def test_a_whole_reply_that_tells_of_an_error_is_a_retryable_failure(dialect: Dialect, value: object) -> None:
    with pytest.raises(ModelError) as caught:
        ask(dialect, json.dumps(value).encode())
    assert caught.value.kind is FailureKind.SERVER and caught.value.retryable


@pytest.mark.parametrize(("dialect", "body"), STREAMED)
def test_a_stream_that_tells_of_an_error_is_a_retryable_failure(dialect: Dialect, body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        ask(dialect, body, stream=True)
    assert caught.value.kind is FailureKind.SERVER and caught.value.retryable


@pytest.mark.parametrize(
    "value", [{"error": MESSAGE}, {"detail": "upstream is gone"}, {"object": "error", "message": "upstream is gone"}]
)
def test_an_error_sent_with_200_keeps_its_message(value: object) -> None:
    with pytest.raises(ModelError, match="upstream is gone"):
        ask(OpenAI(), json.dumps(value).encode())


def test_scored_candidates_of_a_reply_that_was_given_up_are_no_numbers() -> None:
    value = {"choices": [{**choice(finish="abort"), "logprobs": {}}], "prompt_logprobs": [None, {"1": {"logprob": -1}}]}
    with pytest.raises(ModelError, match="gave the reply up") as caught:
        ask(OpenAI(), json.dumps(value).encode(), choices=("A", "B"))
    assert caught.value.retryable


@pytest.mark.parametrize("nothing", [None, "", {}, False])
def test_an_empty_error_beside_an_answer_is_none(nothing: object) -> None:
    value = {"choices": [choice(error=nothing)], "error": nothing}
    assert ask(OpenAI(), json.dumps(value).encode()).text == "A"
    assert ask(Gemini(), json.dumps({"candidates": [CANDIDATE], "error": nothing}).encode()).text == "A"


def test_the_answer_is_the_choice_of_index_0_wherever_it_stands() -> None:
    value = {"choices": [choice("B", index=1), choice("A", index=0)]}
    assert ask(OpenAI(), json.dumps(value).encode()).text == "A"
    assert ask(Gemini(), json.dumps({"candidates": [{**CANDIDATE, "index": 0}]}).encode()).text == "A"
    with pytest.raises(ModelError, match="no choices"):
        ask(OpenAI(), json.dumps({"choices": [choice("B", index=1)]}).encode())


def test_streamed_choices_are_not_merged() -> None:
    body = events(
        {"choices": [delta("A", index=0)]},
        {"choices": [delta("x", index=1)]},
        {"choices": [delta("y", index=1), delta("B", index=0)]},
        {"choices": [delta("", "stop", index=0)]},
    )
    assert ask(OpenAI(), body, stream=True).text == "AB"


def test_a_byte_order_mark_costs_no_event() -> None:
    body = b"\xef\xbb\xbf" + events({"choices": [delta("A")]}, {"choices": [delta("B", "stop")]})
    assert ask(OpenAI(), body, stream=True).text == "AB"


def test_a_reply_that_tells_of_an_error_is_never_cached(tmp_path: Path) -> None:
    served = ServedModel(
        OpenAI(),
        "m",
        ModelOptions(base_url="http://x"),
        Canned(json.dumps({"choices": [choice(finish="abort")]}).encode()),
    )

    async def answer(request: Request) -> Prediction:
        return await served.predict(request, {})

    cache = ResponseCache(tmp_path / "cache.db")
    state = work(tmp_path / "run", Scripted(answer), jobs(3), cache=cache).state
    assert (state.done, state.failed) == (3, 3)
    assert cache.info()["replies"] == 0
    cache.close()

"""What goes over the wire, for each provider: bodies, replies, streams and errors, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path

import PIL.Image
import pybase64
import pytest

from fake_clock import FakeClock
from line_doubles import ask as ask_model
from snellen.core.errors import EnvironmentProblem, ModelError, StopRun, UsageError
from snellen.core.secret import Secret
from snellen.core.types import FailureKind, Image, Params, Prediction, Request, TrialKey, Turn, Usage
from snellen.kits.clouds.bedrock_model import Bedrock
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.http_client import Body, HttpStream
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses
from snellen.model.served.post import HttpResponse
from snellen.model.served.replies import status_error
from snellen.model.served.served_model import ServedModel
from snellen.scoring.tables.table import costs_of, spent_on

KEY = TrialKey("t", "s")


class Recorder:
    """An HTTP client that answers from a script and remembers what it was sent."""

    def __init__(
        self,
        *responses: tuple[int, object],
        headers: Mapping[str, str] | None = None,
        pieces: list[bytes] | None = None,
    ) -> None:
        self.responses = list(responses)
        self.headers = headers or {}
        self.pieces = pieces or []
        self.bodies: list[bytes] = []
        self.urls: list[str] = []
        self.sent_headers: list[Mapping[str, str]] = []

    async def send(self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float) -> HttpResponse:
        self.urls.append(url)
        self.bodies.append(b"".join(body or ()))
        self.sent_headers.append(headers)
        status, value = self.responses.pop(0)
        return HttpResponse(status, self.headers, value if isinstance(value, bytes) else json.dumps(value).encode())

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        self.urls.append(url)
        self.bodies.append(b"".join(body or ()))

        async def chunks() -> AsyncIterator[bytes]:
            for piece in self.pieces:
                yield piece

        yield HttpStream(200, self.headers, chunks())

    async def close(self) -> None:
        pass


def ask(
    http: Recorder, dialect: object = None, request: Request | None = None, key: str | None = "sk-canary-key"
) -> Prediction:
    options = ModelOptions(base_url="http://x/v1", api_key=Secret(key) if key else None, clock=FakeClock())
    model = ServedModel(dialect or OpenAI(), "m", options, http)
    return asyncio.run(ask_model(model, request or Request(KEY, (Turn("user", "hi"),))))


def chat(content: object = "B", finish: str | None = "stop", **message: object) -> dict[str, object]:
    return {
        "model": "m-1",
        "choices": [{"message": {"content": content, **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }


def test_openai_sends_what_was_set_and_nothing_else(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    PIL.Image.new("RGB", (4, 4)).save(picture)
    params = Params(temperature=0.0, max_tokens=5, extra_body={"presence_penalty": 0.5})
    request = Request(
        KEY, (Turn("system", "s"), Turn("user", 'say "@0@" \\', (Image(str(picture)), Image(str(picture))))), params
    )
    http = Recorder((200, chat()))
    prediction = ask(http, request=request)
    body = json.loads(http.bodies[0])
    url = "data:image/png;base64," + pybase64.b64encode(picture.read_bytes()).decode()
    part = {"type": "image_url", "image_url": {"url": url}}
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [part, part, {"type": "text", "text": 'say "@0@" \\'}]},
        ],
        "temperature": 0.0,
        "max_tokens": 5,
        "presence_penalty": 0.5,
    }
    assert (prediction.text, prediction.finish, prediction.usage.input_tokens, len(prediction.images)) == (
        "B",
        "stop",
        3,
        2,
    )
    assert http.sent_headers[0]["Authorization"] == "Bearer sk-canary-key"


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (chat(None), FailureKind.DECODE, True),
        ({"choices": []}, FailureKind.DECODE, True),
        ([1], FailureKind.DECODE, True),
        ({"choices": [5]}, FailureKind.DECODE, True),
        (b"<html>Bad gateway</html>", FailureKind.DECODE, True),
        (b'{"choices": [{"message": {"content": "B', FailureKind.DECODE, True),
        (b'{"a": "\xff"}', FailureKind.DECODE, True),
        (chat(5), FailureKind.DECODE, True),
        (chat(None, "length"), FailureKind.TRUNCATED, False),
        (chat("x", "content_filter"), FailureKind.REFUSED, False),
        (chat(None, refusal="I cannot"), FailureKind.REFUSED, False),
    ],
)
def test_a_reply_without_an_answer_is_a_typed_error_never_text(
    reply: object, kind: FailureKind, retryable: bool
) -> None:
    with pytest.raises(ModelError) as error:
        ask(Recorder((200, reply)))
    assert (error.value.kind, error.value.retryable) == (kind, retryable)


def replies_that_ended(reason: str) -> list[tuple[object, object]]:
    """Return the same answer in each dialect with a reason to finish."""
    block = {"type": "text", "text": "B"}
    item = {"type": "message", "content": [{"type": "output_text", "text": "B"}]}
    return [
        (OpenAI(), chat("B", reason)),
        (Anthropic(), {"content": [block], "stop_reason": reason}),
        (Gemini(), {"candidates": [{"content": {"parts": [{"text": "B"}]}, "finishReason": reason.upper()}]}),
        (Responses(), {"status": reason, "output": [item]}),
        (Responses(), {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": [item]}),
        (Bedrock(), {"output": {"message": {"content": [{"text": "B"}]}}, "stopReason": reason}),
    ]


@pytest.mark.parametrize("reason", ["timeout", "preempted", "failed", "error", "cancelled", "of a kind of its own"])
def test_a_reason_to_finish_that_no_model_has_makes_no_answer_in_any_dialect(reason: str) -> None:
    for dialect, reply in replies_that_ended(reason):
        with pytest.raises(ModelError) as error:
            ask(Recorder((200, reply)), dialect)
        assert error.value.retryable, type(dialect)
        assert error.value.kind in (FailureKind.SERVER, FailureKind.TIMEOUT)
        assert reason in str(error.value).lower()


def test_a_stream_that_ended_for_such_a_reason_is_no_answer() -> None:
    with pytest.raises(ModelError, match="preempted"):
        ask(Recorder(pieces=[*FULL, event({"choices": [{"delta": {}, "finish_reason": "preempted"}]})]), request=STREAM)


CALL = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
TEXT = {"type": "text", "text": "OK"}


@pytest.mark.parametrize(
    ("reply", "kind", "names"),
    [
        (chat([{"type": "refusal", "refusal": "I cannot"}]), FailureKind.REFUSED, "I cannot"),
        (chat([TEXT, {"type": "refusal", "refusal": "I cannot"}]), FailureKind.REFUSED, "I cannot"),
        (chat([TEXT, {"type": "image_url", "image_url": {"url": "x"}}]), FailureKind.DECODE, "image_url"),
        (chat([{"type": "of a new kind", "text": "B"}]), FailureKind.DECODE, "of a new kind"),
        (chat("", tool_calls=CALL), FailureKind.DECODE, "tool"),
        (chat("OK", function_call={"name": "f", "arguments": ""}), FailureKind.DECODE, "tool"),
        (chat([]), FailureKind.DECODE, "null"),
    ],
)
def test_a_part_that_is_no_text_is_a_failure_of_its_kind(reply: object, kind: FailureKind, names: str) -> None:
    with pytest.raises(ModelError, match=names) as error:
        ask(Recorder((200, reply)))
    assert error.value.kind is kind


def test_parts_of_other_dialects_that_are_no_text() -> None:
    tool = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    parts = [{"text": "OK"}, {"inlineData": {"mimeType": "image/png", "data": "x"}}]
    message = {"type": "message", "content": [{"type": "output_text", "text": "OK"}]}
    calls = {"type": "function_call", "name": "f", "arguments": "{}"}
    replies = [
        (Anthropic(), {"content": [TEXT, tool], "stop_reason": "end_turn"}),
        (Gemini(), {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}),
        (Responses(), {"status": "completed", "output": [message, calls]}),
        (Bedrock(), {"output": {"message": {"content": [{"text": "OK"}, {"toolUse": {}}]}}, "stopReason": "end_turn"}),
        (Anthropic(), {"content": [TEXT, {"type": "unheard_of", "text": "no"}], "stop_reason": "end_turn"}),
        (Gemini(), {"candidates": [{"content": {"parts": [*parts[:1], {"unheardOf": {}}]}, "finishReason": "STOP"}]}),
        (Bedrock(), {"output": {"message": {"content": [{"text": "OK"}, {"unheardOf": 1}]}}, "stopReason": "end_turn"}),
    ]
    for dialect, reply in replies:
        with pytest.raises(ModelError) as error:
            ask(Recorder((200, reply)), dialect)
        assert (error.value.kind, error.value.retryable) == (FailureKind.DECODE, False), type(dialect)


def test_a_reasoning_part_is_no_part_of_the_answer() -> None:
    prediction = ask(Recorder((200, chat([{"type": "reasoning", "text": "maybe B"}, TEXT]))))
    assert (prediction.text, prediction.reasoning) == ("OK", "maybe B")
    pieces = [event(delta(content=[{"type": "reasoning", "text": "maybe B"}])), event(delta(content=[TEXT])), END[0]]
    prediction = ask(Recorder(pieces=pieces), request=STREAM)
    assert (prediction.text, prediction.reasoning) == ("OK", "maybe B")


@pytest.mark.parametrize("text", [None, 5, {"value": "OK"}, ["OK"], True])
def test_what_is_no_text_is_not_written_out_as_an_answer(text: object) -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    replies: list[tuple[object, object]] = [
        (OpenAI(), chat([{"type": "text", "text": text}])),
        (OpenAI(), chat([{"content": "OK"}])),
        (Anthropic(), {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}),
        (Gemini(), {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}),
        (Responses(), {"status": "completed", "output": [message]}),
        (Bedrock(), {"output": {"message": {"content": [{"text": text}]}}, "stopReason": "end_turn"}),
    ]
    for dialect, reply in replies:
        with pytest.raises(ModelError) as error:
            ask(Recorder((200, reply)), dialect)
        assert (error.value.kind, error.value.retryable) == (FailureKind.DECODE, True), type(dialect)
    with pytest.raises(ModelError):
        ask(Recorder(pieces=[event(delta(content=[{"type": "text", "text": text}])), END[0]]), request=STREAM)


def test_a_stream_that_was_cut_is_not_made_whole_by_a_later_stop() -> None:
    cut = {"choices": [{"index": 0, "delta": {"content": "It is"}, "finish_reason": "length"}]}
    stopped = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert ask(Recorder(pieces=[event(cut), event(stopped)]), request=STREAM).finish == "length"


def test_a_stream_of_messages_or_of_calls_is_no_empty_answer() -> None:
    message = event({"choices": [{"index": 0, "message": {"content": "OK"}, "finish_reason": "stop"}]})
    for pieces in ([message], [event(delta(tool_calls=CALL)), END[0]]):
        with pytest.raises(ModelError) as error:
            ask(Recorder(pieces=pieces), request=STREAM)
        assert error.value.kind is FailureKind.DECODE


@pytest.mark.parametrize("count", [2**63, 10**25, -1])
def test_a_count_that_no_reply_has_is_not_stored_and_is_told(count: int) -> None:
    reply = chat() | {"usage": {"prompt_tokens": count, "completion_tokens": 1}}
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1", clock=FakeClock()), Recorder((200, reply)))
    prediction = asyncio.run(ask_model(model, Request(KEY, (Turn("user", "hi"),))))
    assert (prediction.text, prediction.usage) == ("B", Usage(None, 1))
    assert any("token counts" in warning for warning in model.warnings)


def test_a_stored_count_of_any_size_is_scored() -> None:
    costs = costs_of([spent_on(Prediction(KEY, "B", usage=Usage(10**25, 1)))])
    assert (costs.tokens.tolist(), costs.input_tokens.tolist()) == ([1], [0])


def test_odd_but_legal_replies_are_read() -> None:
    assert ask(Recorder((200, chat("")))).text == ""
    assert ask(Recorder((200, chat([{"type": "text", "text": "B"}])))).text == "B"
    assert (
        ask(Recorder((200, chat(["O", "K"], tool_calls=[], function_call={"name": "", "arguments": ""})))).text == "OK"
    )
    assert ask(Recorder((200, b'{"choices": [{"message": {"content": "a\\ud800b\\u0000"}}]}'))).text == "a\ufffdb\ufffd"
    assert ask(Recorder((200, chat("B", reasoning_content="thus")))).reasoning == "thus"


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, {"error": {"message": "maximum context length is 4096 tokens"}}, FailureKind.TOO_LONG, False),
        (400, {"error": {"message": "bad image"}}, FailureKind.REQUEST, False),
        (403, {"error": "no"}, FailureKind.AUTH, False),
        (404, {"message": "unknown model"}, FailureKind.REQUEST, False),
        (408, b"", FailureKind.TIMEOUT, True),
        (409, b"", FailureKind.REQUEST, True),
        (413, b"<html>", FailureKind.PAYLOAD, False),
        (422, {"detail": "bad"}, FailureKind.REQUEST, False),
        (429, {"error": {"message": "slow"}}, FailureKind.RATE, True),
        (429, {"error": {"code": "insufficient_quota", "message": "pay"}}, FailureKind.QUOTA, False),
        (500, b"oops", FailureKind.SERVER, True),
        (503, b"", FailureKind.SERVER, True),
    ],
)
def test_http_errors_are_typed(status: int, body: object, kind: FailureKind, retryable: bool) -> None:
    with pytest.raises(ModelError) as error:
        ask(Recorder((status, body)))
    assert (error.value.kind, error.value.retryable, error.value.status) == (kind, retryable, status)


def test_401_stops_the_run_and_no_error_shows_the_key() -> None:
    with pytest.raises(StopRun) as error:
        ask(Recorder((401, {"error": {"message": "Incorrect API key provided: sk-canary-key"}})))
    assert "canary" not in str(error.value)


def test_retry_after_as_seconds_and_as_date() -> None:
    clock = FakeClock(1_000_000.0)
    assert status_error(429, {"Retry-After": "7"}, b"", clock).retry_after_s == 7.0
    assert status_error(429, {"Retry-After": formatdate(1_000_030.0, usegmt=True)}, b"", clock).retry_after_s == 30.0
    assert status_error(429, {"Retry-After": "soon"}, b"", clock).retry_after_s is None
    assert status_error(429, {}, b"", clock).retry_after_s is None


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(**fields: object) -> dict[str, object]:
    return {"choices": [{"delta": fields}]}


STREAM = Request(KEY, (Turn("user", "hi"),), Params(stream=True))
FULL = [
    event(delta(role="assistant")),
    b": ping\n\n",
    event(delta(reasoning_content="hm")),
    event(delta(content="Hel")),
    event(delta(content="lo")),
]
END = [
    event({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    event({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}),
]


def test_a_stream_is_put_together_whatever_its_cuts() -> None:
    whole = b"".join([*FULL, *END, b"data: [DONE]\n\n"])
    for size in (1, 7, 10_000):
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        prediction = ask(Recorder(pieces=pieces), request=STREAM)
        assert (prediction.text, prediction.reasoning, prediction.finish, prediction.usage.output_tokens) == (
            "Hello",
            "hm",
            "stop",
            3,
        )
        assert len(prediction.timing.token_times) == 3
        assert prediction.timing.first_token is not None
        assert prediction.timing.first_reasoning is not None


def test_a_stream_without_done_is_whole_if_it_said_why_it_finished() -> None:
    assert ask(Recorder(pieces=[*FULL, *END]), request=STREAM).text == "Hello"


@pytest.mark.parametrize(
    "pieces", [FULL, [], [*FULL, event({"error": {"message": "overloaded"}})], [*FULL, b"data: {bro"]]
)
def test_a_cut_or_broken_stream_is_no_answer_and_keeps_the_partial_text(pieces: list[bytes]) -> None:
    with pytest.raises(ModelError) as error:
        ask(Recorder(pieces=pieces), request=STREAM)
    assert error.value.retryable
    assert error.value.detail["partial"] == ("Hello" if pieces else "")


def piece(ident: str, content: str | None = None, finish: str | None = None) -> bytes:
    delta = {} if content is None else {"content": content}
    return event({"id": ident, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("c1", "O"), piece("c2", "XX"), piece("c1", "K"), piece("c1", finish="stop")],
        [piece("c1", "O"), piece("c2", finish="stop")],
        [piece("c1", "OK", "stop"), piece("c1", "XX")],
        [piece("c1", "OK"), piece("c1", finish="stop"), piece("c2", "XX", "stop")],
        [event({"choices": [{"index": 0, "delta": {"content": "O"}}, {"index": 0, "delta": {"content": "K"}}]})],
    ],
)
def test_pieces_of_two_replies_are_none(pieces: list[bytes]) -> None:
    with pytest.raises(ModelError) as error:
        ask(Recorder(pieces=[*pieces, b"data: [DONE]\n\n"]), request=STREAM)
    assert (error.value.kind, error.value.retryable) == (FailureKind.DECODE, True)


def test_a_piece_that_carries_nothing_may_have_any_name() -> None:
    usage = event({"id": "other", "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}})
    filtered = event({"id": "", "choices": [], "prompt_filter_results": []})
    pieces = [filtered, piece("c1", "OK"), piece("c1", finish="stop"), piece("c1", ""), usage]
    assert ask(Recorder(pieces=pieces), request=STREAM).text == "OK"


def test_other_dialects_end_a_reply_once() -> None:
    start = event({"type": "message_start", "message": {"id": "m1"}})
    text = event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "B"}})
    end = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    again = event({"type": "message_start", "message": {"id": "m2"}})
    assert ask(Recorder(pieces=[start, text, end]), Anthropic(), STREAM).text == "B"
    told = event({"type": "response.output_text.delta", "delta": "B"})
    done = event({"type": "response.completed", "response": {"id": "r1", "status": "completed"}})
    other = event({"type": "response.created", "response": {"id": "r2", "status": "in_progress"}})
    assert ask(Recorder(pieces=[told, done]), Responses(), STREAM).text == "B"
    streams = [
        (Anthropic(), [start, text, end, text]),
        (Anthropic(), [start, text, again, text, end]),
        (Responses(), [told, done, told]),
        (Responses(), [other, told, done]),
    ]
    for dialect, pieces in streams:
        with pytest.raises(ModelError) as error:
            ask(Recorder(pieces=pieces), dialect, STREAM)
        assert (error.value.kind, error.value.retryable) == (FailureKind.DECODE, True)


def test_gemini_may_say_with_every_piece_that_it_stops() -> None:
    pieces = [
        event({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}) for text in "OK"
    ]
    assert ask(Recorder(pieces=pieces), Gemini(), STREAM).text == "OK"


def test_anthropic_bodies_and_replies() -> None:
    reply = {
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "B"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    http = Recorder((200, reply))
    request = Request(KEY, (Turn("system", "s"), Turn("user", "hi")), Params(temperature=0.0, stop=("x",)))
    prediction = ask(http, Anthropic(), request)
    assert json.loads(http.bodies[0]) == {
        "model": "m", "max_tokens": 1024, "messages": [{"role": "user", "content": "hi"}], "system": "s", "temperature": 0.0, "stop_sequences": ["x"],
    }  # fmt: skip
    assert (prediction.text, prediction.reasoning, prediction.finish, prediction.usage.output_tokens) == (
        "B",
        "hm",
        "stop",
        2,
    )
    assert http.sent_headers[0]["x-api-key"] == "sk-canary-key"


def test_anthropic_streams() -> None:
    pieces = [
        event({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        event({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "B"}}),
        event({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 4}}),
        event({"type": "message_stop"}),
    ]
    prediction = ask(Recorder(pieces=pieces), Anthropic(), STREAM)
    assert (prediction.text, prediction.finish, prediction.usage.input_tokens, prediction.usage.output_tokens) == (
        "B",
        "length",
        9,
        4,
    )


def test_gemini_bodies_replies_and_blocks() -> None:
    part = {
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "B"}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 4},
    }
    http = Recorder((200, part))
    request = Request(
        KEY, (Turn("system", "s"), Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c")), Params(max_tokens=7)
    )
    prediction = ask(http, Gemini(), request)
    body = json.loads(http.bodies[0])
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
    assert body["generationConfig"] == {"maxOutputTokens": 7}
    assert http.urls[0].endswith("/models/m:generateContent")
    assert (prediction.text, prediction.reasoning, prediction.finish) == ("B", "hm", "stop")
    with pytest.raises(ModelError, match="blocked: SAFETY"):
        ask(Recorder((200, {"promptFeedback": {"blockReason": "SAFETY"}})), Gemini())


def check(http: Recorder) -> None:
    asyncio.run(ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1", clock=FakeClock()), http).check())


def test_preflight() -> None:
    check(Recorder((200, {"data": [{"id": "m"}]})))
    check(Recorder((404, b"")))
    with pytest.raises(UsageError, match=r"does not know model 'm' .*it serves: mm"):
        check(Recorder((200, {"data": [{"id": "mm"}]})))
    with pytest.raises(StopRun):
        check(Recorder((401, b"")))


def test_an_unreachable_server_is_an_environment_problem() -> None:
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://127.0.0.1:9/v1"))

    async def go() -> None:
        try:
            await model.check()
        finally:
            await model.close()

    with pytest.raises(EnvironmentProblem, match="not reachable"):
        asyncio.run(go())


@pytest.mark.parametrize("details", [{}, {"prompt_tokens_details": None, "completion_tokens_details": None}])
def test_details_that_a_server_leaves_out_or_empty_cost_no_counts(details: dict[str, object]) -> None:
    reply = OpenAI().parse(chat() | {"usage": {"prompt_tokens": 3, "completion_tokens": "1", **details}})
    assert reply.usage == Usage(3, 1)


def test_details_are_read_where_they_are() -> None:
    counts = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 2, "image_tokens": 5},
    }
    counts["completion_tokens_details"] = {"reasoning_tokens": 1, "audio_tokens": None}
    assert OpenAI().parse(chat() | {"usage": counts}).usage == Usage(9, 4, 1, 2, 5)

"""Every oddity of a server has one defined meaning, and none of its error texts becomes an answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from snellen.model.served.anthropic import Anthropic
from snellen.model.served.connection import Response
from snellen.model.served.openai import OpenAI
from snellen.perf.collect import Collector, cancelled
from snellen.perf.metrics import first_content, output_tokens
from snellen.perf.timeline import CANCELLED, RequestRecord


def event(delta: dict[str, Any] | None = None, **fields: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": fields.pop("finish", None)}]
    return b"data: " + json.dumps({"choices": choices, **fields}).encode() + b"\n\n"


ROLE = event({"role": "assistant", "content": ""})
USAGE = event(
    None, usage={"prompt_tokens": 9, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 1}}
)
END = event({}, finish="stop")
DONE = b"data: [DONE]\n\n"


def collect(*pieces: bytes, status: int = 200, error: Exception | None = None) -> tuple[RequestRecord, Collector]:
    """Play pieces at 1, 2, 3 … seconds into a collector and read it."""

    async def play() -> Collector:
        collector = Collector(OpenAI())
        collector.sent = 0.5
        for moment, piece in enumerate(pieces, 1):
            collector.on_data(piece, float(moment))
        response = Response(lambda data: None)
        response.status = status
        collector.on_end(response, float(len(pieces)), error)
        await collector.done
        collector.read()
        return collector

    collector = asyncio.run(play())
    return collector.record("x", 0.25), collector


def text(collector: Collector) -> str | None:
    return collector.reply.text if collector.error is None else None


def test_role_empty_and_usage_events_are_no_text() -> None:
    record, collector = collect(
        ROLE, event({"content": ""}), event({"content": "Hel"}), event({"content": "lo"}), END, USAGE, DONE
    )
    assert text(collector) == "Hello"
    assert (record.first_event, record.first_content, record.chunks) == (1.0, 3.0, (3.0, 4.0))
    assert record.silent == (1.0, 2.0, 5.0, 6.0)
    assert (record.end, record.done) == (4.0, 7.0)
    assert (record.input_tokens, record.output_tokens, record.reasoning_tokens, record.counted_by) == (
        9,
        4,
        1,
        "server",
    )


def test_reasoning_and_content_are_apart() -> None:
    record, collector = collect(event({"reasoning_content": "hm"}), event({"content": "B"}, finish="stop"), DONE)
    assert (record.first_reasoning, record.first_content, record.chunks) == (1.0, 2.0, (1.0, 2.0))
    assert (collector.reply.reasoning, text(collector)) == ("hm", "B")


def test_several_tokens_in_one_event_and_several_events_in_one_read() -> None:
    record, collector = collect(event({"content": "four tokens at once"}) + event({"content": "!"}), END + USAGE, DONE)
    assert record.chunks == (1.0, 1.0)
    assert record.output_tokens == 4
    assert text(collector) == "four tokens at once!"


def test_an_event_cut_in_two_reads_is_stamped_when_it_is_whole() -> None:
    whole = event({"content": "late"}, finish="stop")
    record, collector = collect(whole[:10], whole[10:], DONE)
    assert record.chunks == (2.0,)
    assert text(collector) == "late"


def test_without_usage_tokens_are_counted_by_event_and_marked() -> None:
    record, _ = collect(event({"content": "a"}), event({"content": "b"}, finish="stop"), DONE)
    assert (record.output_tokens, record.counted_by, output_tokens(record)) == (None, "chunks", 2)


def test_a_whole_reply_to_a_stream_request_has_no_first_token() -> None:
    body = json.dumps(
        {
            "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
    )
    record, collector = collect(body.encode()[:20], body.encode()[20:])
    assert text(collector) == "yes"
    assert (record.ok, record.streamed, first_content(record), record.end) == (True, False, None, 2.0)


@pytest.mark.parametrize(
    "ending", [b"", DONE, END], ids=["no end at all", "done without finish", "finish without done"]
)
def test_how_a_stream_may_end(ending: bytes) -> None:
    record, _ = collect(event({"content": "half"}), *filter(None, [ending]))
    assert record.ok is bool(ending)
    assert record.failure == (None if ending else "network")


def test_an_error_in_mid_stream_is_a_failure_and_its_text_no_answer() -> None:
    record, collector = collect(
        event({"content": "Par"}), b'data: {"error": {"message": "engine died"}}\n\n', event({"content": "is"}), DONE
    )
    assert (record.failure, text(collector)) == ("server", None)
    assert "engine died" in (record.message or "")
    assert record.first_content == 1.0


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, b'{"error": {"message": "CUDA out of memory"}}', "server"),
        (503, b"<html>busy</html>", "server"),
        (429, b"{}", "rate"),
        (400, b'{"error": {"message": "maximum context length"}}', "too_long"),
        (401, b"{}", "auth"),
    ],
)
def test_error_statuses_are_typed_timed_and_quoted(status: int, body: bytes, kind: str) -> None:
    record, collector = collect(body, status=status)
    assert (record.failure, record.status, record.done, text(collector)) == (kind, status, 1.0, None)
    assert f"HTTP {status}" in (record.message or "")


@pytest.mark.parametrize(("page", "failure"), [("It works!", "decode"), ("login", "auth")])
def test_a_200_page_of_html_is_a_failure(page: str, failure: str) -> None:
    record, _ = collect(f"<!DOCTYPE html><html>{page}</html>".encode())
    assert record.failure == failure


def test_empty_choices_and_null_content_are_failures() -> None:
    assert collect(event(None), DONE)[0].failure == "decode"
    assert collect(event({"content": None}, finish="stop"), DONE)[0].failure == "decode"


def test_a_lost_connection_keeps_what_was_timed() -> None:
    record, _ = collect(event({"content": "a"}), error=ConnectionError("the connection was closed"))
    assert (record.failure, record.done) == ("network", 1.0)


def test_long_streams_are_parsed_on_the_way() -> None:
    pieces = [event({"content": "w"}) for _ in range(500)]
    record, collector = collect(*pieces, END, DONE)
    assert len(record.chunks) == 500
    assert text(collector) == "w" * 500


def test_cancelled_is_its_own_outcome() -> None:
    async def play() -> RequestRecord:
        collector = Collector(OpenAI())
        collector.sent = 1.0
        collector.fail(cancelled(), 2.0)
        collector.read()
        return collector.record("x", 1.0)

    record = asyncio.run(play())
    assert (record.failure, record.done) == (CANCELLED, 2.0)


def test_another_providers_stream() -> None:
    """The collector knows no provider: Anthropic's typed events go through its own dialect."""
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]

    async def play() -> Collector:
        collector = Collector(Anthropic())
        for moment, value in enumerate(events, 1):
            collector.on_data(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode(), float(moment))
        response = Response(lambda data: None)
        response.status = 200
        collector.on_end(response, 9.0, None)
        collector.read()
        return collector

    collector = asyncio.run(play())
    record = collector.record("x", 0.0)
    assert (text(collector), record.first_event, record.first_content, record.output_tokens) == ("Hi", 1.0, 2.0, 2)


@pytest.mark.parametrize("events", [(END, DONE), (ROLE, END, DONE), (event({"role": "assistant"}), END, USAGE, DONE)])
def test_an_empty_reply_is_one_whether_it_is_streamed_or_whole(events: tuple[bytes, ...]) -> None:
    _, streamed = collect(*events)
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}
    _, whole = collect(json.dumps(body).encode())
    assert text(streamed) == text(whole) == ""


def test_a_stream_that_was_given_up_or_only_thought_is_no_empty_reply() -> None:
    for events in ((event({}, finish="error"), DONE), (event({}, finish="length"), DONE)):
        assert text(collect(*events)[1]) is None
    assert text(collect(event({"reasoning_content": "hm"}), END, DONE)[1]) is None

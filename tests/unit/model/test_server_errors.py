"""Every refusal a server was seen to make, in its own shape, becomes what it means; every reply that is no answer is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from snellen.core.errors import ModelError, StopRun
from snellen.core.types import FailureKind, Usage
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.openai import OpenAI
from snellen.model.served.replies import Reply, check_reply, error_rules, read_error, status_error, told_error, wait_of


class Clock:
    def time(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 0.0


CLOCK: Any = Clock()
SEEN = [(rule, case) for rule in error_rules() for case in rule.seen]


@pytest.mark.parametrize(("rule", "case"), SEEN, ids=[f"{rule.kind}-{case['body'][:60]}" for rule, case in SEEN])
def test_every_refusal_that_was_seen_means_what_its_rule_says(rule: Any, case: dict[str, Any]) -> None:
    error = status_error(case["status"], case.get("headers", {}), case["body"].encode(), CLOCK)
    assert (error.kind, isinstance(error, StopRun)) == (rule.kind, rule.stop)
    assert error.retryable == rule.again or error.status >= 500
    assert rule.fix in str(error)


def test_every_rule_has_a_case() -> None:
    assert all(rule.seen for rule in error_rules())


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, '[{"error":{"code":400,"message":"Unknown name"}}]', "request", "400 Unknown name"),
        (400, '{"code":"bad-thing","error":"some text"}', "request", "bad-thing some text"),
        (422, '{"object":"error","message":{"detail":[{"loc":["body","x"],"msg":"Extra"}]}}', "request", '"msg":"Extra"'),
        (502, "<html><head><title>502 Bad Gateway</title></head><body>long</body></html>", "server", "HTTP 502: 502 Bad Gateway"),
        (500, "", "server", "HTTP 500: "),
        (400, '{"error":{"message":"bio: string_above_max_length, context length"}}', "request", "string_above"),
        (400, "null", "request", "None"),
        (400, "[]", "request", "[]"),
        (429, '{"error":{"metadata":{"raw":"{\\"error\\":{\\"code\\":\\"insufficient_quota\\"}}"},"message":"Provider returned error"}}', "quota", "Provider"),
    ],
)  # fmt: skip
def test_bodies_of_other_shapes_keep_their_words(status: int, body: str, kind: str, words: str) -> None:
    error = status_error(status, {}, body.encode(), CLOCK)
    assert error.kind.value == kind
    assert words in str(error)


def test_what_is_named_as_the_wrong_parameter_is_kept() -> None:
    body = b'{"error":{"message":"Unsupported","param":"max_tokens","code":"unsupported_parameter"}}'
    assert read_error(400, body).param == "max_tokens"
    assert status_error(400, {}, body, CLOCK).detail["param"] == "max_tokens"


@pytest.mark.parametrize(
    ("status", "headers", "body", "wait"),
    [
        (429, {"retry-after-ms": "1500", "Retry-After": "9"}, b"", 1.5),
        (429, {"Retry-After": "9", "x-ratelimit-reset-tokens": "1h"}, b"", 9.0),
        (429, {"x-ratelimit-reset-requests": "500ms", "x-ratelimit-reset-tokens": "6m0s"}, b"", 360.0),
        (429, {"x-ratelimit-reset-tokens": "2m59.5s"}, b"", 179.5),
        (429, {"X-RateLimit-Reset-Tokens": "12"}, b"", 12.0),
        (429, {"anthropic-ratelimit-tokens-reset": "2023-11-14T22:13:30Z"}, b"", 10.0),
        (429, {"x-ratelimit-reset-tokens": "-1"}, b"", None),
        (429, {"x-ratelimit-reset-tokens": "soon"}, b"", None),
        (429, {}, b'{"error":{"details":[{"retryDelay": "37.5s"}]}}', 37.5),
        (429, {}, b"Please try again in 20ms.", 0.02),
        (429, {}, b"Please retry after 37 seconds.", 37.0),
        (429, {}, b"Try again in 20 milliseconds", 0.02),
        (429, {}, b"try again in 1h30m.", 5400.0),
        (429, {}, b"Please try again in 5 hours", 18_000.0),
        (429, {}, b"retry in 1 minute and 30 seconds, please", 90.0),
        (429, {}, b"retry in 12", 12.0),
        (429, {}, b"retry after 3 monkeys", 3.0),
        (429, {"x-ratelimit-reset-requests": "1700000012"}, b"", 12.0),
        (429, {"x-ratelimit-reset-requests": "1700000012500"}, b"", 12.5),
        (429, {"x-ratelimit-reset-requests": "1600000000"}, b"", None),
        (429, {"X-RateLimit-Reset": "1700000003"}, b"", 3.0),
        (429, {"x-ratelimit-reset": "1700000003500"}, b"", 3.5),
        (500, {"x-ratelimit-reset-tokens": "6m0s"}, b"", None),
        (429, {}, b"later", None),
    ],
)
def test_the_wait_is_read_wherever_it_is_said(status: int, headers: dict[str, str], body: bytes, wait: Any) -> None:
    assert wait_of(status, headers, body, CLOCK) == (pytest.approx(wait) if wait else None)


def test_a_server_may_say_itself_whether_to_ask_again() -> None:
    assert status_error(409, {"x-should-retry": "false"}, b"", CLOCK).retryable is False


@pytest.mark.parametrize(
    ("reason", "kind", "stops"),
    [
        ({"code": 429, "message": "slow"}, "rate", False),
        ({"code": 402, "message": "pay"}, "quota", True),
        ({"code": "server_error", "message": "x"}, "server", False),
        ("overloaded", "server", False),
        ({"code": 400, "message": "context length"}, "too_long", False),
    ],
)
def test_an_error_inside_a_good_reply_is_what_its_code_says(reason: Any, kind: str, stops: bool) -> None:
    error = told_error(reason)
    assert (error.kind.value, isinstance(error, StopRun)) == (kind, stops)
    assert str(error).startswith("the server reported an error: ")


@pytest.mark.parametrize(
    ("finish", "text", "kind", "retryable"),
    [
        ("sensitive", "", "refused", False),
        ("RECITATION", None, "refused", False),
        ("LANGUAGE", None, "refused", False),
        ("OTHER", None, "refused", False),
        ("OTHER", "half an", "server", True),
        ("parse_error", "x", "server", True),
        ("interrupted", "x", "server", True),
        ("failed", "x", "server", True),
        ("internal_error", "x", "server", True),
        ("server_error", "x", "server", True),
        ("client_disconnected", "x", "server", True),
        ("preempted", "x", "server", True),
        ("timeout", "x", "server", True),
        ("MODEL_ARMOR", "x", "refused", False),
        ("TOO_MANY_TOOL_CALLS", "x", "decode", False),
        ("length", "", "truncated", False),
        ("max_output_tokens", " \n", "truncated", False),
        ("model_length", "", "too_long", False),
        ("tool_calls", None, "decode", False),
        ("MALFORMED_FUNCTION_CALL", None, "decode", False),
    ],
)
def test_replies_that_are_no_answers(finish: str, text: str | None, kind: str, retryable: bool) -> None:
    with pytest.raises(ModelError) as error:
        check_reply(Reply(text=text, finish=finish, choices=1))
    assert (error.value.kind.value, error.value.retryable) == (kind, retryable)


def test_a_reply_cut_while_reasoning_says_so() -> None:
    thinking = Reply(text="", finish="length", choices=1, usage=Usage(5, 100, 100))
    with pytest.raises(ModelError, match="still reasoning: raise --max-tokens") as error:
        check_reply(thinking)
    assert error.value.kind is FailureKind.TRUNCATED


@pytest.mark.parametrize("finish", ["model_length", "model_context_window_exceeded", "max_tokens"])
def test_a_reply_that_was_cut_after_some_text_is_one_that_was_cut(finish: str) -> None:
    reply = Reply(text="The answer is", finish=finish, choices=1)
    check_reply(reply)
    assert reply.finish == "length"


def test_tokens_are_counted_as_each_provider_means_them() -> None:
    anthropic = {
        "input_tokens": 10,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20,
        "output_tokens": 5,
    }
    message = {"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn", "usage": anthropic}
    assert Anthropic().parse(message).usage == Usage(100, 5, None, 70, written_tokens=20)
    details = [{"modality": "TEXT", "tokenCount": 4}, {"modality": "IMAGE", "tokenCount": 258}]
    gemini = {
        "promptTokenCount": 262,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 90,
        "promptTokensDetails": details,
    }
    answer = {"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "STOP"}], "usageMetadata": gemini}
    assert Gemini().parse(answer).usage == Usage(262, 93, 90, None, 258)
    counts = {"prompt_tokens": 20, "completion_tokens": 9, "reasoning_tokens": 7}
    counts |= {"prompt_tokens_details": {"multimodal_tokens": {"image": 16}}, "prompt_cache_hit_tokens": 2}
    chat = {"choices": [{"message": {"content": "A"}}], "usage": counts}
    assert OpenAI().parse(json.loads(json.dumps(chat))).usage == Usage(20, 9, 7, 2, 16)

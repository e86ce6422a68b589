"""A server's response to a reply or a typed error: what is final, what is tried again, what stops the run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, ParamSpec, TypeVar

import msgspec

from ...core.clock import Clock
from ...core.errors import ModelError, StopRun
from ...core.secret import Secret
from ...core.text import clean_text
from ...core.types import FailureKind, Usage

P = ParamSpec("P")
T = TypeVar("T")
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
MESSAGE_LIMIT = 300
TOO_LONG = (
    "context length",
    "context_length",
    "maximum context",
    "too long",
    "too many tokens",
    "max_model_len",
    "prompt is too",
)
"""How servers say that a prompt does not fit; some with 400, some with 422, none with a code of its own."""
GAVE_UP = frozenset({"error", "abort", "aborted", "cancelled", "canceled", "insufficient_system_resource", "other"})
"""Reasons to finish that are none of the model's: what came before is a piece of a reply at best."""
KINDS = {413: FailureKind.PAYLOAD, 429: FailureKind.RATE, 403: FailureKind.AUTH, 408: FailureKind.TIMEOUT}


class Reply(msgspec.Struct, gc=False):
    """What any provider's response boils down to; a stream fills it piece by piece."""

    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    model: str | None = None
    refusal: str | None = None
    choices: int = 0
    closed: bool = False
    """True once the server said that the stream is complete."""


def scrub_reply(reply: Reply, secrets: Iterable[Secret]) -> None:
    """Mask keys wherever a reply quotes them: some gateways echo what they were sent. A short key may be an answer."""
    for secret in secrets:
        if not secret.is_placeholder:
            for name in ("text", "reasoning", "finish", "model", "refusal"):
                if quoted := getattr(reply, name):
                    setattr(reply, name, secret.scrub(quoted))


def decode_body(body: bytes) -> Any:
    """Decode a JSON response; anything else is a retryable decode error, never an answer."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem: Exception = error
    try:  # Lone surrogates are legal in JSON's grammar and refused by strict decoders.
        return json.loads(body.decode("utf-8"))
    except (ValueError, UnicodeDecodeError, RecursionError):
        start = body[:60].decode("utf-8", "replace")
        raise unreadable(f"the server's reply is not JSON ({problem}): {start!r}") from None


def read_safely(parse: Callable[P, T], *values: P.args, **options: P.kwargs) -> T:
    """Read a reply; one of another shape than any server should send is a retryable decode error, never a crash."""
    try:
        return parse(*values, **options)
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        raise unreadable(f"the server's reply has another shape: {error}") from None


def unreadable(message: str) -> ModelError:
    """Return the error of a reply that is none; asked again the server may send one."""
    return ModelError(FailureKind.DECODE, message, retryable=True)


def told_error(reason: Any) -> ModelError:
    """Return the error of a server that says in the body of a "200 OK", whole or in mid-stream, that it failed."""
    return ModelError(FailureKind.SERVER, f"the server told of an error: {describe_error(reason)}", retryable=True)


def refuse_error(part: Mapping[str, Any]) -> None:
    """Raise if an object of a reply tells of an error: then what stands beside it is no answer, whatever it is."""
    reason = part.get("error")
    if reason:
        raise told_error(reason)
    if part.get("object") == "error" or part.get("type") == "error":
        raise told_error(part)


def choice_zero(rows: Any) -> dict[str, Any]:
    """Return the choice (or candidate) whose index is 0, wherever it stands; one that names none counts by its place.

    Empty where there is none: another choice is the answer to nothing that was asked.
    """
    rows = rows if isinstance(rows, list) else [rows]
    for position, row in enumerate(rows):
        index = expect_object(row).get("index")
        if (position if index is None else index) == 0:
            refuse_error(row)
            return expect_object(row)
    return {}


def expect_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object, else raise a retryable decode error."""
    if not isinstance(value, dict):
        raise unreadable(f"the server sent {type(value).__name__} where an object belongs")
    return value


def check_reply(reply: Reply, said: Any = None) -> None:
    """Raise a typed error for a reply that holds no answer, or something else where its text should be.

    `said` is the whole body, if there is one: a server that sends no choices tells there why.
    """
    try:
        msgspec.convert(msgspec.structs.asdict(reply), Reply)
    except msgspec.ValidationError as error:
        raise unreadable(f"the server's reply has another shape: {error}") from None
    _check_finish(reply)
    if reply.text is None:
        raise _no_text(reply, said)


def _check_finish(reply: Reply) -> None:
    """Raise if the server gave the reply up, or refused: what text there is then is no answer."""
    if reply.finish is not None and reply.finish.lower() in GAVE_UP:
        raise told_error(f"it gave the reply up ({reply.finish})")
    if reply.refusal or reply.finish in ("content_filter", "refusal", "safety"):
        reason = (reply.refusal or reply.finish or "")[:MESSAGE_LIMIT]
        raise ModelError(FailureKind.REFUSED, f"the provider refused: {reason}")


def _no_text(reply: Reply, said: Any) -> ModelError:
    """Return the error of a reply that has no text, by what it has instead."""
    if reply.finish == "length":
        return ModelError(FailureKind.TRUNCATED, "the reply was cut before its first word: raise --max-tokens")
    if reply.choices:
        return unreadable("the server sent null content")
    return unreadable(f"the server sent no choices{f': {describe_error(said)}' if said else ''}")


def status_error(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> ModelError:
    """Turn an HTTP error into a typed one: which are final, which are retried, which stop the run."""
    message = f"HTTP {status}: {_error_text(body)}"
    if status == 401:
        return StopRun(FailureKind.AUTH, f"{message} (check the API key: --api-key-env NAME)", status=status)
    kind, wait_s = _kind_of(status, message.lower()), parse_retry_after(headers, clock)
    spent = status == 429 and "insufficient_quota" in message  # no waiting brings the money back
    retryable = (status in RETRYABLE or status >= 500) and not spent
    return ModelError(kind, message, status=status, retryable=retryable, retry_after_s=wait_s)


def _kind_of(status: int, message: str) -> FailureKind:
    if status in (400, 422) and any(words in message for words in TOO_LONG):
        return FailureKind.TOO_LONG
    if status in (400, 422) and ("content_filter" in message or "safety" in message):
        return FailureKind.REFUSED
    return KINDS.get(status, FailureKind.SERVER if status >= 500 else FailureKind.REQUEST)


def parse_retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the seconds to wait that `Retry-After` asks for, given as seconds or as an HTTP date."""
    value = headers.get("Retry-After") or headers.get("retry-after")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - clock.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _error_text(body: bytes) -> str:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return clean_text(" ".join(body[:MESSAGE_LIMIT].decode("utf-8", "replace").split()))
    return describe_error(value.get("error", value) if isinstance(value, dict) else value)


def describe_error(error: Any) -> str:
    """Return what a server says of its error, in one line of bounded length."""
    if isinstance(error, dict):
        text = " ".join(str(error[name]) for name in ("code", "type", "message", "detail") if error.get(name))
        error = text or str(error)
    return " ".join(clean_text(str(error)).split())[:MESSAGE_LIMIT]

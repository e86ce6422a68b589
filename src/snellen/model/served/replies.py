"""A server's response to a reply or a typed error: what is final, what is tried again, what stops the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import msgspec

from ...core.clock import SystemClock
from ...core.errors import ModelError
from ...core.secret import Secret
from ...core.text import clean_text
from ...core.types import FailureKind, Tool, ToolCall, Usage
from .server_errors import MESSAGE_LIMIT, classify, describe_error, error_of, read_error

P = ParamSpec("P")
BOM = b"\xef\xbb\xbf"
T = TypeVar("T")
REFUSALS = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "sensitive", "guardrail_intervened"}
    | {"recitation", "blocklist", "prohibited_content", "spii", "image_safety"}
    | {"image_prohibited_content", "image_recitation", "model_armor"}
)
REFUSALS_WITHOUT_TEXT = frozenset({"language", "other"})
TOOLS = frozenset(
    {"tool_calls", "tool_use", "function_call", "malformed_function_call", "unexpected_tool_call", "pause_turn"}
    | {"malformed_tool_use", "too_many_tool_calls"}
)
"""The model tried to call a tool, though it was given none."""
CALLS = TOOLS | {"tool_call", "tooluse", "functioncall", "custom_tool_call"}
"""The same as the type of a part."""
FULL = frozenset({"model_length", "model_context_window_exceeded"})
"""The reply was cut because the context was full, not because of a limit we set."""
CUT = FULL | {"length", "max_tokens", "max_output_tokens"}
ENDED = frozenset({"stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete"})
"""Reasons to finish that are the model's own: it had nothing more to say.

A dialect with other words has a table FINISH that brings them to these. A reason that is in no list (timeout,
preempted, error …) is none of the model's: what came before it is a piece of a reply at best, never an answer.
"""
ANSWERED = ENDED | CUT
TYPED = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""What an error that names its type would have been as a response."""
_NO_CLOCK = SystemClock()
"""An error inside a reply has no headers, so no moment to wait for."""


class CallPiece(msgspec.Struct):
    """A call of a tool as far as it came; a stream sends it in pieces."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    problem: str = ""


class Reply(msgspec.Struct, gc=False):
    """What any provider's response boils down to; a stream fills it piece by piece."""

    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    model: str | None = None
    fingerprint: str | None = None
    """What the server calls the build that answered."""
    host: str | None = None
    """Who of several hosts answered, where a gateway says it."""
    refusal: str | None = None
    part: str | None = None
    """The type of a part that is neither text nor reasoning, if there was one: a picture, the call of a tool."""
    ident: str | None = None
    """What a stream calls the reply."""
    choices: int = 0
    closed: bool = False
    """True once the server said that the stream is complete."""
    nulled: bool = False
    """True once a stream held null where text belongs."""
    calls: dict[str, CallPiece] = {}
    """The tools that it calls, by their place in the reply."""
    kept: list[dict[str, Any]] = []
    """Items of the provider that it wants back with the next turn, as they came."""

    def call_at(self, place: Any) -> CallPiece:
        """Return the call at a place, made if it is new."""
        return self.calls.setdefault(str(place), CallPiece())


def scrub_reply(reply: Reply, secrets: Iterable[Secret]) -> None:
    """Mask keys wherever a reply quotes them: some gateways echo what they were sent. A short key may be an answer."""
    names = ("text", "reasoning", "finish", "model", "fingerprint", "host", "refusal")
    for secret in (secret for secret in secrets if not secret.is_placeholder):
        for name in names:
            if quoted := getattr(reply, name):
                setattr(reply, name, secret.scrub(quoted))


def decode_body(body: bytes) -> Any:
    """Decode a JSON response; anything else is a retryable decode error, never an answer."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if body.startswith(BOM):
            return decode_body(body.removeprefix(BOM))
        problem: Exception = error
    try:  # Lone surrogates are legal in JSON's grammar and refused by strict decoders.
        return json.loads(body.decode("utf-8"))
    except (ValueError, UnicodeDecodeError, RecursionError):
        refuse_login_page(body)
        start = body[:60].decode("utf-8", "replace")
        raise unreadable(f"the server's reply is not JSON ({problem}): {start!r}") from None


def refuse_login_page(body: bytes) -> None:
    """Raise if a page wants somebody to log in: a network or a company's proxy answered, and will again."""
    if body.lstrip()[:1] != b"<":
        return
    asks = " login" if b'type="password"' in body else ""
    page = read_error(200, body)
    error = classify(page._replace(whole=page.whole + asks), {}, b"", _NO_CLOCK)
    if error.kind is FailureKind.AUTH:
        raise error


def read_safely(parse: Callable[P, T], *values: P.args, **options: P.kwargs) -> T:
    """Read a reply; one of another shape than any server should send is a retryable decode error, never a crash."""
    try:
        return parse(*values, **options)
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        raise unreadable(f"the server's reply has another shape: {error}") from None


def read_event(parse: Callable[[Any, Reply], str | None], value: Any, reply: Reply) -> str | None:
    """Read one stream event into `reply`; what belongs to another reply, or follows the end of this one, is an error.

    Two replies in one stream are not told apart by leaving one out: which of them was ours nobody says.
    """
    ended, finish = reply.closed or reply.finish, reply.finish
    brought = read_safely(parse, value, reply)
    if finish and finish.lower() not in ENDED:  # "stop" after "length" makes no whole reply of a cut one
        reply.finish = finish
    _check_ident(value, reply, carries=bool(brought) or reply.finish != finish)
    if brought and ended and "candidates" not in value:  # Gemini may say with every piece that it stops
        raise unreadable(f"the stream went on after its end ({finish or 'closed'}): it may hold two replies")
    return brought


def _check_ident(value: Any, reply: Reply, *, carries: bool) -> None:
    """Raise if an event names another reply than those before it; one that carries nothing may name what it likes."""
    whole = value.get("message") or value.get("response")
    ident = whole.get("id") if isinstance(whole, dict) else value.get("id") if carries else None
    if not ident or ident == reply.ident:
        return
    if reply.ident is not None:
        told = f"{reply.ident[:MESSAGE_LIMIT]!r} and {str(ident)[:MESSAGE_LIMIT]!r}"
        raise unreadable(f"the stream holds pieces of two replies ({told}): ask without --stream if it always does")
    reply.ident = str(ident)


def text_in(value: Any) -> str:
    """Return a text as a reply holds it, nothing for null; what is no text is not written out as if it were."""
    if value is None or isinstance(value, str):
        return value or ""
    raise unreadable(f"the server sent {type(value).__name__} where text belongs")


def texts_in(parts: Iterable[Mapping[str, Any]], name: str) -> list[str]:
    """Return the texts under a name, without those that are null: a reply of nulls alone has no text."""
    return [text_in(value) for part in parts if (value := part.get(name)) is not None]


def unreadable(message: str) -> ModelError:
    """Return the error of a reply that is none; asked again the server may send one."""
    return ModelError(FailureKind.DECODE, message, retryable=True)


def told_error(reason: Any) -> ModelError:
    """Return the error of a server that says in the body of a "200 OK", whole or in mid-stream, that it failed."""
    code, kind = (reason.get("code"), reason.get("type")) if isinstance(reason, dict) else (None, None)
    known = TYPED.get(str(kind), 500)
    status = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else known
    error = classify(error_of(reason, status), {}, b"", _NO_CLOCK)
    error.args = (str(error).replace(f"HTTP {status}", "the server reported an error", 1),)
    error.status = None if status == 500 else status
    return error


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
    found: dict[str, Any] | None = None
    for position, row in enumerate(rows):
        choice = expect_object(row)
        index = choice.get("index")
        if (position if index is None else index) == 0:
            refuse_error(choice)
            if found is not None:
                raise unreadable("the server sent two choices of index 0")
            found = choice
    return found or {}


def without_error(value: Any) -> Mapping[str, Any]:
    """Return a scored reply; one that was given up holds numbers of another text than was asked for."""
    whole = expect_object(value)
    refuse_error(whole)
    choice = choice_zero(whole.get("choices") or [{}])
    _refuse_unknown_finish(choice.get("finish_reason"))
    return whole


def expect_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object, else raise a retryable decode error."""
    if not isinstance(value, dict):
        raise unreadable(f"the server sent {type(value).__name__} where an object belongs")
    return value


def accept_calls(reply: Reply) -> None:
    """Take a reply to a request that offers tools: its calls are a reply too, and its text may then be missing."""
    reason = (reply.finish or "").lower()
    if reason in TOOLS and "malformed" in reason and not reply.calls:
        reply.call_at(0).problem = "malformed"
    if reply.calls or reason in TOOLS:
        reply.text = reply.text or ""
        reply.part = None
        reply.finish = "tool_calls" if reason in TOOLS or not reason else reply.finish


def calls_of(reply: Reply) -> tuple[ToolCall, ...]:
    """Return the calls of a reply in their order, each with an id of its own."""
    made: dict[str, ToolCall] = {}
    for number, (_, piece) in enumerate(sorted(reply.calls.items(), key=_place)):
        ident = piece.id if piece.id and piece.id not in made else f"call_{number}"
        name, arguments = clean_text(piece.name), clean_text(piece.arguments)
        made[ident] = ToolCall(clean_text(ident), name, arguments, piece.problem)
    return tuple(made.values())


def _place(item: tuple[str, CallPiece]) -> tuple[int, str]:
    return (int(item[0]) if item[0].isdigit() else 10**6, item[0])


def check_reply(reply: Reply, said: Any = None, tools: Sequence[Tool] = ()) -> None:
    """Raise a typed error for a reply that holds no answer, or something else where its text should be.

    `said` is the whole body, if there is one: a server that sends no choices tells there why. With `tools` offered a
    call is a reply.
    """
    if tools:
        accept_calls(reply)
    try:
        msgspec.convert(msgspec.structs.asdict(reply), Reply)
    except msgspec.ValidationError as error:
        raise unreadable(f"the server's reply has another shape: {error}") from None
    _check_finish(reply, tools)
    if reply.text is None:
        raise _no_text(reply, said)


def check_streamed(reply: Reply, tools: Sequence[Tool] = ()) -> None:
    """Check a reply that came as a stream and ended as it should: one without any text is the empty reply.

    The same server sends it whole as "", which is a reply too; only null there says that something went wrong.
    """
    silent = reply.text is None and reply.reasoning is None and not reply.nulled
    if silent and (reply.finish or "").lower() in ENDED:
        reply.text = ""
    check_reply(reply, None, tools)


def _check_finish(reply: Reply, tools: Sequence[Tool]) -> None:
    """Raise if the reply was given up, refused, or cut before its first word: what text there is is no answer."""
    reason, has_text = (reply.finish or "").lower(), bool(reply.text and reply.text.strip())
    _check_refusal(reply, reason, has_text=has_text)
    if tools and (reply.calls or reason in TOOLS):
        return
    if reason in TOOLS:
        raise _no_answer(reply.finish or "")
    if reply.part:
        raise _no_answer(reply.part)
    _refuse_unknown_finish(reply.finish)
    if reason in CUT:
        reply.finish = "length"
        if not has_text:
            raise _cut_before_text(reply, reason)


def _no_answer(what: str) -> ModelError:
    """Return the error of a model that did something else than to answer; asked again it would do so again."""
    called = what.lower() in CALLS
    did = "called a tool instead of answering" if called else "sent a part that is no text"
    return ModelError(FailureKind.DECODE, f"the model {did} ({what[:MESSAGE_LIMIT]})")


def _refuse_unknown_finish(reason: Any) -> None:
    """Raise if a reply finished for a reason that no model has; a server that names none is believed."""
    if reason and str(reason).lower() not in ANSWERED:
        raise told_error(f"it gave the reply up ({str(reason)[:MESSAGE_LIMIT]})")


def _check_refusal(reply: Reply, reason: str, *, has_text: bool) -> None:
    """Raise if the provider refused, in a field of its own or as a reason to finish."""
    if reply.refusal or reason in REFUSALS or (reason in REFUSALS_WITHOUT_TEXT and not has_text):
        why = (reply.refusal or reply.finish or "")[:MESSAGE_LIMIT]
        raise ModelError(FailureKind.REFUSED, f"the provider refused: {why}")


def _cut_before_text(reply: Reply, reason: str) -> ModelError:
    """Return the error of a reply that ended before its first word: thinking may have taken all its tokens."""
    if reason in FULL:
        return ModelError(FailureKind.TOO_LONG, "the context was full before the reply's first word")
    thought = reply.reasoning or (reply.usage is not None and reply.usage.reasoning_tokens)
    what = "while the model was still reasoning" if thought else "before its first word"
    return ModelError(FailureKind.TRUNCATED, f"the reply was cut {what}: raise --max-tokens")


def _no_text(reply: Reply, said: Any) -> ModelError:
    """Return the error of a reply that has no text, by what it has instead."""
    if reply.choices:
        return unreadable("the server sent null content")
    return unreadable(f"the server sent no choices{f': {describe_error(said)}' if said else ''}")

"""A server's response to a reply or a typed error: what is final, what is tried again, what stops the run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, NamedTuple, ParamSpec, TypeVar

import msgspec

from ...core.clock import Clock, SystemClock
from ...core.config import read_shipped
from ...core.errors import ModelError, StopRun
from ...core.secret import Secret
from ...core.text import clean_text
from ...core.types import FailureKind, Tool, ToolCall, Usage


class _Details(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    image_tokens: int | None = None
    multimodal_tokens: dict[str, int] = {}


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None


_NONE = _Details()


def read_usage(value: Any) -> Usage | None:
    """Return the counts of a `usage` object; None where there is none, or none that can be read."""
    if not isinstance(value, dict):
        return None
    try:
        counts = msgspec.convert(value, _Counts, strict=False)
    except msgspec.ValidationError:
        return None
    prompt, reply = counts.prompt_tokens_details or _NONE, counts.completion_tokens_details or _NONE
    totals = counts.prompt_tokens, counts.completion_tokens
    thought = _first(reply.reasoning_tokens, counts.reasoning_tokens)
    cached = _first(prompt.cached_tokens, counts.cached_tokens, counts.prompt_cache_hit_tokens)
    return Usage(*totals, thought, cached, _first(prompt.image_tokens, prompt.multimodal_tokens.get("image")))


def _first(*counts: int | None) -> int | None:
    """Return the first count that is told: servers put the same number in different places."""
    for count in counts:
        if count is not None:
            return count
    return None


LIMIT_HEADERS = {
    name.format("remaining"): (name.format("limit"), name.format("reset"), kind)
    for kind in ("requests", "tokens", "input-tokens", "output-tokens")
    for name in (f"x-ratelimit-{{}}-{kind}", f"anthropic-ratelimit-{kind}-{{}}")
}
"""Headers that say what is left of a limit, to those that say how large it is and when it is full again."""
RESETS = ("x-ratelimit-reset", *(reset for _, reset, _ in LIMIT_HEADERS.values()))
CROWDED = (429, 503, 529)
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
WORDS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
"""How people write units of time."""
_UNIT = "|".join(sorted(WORDS, key=len, reverse=True))
_PLAIN = r"\d+(?:\.\d+)?"
_PART = re.compile(rf"({_PLAIN})\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_PARTS = rf"(?:{_PLAIN}\s*(?:{_UNIT})(?![a-z])[\s,]*(?:and\s+)?)+"
IN_WORDS = re.compile(rf"(?:try again in|retry after|retry in)\s+({_PARTS}|{_PLAIN})", re.IGNORECASE)
EPOCH_S = 1_000_000_000.0
"""A number of seconds above this is a moment, not a wait; a thousand times as large one in milliseconds."""
LOOKED_AT = 20_000
"""Bytes of a body that are searched."""


def wait_of(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> float | None:
    """Return the seconds a server asks to wait; None where it does not say, or says nothing sensible."""
    waits = _waits(status, headers, body[:LOOKED_AT], clock)
    return next((wait for wait in waits if wait is not None), None)


def _waits(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> Iterator[float | None]:
    named = {name.lower(): value for name, value in headers.items()}
    yield _scaled(named.get("retry-after-ms"), 0.001)
    yield _retry_after(named.get("retry-after"), clock)
    if status in CROWDED:  # elsewhere these headers only tell how the limits stand
        resets = [wait for name in RESETS if (wait := seconds_until(named.get(name), clock)) is not None]
        yield max(resets, default=None)
    if found := RETRY_DELAY.search(body):
        yield float(found.group(1))
    yield _in_words(body.decode("utf-8", "replace"))


def _in_words(text: str) -> float | None:
    """Return how long `try again in 1 minute and 30 seconds` is; a bare number is seconds."""
    found = IN_WORDS.search(text)
    if found is None:
        return None
    parts = _PART.findall(found.group(1))
    return sum(float(count) * WORDS[unit.lower()] for count, unit in parts) if parts else float(found.group(1))


def _retry_after(value: str | None, clock: Clock) -> float | None:
    """Return the seconds to wait that `Retry-After` asks for, given as seconds or as an HTTP date."""
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


def _scaled(value: str | None, unit: float) -> float | None:
    try:
        seconds = float(value or "nan") * unit
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def seconds_until(value: str | None, clock: Clock) -> float | None:
    """Return the seconds until a limit is reset: `1.5`, `6m0s`, `500ms` or a moment; nothing for 0 and below.

    A moment is written as ISO 8601, or as seconds or milliseconds since 1970.
    """
    if not value:
        return None
    seconds = _scaled(value, 1.0)
    if seconds is not None and seconds > EPOCH_S:
        seconds = (seconds if seconds < 1000 * EPOCH_S else seconds / 1000) - clock.time()
        return seconds if seconds > 0 else None
    if seconds is None and (parts := DURATION.findall(value)) and "".join(map("".join, parts)) == value.strip():
        seconds = sum(float(count) * WORDS[unit] for count, unit in parts)
    if seconds is None:
        try:
            moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - clock.time()
    return seconds if seconds > 0 else None


MESSAGE_LIMIT = 300
WHOLE_LIMIT = 4000
NEGOTIABLE = (400, 404, 422)
"""Refusals of the request itself: their whole words tell which parameter was meant."""
TOLD = ("code", "type", "status", "message", "detail", "msg")
TEXTS = ("message", "detail", "msg", "error", "errors", "raw", "error_description")
NAMES = ("code", "type", "status", "__type", "error_code", "errorCode")
DEPTH = 4


class ServerError(NamedTuple):
    """What a server says of its error, whatever shape it says it in."""

    status: int
    names: frozenset[str]
    """Its codes and types, lower case."""
    text: str
    """Its words in one line of bounded length, for people."""
    raw: str
    """Everything it says."""
    whole: str
    """The same in lower case, to be searched."""
    param: str | None = None


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of catalog/servers/errors.toml."""

    kind: FailureKind
    stop: bool = False
    again: bool = False
    status: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = msgspec.field(name="not", default=())
    waits: bool = False
    """Fits only where the server says how long to wait."""
    fix: str = ""
    seen: tuple[dict[str, Any], ...] = ()

    def fits(self, error: ServerError, wait_s: float | None) -> bool:
        """Tell whether the rule is about this error."""
        if (self.status and error.status not in self.status) or (self.waits and wait_s is None):
            return False
        if not (self.codes or self.says):
            return True
        named = not error.names.isdisjoint(self.codes)
        return (named or _holds(error.whole, self.says)) and not _holds(error.whole, self.exceptions)


def _holds(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)


@cache
def error_rules() -> tuple[Rule, ...]:
    """Return the rules, in the order they are tried."""
    return tuple(msgspec.convert(read_shipped("servers/errors.toml")["rules"], list[Rule]))


def status_error(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> ModelError:
    """Turn an HTTP error into a typed one: which are final, which are retried, which stop the run."""
    return classify(read_error(status, body), headers, body, clock)


def classify(error: ServerError, headers: Mapping[str, str], body: bytes, clock: Clock) -> ModelError:
    """Return the typed error: the first rule that fits decides, else the status."""
    wait_s = wait_of(error.status, headers, body, clock)
    rule = next((rule for rule in error_rules() if rule.fits(error, wait_s)), None)
    message = f"HTTP {error.status}: {error.text}"
    if rule is None:
        kind = FailureKind.SERVER if error.status >= 500 else FailureKind.REQUEST
        return _typed(ModelError, kind, message, error, retryable=error.status >= 500, wait_s=wait_s)
    message += f" ({rule.fix})" if rule.fix else ""
    told = headers.get("x-should-retry")
    again = told == "true" or (rule.again and told != "false")
    return _typed(StopRun if rule.stop else ModelError, rule.kind, message, error, retryable=again, wait_s=wait_s)


def without_advice(message: str) -> str:
    """Return what a server said without what the rules add to it: a command of its own kind advises otherwise."""
    added = (f" ({rule.fix})" for rule in error_rules() if rule.fix)
    return next((message.removesuffix(end) for end in added if message.endswith(end)), message)


def _typed(
    of: type[ModelError], kind: FailureKind, message: str, error: ServerError, *, retryable: bool, wait_s: float | None
) -> ModelError:
    detail = {"param": error.param} if error.param else {}
    if error.status in NEGOTIABLE:
        detail["whole"] = error.raw[:WHOLE_LIMIT]
    return of(kind, message, status=error.status, retryable=retryable, retry_after_s=wait_s, detail=detail)


def read_error(status: int, body: bytes) -> ServerError:
    """Read an error body: JSON of any of the known shapes, HTML, text, or nothing."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = _title(body.decode("utf-8", "replace"))
        return ServerError(status, frozenset(), _one_line(text), text, text.lower())
    return error_of(value, status)


def error_of(value: Any, status: int) -> ServerError:
    """Read an error that is decoded already; a numeric code inside outweighs the status it came with."""
    inner = value.get("error", value) if isinstance(value, dict) else value
    inner = value if isinstance(inner, str) else inner  # a text: its code stands beside it
    if isinstance(inner, list) and inner and isinstance(inner[0], dict):
        inner = inner[0].get("error", inner[0])
    parts = list(_parts(value, 0))
    names = {str(part[name]).rpartition("#")[2].lower() for part in parts for name in NAMES if _is_name(part.get(name))}
    param = next((str(part["param"]) for part in parts if isinstance(part.get("param"), str)), None)
    raw = clean_text(msgspec.json.encode(value).decode("utf-8", "replace"))
    return ServerError(status, frozenset(names), describe_error(inner), raw, raw.lower(), param)


def _parts(value: Any, depth: int) -> Iterable[dict[str, Any]]:
    """Yield the objects of an error body that may hold its code and its words, also those packed into a text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return
    if isinstance(value, dict):
        yield value
    if depth < DEPTH:
        for item in _inside(value):
            yield from _parts(item, depth + 1)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value.get(name) for name in (*TEXTS, "metadata", "innererror", "details")]
    return value if isinstance(value, list) else []


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def describe_error(error: Any) -> str:
    """Return what a server says of its error, in one line of bounded length."""
    if isinstance(error, dict):
        said = [error[name] for name in TOLD if error.get(name)]
        said += [error["error"]] if isinstance(error.get("error"), str) else []
        error = " ".join(part if isinstance(part, str) else _packed(part) for part in said) or str(error)
    return _one_line(str(error))


def _packed(part: Any) -> str:
    return str(part) if isinstance(part, int | float) else msgspec.json.encode(part).decode()


def _title(text: str) -> str:
    """Return the title of an HTML page, which is all that a proxy says."""
    found = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return found.group(1) if found else text


def _one_line(text: str) -> str:
    return " ".join(clean_text(text).split())[:MESSAGE_LIMIT]


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
    foreign: int = 0
    """Tools of its own that the server ran beside the answer."""

    def add_text(self, piece: str) -> str | None:
        """Take a piece of the answer; return what a stream is told that it brought."""
        self.text = (self.text or "") + piece
        return "content" if piece else None

    def add_thought(self, piece: str) -> str:
        """Take a piece of the reasoning; return what a stream is told that it brought."""
        self.reasoning = (self.reasoning or "") + piece
        return "reasoning"

    def call_at(self, place: Any) -> CallPiece:
        """Return the call at a place, made if it is new; of several there the last."""
        key = str(place)
        while f"{key}+" in self.calls:
            key += "+"
        return self.calls.setdefault(key, CallPiece())

    def call_after(self, place: Any) -> CallPiece:
        """Return a new call beside those of a place."""
        key = str(place)
        while key in self.calls:
            key += "+"
        return self.calls.setdefault(key, CallPiece())


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
    number = item[0].rstrip("+")
    return (int(number) if number.isdigit() else 10**6, item[0])


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

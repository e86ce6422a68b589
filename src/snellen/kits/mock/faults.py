"""Fault specs to the fault a request meets, and the plan it turns a good answer into.

A spec is `KIND[:key=value,…][@WHEN]`. WHEN is `0.1` (probability), `5-9,20` (ordinals of requests, from 1), `12-`,
`first2` (the first two attempts of each distinct body), `every10`, `~TEXT` (requests containing TEXT); default always.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import cache

import msgspec

from ...core.config import read_shipped
from ...core.errors import UsageError, did_you_mean
from ...core.ids import rng
from .plan import EVENTS, JSON, Piece, Plan, error_plan, event, json_plan


class ExpectedOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must come of a case; what is None is not looked at."""

    kind: str | None = None
    again: bool | None = None
    stop: bool = False
    wait: float | None = None
    no_wait: bool = False
    says: str = ""
    hides: str = ""
    partial: str | None = None
    change: str | None = None
    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    host: str | None = None
    warns: str | None = None
    """What the run is warned of, in part."""
    model: str | None = None
    input: int | None = None
    output: int | None = None
    thought: int | None = None
    cached: int | None = None
    visual: int | None = None


class ProviderCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One case of catalog/servers/cases.toml."""

    id: str
    dialect: str
    expect: ExpectedOutcome
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""
    chunks: tuple[str, ...] = ()
    from_memory: bool = False


@cache
def provider_cases() -> dict[str, ProviderCase]:
    """Return all cases by their id."""
    cases = msgspec.convert(read_shipped("servers/cases.toml")["cases"], list[ProviderCase])
    return {case.id: case for case in cases}


Arguments = Mapping[str, str]
Rewrite = Callable[[Plan, Arguments], Plan]

HTML = b"<!DOCTYPE html><html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>"

MESSAGES = {
    400: "Invalid request",
    401: "Incorrect API key provided",
    403: "You are not allowed to use this model",
    404: "The model does not exist",
    408: "Request timeout",
    409: "Conflict, try again",
    413: "Request entity too large",
    422: "Unprocessable entity",
    429: "Rate limit reached, slow down",
    500: "Internal server error",
    502: "Bad gateway",
    503: "Service unavailable",
    504: "Gateway timeout",
    529: "Overloaded",
}


def retry_after(value: str, now: float) -> str:
    """Turn `2` (seconds) or `date+2` (an HTTP date that far ahead) into a Retry-After header."""
    if value.startswith("date+"):
        return formatdate(now + float(value[5:]), usegmt=True)
    return value


def fail_status(status: int) -> Rewrite:
    """Return a rewrite to an error of this status; `retry_after` adds the header."""

    def _rewrite(plan: Plan, arguments: Arguments) -> Plan:
        wait = arguments.get("retry_after")
        headers = {"Retry-After": retry_after(wait, time.time())} if wait else {}
        return error_plan(status, arguments.get("message", MESSAGES[status]), arguments.get("code"), headers)

    return _rewrite


def too_long(plan: Plan, arguments: Arguments) -> Plan:
    """Say that the prompt does not fit, as vLLM and OpenAI do."""
    limit = arguments.get("limit", "4096")
    message = f"This model's maximum context length is {limit} tokens. However, your request has more."
    return error_plan(400, f"{message} Please reduce its length.", "context_length_exceeded")


def reset(plan: Plan, arguments: Arguments) -> Plan:
    """Reset the connection without a word."""
    return replace(plan, pieces=(), headless=True, finish="reset")


def hang(plan: Plan, arguments: Arguments) -> Plan:
    """Accept and never answer; with `head=1` send the headers first."""
    return replace(plan, pieces=(), headless=not arguments.get("head"), finish="hang", declared_bytes=len(plan.body))


def truncate(plan: Plan, arguments: Arguments) -> Plan:
    """Promise the whole body, send half of it, close."""
    body, finish = plan.body, "reset" if plan.streamed else "close"
    return plan.with_body(body[: len(body) // 2], declared_bytes=len(body), finish=finish)


def invalid_json(plan: Plan, arguments: Arguments) -> Plan:
    """Send a well-formed HTTP response whose JSON is cut."""
    if plan.streamed:
        return _only(plan, b'data: {"choices": [{"delta": {"content": "A\n\n')
    body = plan.body
    return plan.with_body(body[: 2 * len(body) // 3])


def _only(plan: Plan, data: bytes) -> Plan:
    """Return a stream of one event and its proper end."""
    return replace(plan, pieces=(Piece(plan.done_at_s, data), *plan.pieces[-1:]))


def html(plan: Plan, arguments: Arguments) -> Plan:
    """Send a proxy's HTML page with status 200."""
    return plan.with_body(HTML, content_type="text/html")


def invalid_utf8(plan: Plan, arguments: Arguments) -> Plan:
    """Put bytes that are no UTF-8 into the reply's text."""
    pieces = tuple(Piece(p.at_s, p.data.replace(b'"content":"', b'"content":"\xff\xfe')) for p in plan.pieces)
    return replace(plan, pieces=pieces)


def empty_choices(plan: Plan, arguments: Arguments) -> Plan:
    """Reply with `choices: []`."""
    value = {"id": "mock-empty", "object": "chat.completion", "created": 0, "model": "mock", "choices": []}
    return _only(plan, event(value)) if plan.streamed else json_plan(value, plan.done_at_s)


def null_content(plan: Plan, arguments: Arguments) -> Plan:
    """Reply with `content: null`."""
    body = {"role": "assistant", "content": None}
    choice = {"index": 0, "delta" if plan.streamed else "message": body, "finish_reason": "stop"}
    value = {"id": "mock-null", "object": "chat.completion", "choices": [choice]}
    return _only(plan, event(value)) if plan.streamed else json_plan(value, plan.done_at_s)


def drip(plan: Plan, arguments: Arguments) -> Plan:
    """Send one byte every `interval_s` (60)."""
    interval_s = float(arguments.get("interval_s", "60"))
    pieces = tuple(Piece(index * interval_s, bytes([byte])) for index, byte in enumerate(plan.body))
    return replace(plan, pieces=pieces, declared_bytes=None if plan.streamed else len(pieces))


def _first_half(plan: Plan) -> tuple[Piece, ...]:
    return plan.pieces[: max(1, len(plan.pieces) // 2)]


def stream_cut(plan: Plan, arguments: Arguments) -> Plan:
    """Break the connection in the middle of a stream."""
    return replace(plan, pieces=_first_half(plan), finish="reset") if plan.streamed else truncate(plan, arguments)


def stream_error(plan: Plan, arguments: Arguments) -> Plan:
    """Send an error object in the middle of a stream, then end it properly."""
    if not plan.streamed:
        return fail_status(500)(plan, arguments)
    half = _first_half(plan)
    failure = event({"error": {"message": "engine died", "type": "server_error", "code": 500}})
    return replace(plan, pieces=(*half, Piece(half[-1].at_s, failure)))


def no_done(plan: Plan, arguments: Arguments) -> Plan:
    """End a stream without `[DONE]`, as `transformers serve` does."""
    return replace(plan, pieces=plan.pieces[:-1]) if plan.content_type == EVENTS else plan


def wrong_type(plan: Plan, arguments: Arguments) -> Plan:
    """Send a JSON value of another shape (a list)."""
    return plan.with_body(b'["not", "a", "completion"]', content_type=JSON)


def case(plan: Plan, arguments: Arguments) -> Plan:
    """Answer with a reply that a provider was seen to send (catalog/servers/cases.toml): `case:name=C11`."""
    known = {name.replace("_", " "): one for name, one in provider_cases().items()}
    name = arguments.get("name", "").replace("_", " ")
    if name not in known:
        raise UsageError(
            f"--fault case:name={name}: unknown{did_you_mean(name, known)}; see catalog/servers/cases.toml"
        )
    chosen = known[name]
    texts = chosen.chunks or (chosen.body,)
    pieces = tuple(Piece(plan.done_at_s, text.encode()) for text in texts)
    content_type = EVENTS if chosen.chunks else "text/html" if chosen.body.startswith("<") else JSON
    return Plan(chosen.status, pieces, content_type, dict(chosen.headers))


_REWRITES = (
    *(too_long, reset, hang, truncate, invalid_json, html, invalid_utf8, empty_choices, null_content, wrong_type),
    *(drip, stream_cut, stream_error, no_done, case),
)
KINDS: dict[str, Rewrite] = {
    **{str(status): fail_status(status) for status in MESSAGES},
    **{rewrite.__name__.replace("_", "-"): rewrite for rewrite in _REWRITES},
}


@dataclass(frozen=True, slots=True)
class Occasion:
    """What decides whether a fault strikes one request."""

    ordinal: int
    attempt: int
    """How often this very body has been seen, this time included."""
    body_hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One scripted fault."""

    kind: str
    arguments: Arguments
    when: str = "1.0"

    def strikes(self, occasion: Occasion, seed: int) -> bool:
        """Decide from the request alone, so that the order of arrival does not matter where it need not."""
        when = self.when
        if when.startswith("~"):
            return when[1:] in occasion.text
        if when.startswith("first"):
            return occasion.attempt <= int(when[5:])
        if when.startswith("every"):
            return occasion.ordinal % int(when[5:]) == 0
        if "." in when:
            return rng(seed, "fault", self.kind, when, occasion.body_hash, occasion.attempt).random() < float(when)
        return any(_within(span, occasion.ordinal) for span in when.split(","))

    @property
    def status(self) -> int:
        """Return the HTTP status the client will see (200 for faults of the body or the connection)."""
        return int(self.kind) if self.kind.isdigit() else 400 if self.kind == "too-long" else 200

    def apply(self, plan: Plan) -> Plan:
        """Rewrite a good plan into this fault."""
        return KINDS[self.kind](plan, self.arguments)


def _within(span: str, ordinal: int) -> bool:
    first, dash, last = span.partition("-")
    return int(first) <= ordinal and (ordinal <= int(last or ordinal) if dash else ordinal == int(first))


def parse_fault(spec: str) -> Fault:
    """Parse one spec; the error says what is wrong with it."""
    what, at, when = spec.partition("@")
    kind, _, raw = what.partition(":")
    if kind not in KINDS:
        near, known = did_you_mean(kind, KINDS), ", ".join(KINDS)
        raise UsageError(f"--fault {spec!r}: unknown kind {kind!r}{near}; known: {known}")
    fault = Fault(kind, dict(_pairs(raw, spec)), when if at else "1.0")
    if kind == "case":
        case(Plan(), fault.arguments)  # a name nobody knows is told now
    try:
        fault.strikes(Occasion(10**9, 1, "", ""), 0)
    except ValueError:
        known = "a probability (0.1), ordinals (5-9,20), first2, every10 or ~TEXT"
        raise UsageError(f"--fault {spec!r}: {when!r} is not {known}") from None
    return fault


def _pairs(raw: str, spec: str) -> list[tuple[str, str]]:
    pairs = [item.partition("=") for item in filter(None, raw.split(","))]
    if any(not equals for _, equals, _ in pairs):
        raise UsageError(f"--fault {spec!r}: arguments are key=value, joined by commas")
    return [(key, value) for key, _, value in pairs]


def first_striking(faults: Sequence[Fault], occasion: Occasion, seed: int) -> Fault | None:
    """Return the first fault of the list that strikes this request."""
    return next((fault for fault in faults if fault.strikes(occasion, seed)), None)

"""Options to a running server on 127.0.0.1: chat, streams, completions, log-probabilities, models, other dialects."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

import msgspec

from ...core.errors import EnvironmentProblem
from ...core.ids import rng, sha256_hex
from . import wire
from .anthropic_format import AnthropicFormat
from .ask import AnswerBook, Ask, BadRequestError, Entry, StreamOptions, ask_of, ignoring, parse_ask
from .batches import BatchLine, BatchScript
from .drafter import draft_reply
from .faults import Fault, Occasion, first_striking
from .http import ConstantProtocol, Exchange, HttpProtocol, response_head
from .plan import Plan, error_plan, json_plan
from .readers import Reader, Reply, View
from .speech import batch_routes, listing, refuse_parameters, speech_of, worded
from .tokens import tokenize
from .wire import Completion, Pace, chat_plan, complete, prompt_tokens, text_plan
from .wire_format import WireFormat


@dataclass(slots=True)
class Bucket:
    """A quota per minute that refills steadily; None means no limit."""

    per_minute: float | None
    level: float = 0.0
    updated: float | None = None

    def take(self, amount: float, now: float) -> float:
        """Take `amount` and return 0, or take nothing and return the seconds until it would fit."""
        if self.per_minute is None:
            return 0.0
        refilled = math.inf if self.updated is None else (now - self.updated) * self.per_minute / 60.0
        self.level = min(self.per_minute, self.level + refilled)
        self.updated = now
        if self.level >= min(amount, self.per_minute):
            self.level -= amount
            return 0.0
        return (min(amount, self.per_minute) - self.level) * 60.0 / self.per_minute

    @property
    def left(self) -> int:
        """Return how much of the quota is left, as of the last request."""
        return max(0, int(self.level))


class Limits:
    """What the server takes on at once; all limits may change while it runs."""

    def __init__(self, max_concurrency: int | None, slots: int | None, tokens: Bucket, requests: Bucket) -> None:
        self.max_concurrency = max_concurrency
        self.tokens = tokens
        self.requests = requests
        self.running = 0
        self.peak = 0
        self._slots = asyncio.Semaphore(slots) if slots else None

    def refuse(self, tokens: float, now: float) -> float | None:
        """Return None to admit a request, or the seconds after which the client may try again."""
        if self.max_concurrency is not None and self.running >= self.max_concurrency:
            return 1.0
        wait_s = self.requests.take(1.0, now) or self.tokens.take(tokens, now)
        return wait_s or None

    def headers(self, *, anthropic: bool) -> dict[str, str]:
        """Return how the quotas stand, as providers say it with every reply; nothing where there are none."""
        told: dict[str, str] = {}
        for what, bucket in (("requests", self.requests), ("tokens", self.tokens)):
            if bucket.per_minute is None:
                continue
            wait_s = (bucket.per_minute - bucket.left) * 60.0 / bucket.per_minute
            facts = {"limit": f"{bucket.per_minute:.0f}", "remaining": str(bucket.left)}
            if anthropic:
                moment = datetime.fromtimestamp(time.time() + wait_s, UTC).isoformat(timespec="seconds")
                facts["reset"] = moment.replace("+00:00", "Z")
                told |= {f"anthropic-ratelimit-{what}-{name}": value for name, value in facts.items()}
            else:
                facts["reset"] = f"{wait_s:.3f}s"
                told |= {f"x-ratelimit-{name}-{what}": value for name, value in facts.items()}
        return told

    async def __aenter__(self) -> Limits:
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            if self._slots is not None:
                await self._slots.acquire()
        except asyncio.CancelledError:
            self.running -= 1
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.running -= 1
        if self._slots is not None:
            self._slots.release()


HOLDS_S = 300
STAMP = "%Y%m%dT%H%M%SZ"
MOMENT = re.compile(r"\d{8}T\d{6}Z")
PROOF = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<who>[^/]+)/(?P<scope>\d{8}/(?P<region>[^/]+)/[^/]+/aws4_request), "
    r"SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)
TOKEN = "The security token included in the request is invalid."  # noqa: S105 - words of a refusal
SIGNATURE = (
    "The request signature we calculated does not match the signature you provided. "
    "Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
)


def is_signed(exchange: Exchange) -> bool:
    """Tell whether a request brings a signature instead of a key."""
    return (exchange.header("authorization") or "").startswith("AWS4-HMAC-SHA256")


def refuse_signature(exchange: Exchange, key: str, region: str, now: Callable[[], float] = time.time) -> Plan | None:
    """Return the refusal of a signature that is not of this `NAME:SECRET` and region, or not of this moment."""
    proof = PROOF.fullmatch(exchange.header("authorization") or "")
    name, _, secret = key.partition(":")
    stamp = exchange.header("x-amz-date") or ""
    if proof is None or proof["who"] != name or not MOMENT.fullmatch(stamp):
        return error_plan(403, TOKEN, "UnrecognizedClientException")
    if proof["region"] != region:
        return error_plan(403, "Credential should be scoped to a valid region. ", "InvalidSignatureException")
    return _refuse_moment(stamp, now()) or _refuse_hash(exchange, proof, stamp, secret)


def _refuse_moment(stamp: str, now: float) -> Plan | None:
    sent = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC).timestamp()
    if abs(now - sent) <= HOLDS_S:
        return None
    late = sent < now
    here, edge = _written(now), _written(now - HOLDS_S if late else now + HOLDS_S)
    kind = "Signature expired" if late else "Signature not yet current"
    than = "is now earlier than" if late else "is still later than"
    text = f"{kind}: {stamp} {than} {edge} ({here} {'-' if late else '+'} 5 min.)"
    return error_plan(403, text, "InvalidSignatureException")


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(STAMP)


def _refuse_hash(exchange: Exchange, proof: re.Match[str], stamp: str, secret: str) -> Plan | None:
    lines = [f"{name}:{' '.join((exchange.header(name) or '').split())}" for name in proof["headers"].split(";")]
    body = hashlib.sha256(exchange.body).hexdigest()
    asked = [exchange.method, quote(exchange.path, safe="/~"), "", *lines, "", proof["headers"], body]
    told = "\n".join(("AWS4-HMAC-SHA256", stamp, proof["scope"], hashlib.sha256("\n".join(asked).encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in proof["scope"].split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    if hmac.compare_digest(hmac.digest(key, told.encode(), "sha256").hex(), proof["signature"]):
        return None
    return error_plan(403, SIGNATURE, "InvalidSignatureException")


WAKE_LATE_S = 0.0005
"""The event loop wakes up to 1 ms late; aiming half of it early centres the error of every piece."""
CHAT, TEXT = "/chat/completions", "/completions"
REGION = "eu-central-1"
"""Where a mock Bedrock stands."""
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class MockOptions:
    """Everything that shapes the server. Times in seconds; None means no limit."""

    answers: AnswerBook | None = None
    reader: Reader = field(default_factory=Reader)
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    pace: Pace = field(default_factory=Pace)
    tokens: int | None = None
    """Stretch or cut every reply to this many tokens."""
    slots: int | None = None
    max_concurrency: int | None = None
    tokens_per_minute: float | None = None
    requests_per_minute: float | None = None
    retry_after: str | None = None
    """How Retry-After is written on 429 of the limits: `seconds`, `date`, or None for no header."""
    max_context: int | None = None
    max_body_bytes: int | None = None
    api_key: str | None = None
    models: tuple[str, ...] = ("mock",)
    strict_model: bool = False
    logprobs: str = "ok"
    """ok, shifted (off by one), none (silently ignored), error (400)."""
    drafter: str | None = None
    """Answer the workshop's drafting and checking prompts in this style (good, sloppy, malformed, artefact)."""
    answer: str = "A"
    """The reply to a question that is not in the answer file."""
    log: Path | None = None
    dialect: str = "openai"
    """Whose words are spoken (`snellen.kits.mock.speech.SPEECHES`)."""
    refuses: tuple[str, ...] = ()
    """Parameters that are refused, as the dialect refuses them; `NAME=OTHER` says what to use instead."""
    filters: tuple[str, ...] = ()
    """Requests that hold one of these texts are answered with the provider's content filter."""
    ignores: tuple[str, ...] = ()
    """What is passed over in silence, as some servers do (`snellen.kits.mock.ask.IGNORED`)."""
    batches: BatchScript = field(default_factory=BatchScript)


class MockServer:
    """Serves until closed. `stats` counts what it saw; `limits` may be changed while it runs."""

    def __init__(self, options: MockOptions) -> None:
        self.options = options
        rates = Bucket(options.tokens_per_minute), Bucket(options.requests_per_minute)
        self.limits = Limits(options.max_concurrency, options.slots, *rates)
        self.stats: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._draws: Counter[str] = Counter()
        self._kept: set[str] = set()
        self._speech = speech_of(options.dialect)
        self._batches = batch_routes(self._speech, options.batches, self.answer_line, options.seed)
        self._log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if options.log else None

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    async def handle(self, exchange: Exchange) -> None:
        """Answer one exchange."""
        wire_format = self._format_of(exchange.path)
        plan = self._refuse_key(exchange)
        if plan is None and exchange.method == "POST" and self._serves(exchange.path):
            await self._serve(exchange, wire_format)
            return
        plan = plan or self._batches(exchange) or self._plain(exchange)
        await play(worded(plan, wire_format or next(iter(self._speech.formats), None)), exchange, time.perf_counter())

    def _format_of(self, path: str) -> WireFormat | None:
        """Return who reads requests of a path; None: it is a chat, a text completion, or nothing of the kind."""
        return next((wire_format for wire_format in self._speech.formats if wire_format.reads(path)), None)

    def _serves(self, path: str) -> bool:
        return self._format_of(path) is not None or (self._speech.chats and path.endswith((CHAT, TEXT)))

    def answer_line(self, line: BatchLine) -> tuple[int, Any]:
        """Answer one line of a batch as the same request would be; return status and body."""
        wire_format = self._format_of(line.path)
        body_hash = sha256_hex(line.body)
        self.stats["batch_lines"] += 1
        try:
            body = wire_format.read(line.path, line.body) if wire_format else None
            ask = ask_of(body, chat=True) if body else parse_ask(line.body, chat=True)
        except BadRequestError as error:
            plan = worded(error_plan(400, str(error)), wire_format)
            return plan.status, msgspec.json.decode(plan.body)
        entry = self.options.answers.find(ask) if self.options.answers is not None else None
        plan = self.answer_plan(ask, entry, Occasion(self.stats["batch_lines"], 1, body_hash, ""), wire_format)
        self._count(plan, "batch_")
        return plan.status, msgspec.json.decode(plan.body)

    def _count(self, plan: Plan, kind: str = "") -> None:
        """Keep what a provider would bill."""
        self.stats[f"{kind}prompt_tokens"] += plan.tokens[0]
        self.stats[f"{kind}completion_tokens"] += plan.tokens[1]

    def _refuse_key(self, exchange: Exchange) -> Plan | None:
        if self.options.api_key is None:
            return None
        if is_signed(exchange):
            return refuse_signature(exchange, self.options.api_key, REGION)
        given = [(exchange.header(name) or "").removeprefix("Bearer ") for name in KEY_HEADERS]
        if any(hmac.compare_digest(key.encode(), self.options.api_key.encode()) for key in given):
            return None
        self.stats["status_401"] += 1
        return error_plan(401, "Incorrect API key provided", "invalid_api_key")

    def _plain(self, exchange: Exchange) -> Plan:
        if exchange.path == f"{self._speech.root}/models":
            return json_plan(listing(self.options.models, self._speech))
        if exchange.path == "/health":
            return json_plan({"status": "ok"})
        if exchange.path == "/mock/stats":
            return json_plan({**self.stats, "running": self.limits.running, "peak": self.limits.peak})
        if exchange.path.startswith("/mock/max_concurrency/") and exchange.path.rpartition("/")[2].isdigit():
            self.limits.max_concurrency = int(exchange.path.rpartition("/")[2])
            return json_plan({"max_concurrency": self.limits.max_concurrency})
        return error_plan(404, f"no route {exchange.method} {exchange.path}")

    async def _serve(self, exchange: Exchange, wire_format: WireFormat | None) -> None:
        body_hash = sha256_hex(exchange.body)
        self.stats["requests"] += 1
        self._attempts[body_hash] += 1
        ask, refusal = self._admit(exchange, wire_format)
        occasion = Occasion(self.stats["requests"], self._attempts[body_hash], body_hash, ask.transcript if ask else "")
        if ask is None or refusal is not None:
            refusal = refusal or error_plan(400, "no request")
            self._note(exchange, occasion, ask, matched=False, fault=None, status=refusal.status)
            await play(worded(refusal, wire_format), exchange, time.perf_counter())
            return
        fault = first_striking(self.options.faults, occasion, self.options.seed)
        entry = self.options.answers.find(ask) if self.options.answers is not None else None
        kind, status = (fault.kind, fault.status) if fault else (None, 200)
        self._note(exchange, occasion, ask, matched=entry is not None, fault=kind, status=status)
        async with self.limits:
            # Service begins when the request came, or when a slot became free for it.
            started = exchange.received if self.options.slots is None else time.perf_counter()
            plan = self._struck(self.answer_plan(ask, entry, occasion, wire_format), fault, wire_format)
            told = self.limits.headers(anthropic=isinstance(wire_format, AnthropicFormat))
            await play(replace(plan, headers={**told, **plan.headers}) if told else plan, exchange, started)

    def _struck(self, plan: Plan, fault: Fault | None, wire_format: WireFormat | None) -> Plan:
        """Return a good answer as its fault leaves it, in the dialect's words; without one it is billed."""
        if fault is None:
            self._count(plan)
            return plan
        struck = fault.apply(plan)
        return struck if fault.kind == "case" else worded(struck, wire_format)

    def _admit(self, exchange: Exchange, wire_format: WireFormat | None) -> tuple[Ask | None, Plan | None]:
        try:
            if wire_format is not None:
                ask = ask_of(wire_format.read(exchange.path, exchange.body), chat=True)
            else:
                ask = parse_ask(exchange.body, chat=exchange.path.endswith(CHAT))
                if self.options.dialect == "mistral":  # it counts every stream, and refuses to be asked to
                    ask.body.stream_options = StreamOptions(include_usage=True)
        except BadRequestError as error:
            return None, error_plan(400, str(error))
        ask = ignoring(ask, self.options.ignores) if self.options.ignores else ask
        return ask, self._refuse(ask, exchange)

    def _refuse(self, ask: Ask, exchange: Exchange) -> Plan | None:
        tokens = prompt_tokens(ask) + (ask.max_tokens or 0)
        refused = refuse_parameters(self.options.dialect, self.options.refuses, exchange.body)
        if (refusal := self._refuse_content(ask, exchange, tokens) or refused) is not None:
            return refusal
        wait_s = self.limits.refuse(tokens, time.perf_counter())
        if wait_s is None:
            return None
        return error_plan(429, "Rate limit reached, slow down", headers=self._retry_header(wait_s))

    def _refuse_content(self, ask: Ask, exchange: Exchange, tokens: int) -> Plan | None:
        options = self.options
        if options.max_body_bytes is not None and len(exchange.body) > options.max_body_bytes:
            message = f"Request body is {len(exchange.body)} bytes, at most {options.max_body_bytes} are allowed"
            return error_plan(413, message)
        if options.strict_model and ask.body.model not in options.models:
            return error_plan(404, f"The model `{ask.body.model}` does not exist.", "model_not_found")
        if options.logprobs == "error" and (ask.body.logprobs or ask.body.prompt_logprobs is not None):
            return error_plan(400, "logprobs are not supported by this server")
        if options.max_context is not None and tokens > options.max_context:
            message = f"This model's maximum context length is {options.max_context} tokens."
            return error_plan(400, f"{message} However, you requested {tokens} tokens.", "context_length_exceeded")
        return None

    def _retry_header(self, wait_s: float) -> dict[str, str]:
        if self.options.retry_after is None:
            return {}
        date = formatdate(time.time() + wait_s + 1, usegmt=True)
        return {"Retry-After": date if self.options.retry_after == "date" else f"{wait_s:.3f}"}

    def answer_plan(
        self, ask: Ask, entry: Entry | None, occasion: Occasion, wire_format: WireFormat | None = None
    ) -> Plan:
        """Return the good answer: what the reader says, in the form and the dialect the request asks for."""
        ident = f"mock-{occasion.ordinal}"
        replies = [self._reply(ask, entry, index) for index in range(ask.body.n if ask.chat else 1)]
        completions = [complete(ask, reply, self.options.tokens) for reply in replies]
        if any(text in ask.transcript for text in self.options.filters):
            completions = [Completion([], [], "content_filter", one.prompt_tokens) for one in completions]
        completions = [self._with_kept(ask, one) for one in completions]
        if wire_format is not None:
            plan = wire_format.answer(ask, completions[0], self.options.pace, ident)
        else:
            plan = self._chat_answer(ask, entry, completions, ident)
        return replace(plan, tokens=(completions[0].prompt_tokens, sum(one.output_tokens for one in completions)))

    def _with_kept(self, ask: Ask, completion: Completion) -> Completion:
        """Return the completion with what of its prompt was read from the cache, or goes into it."""
        if ask.body.kept is None:
            return completion
        known, count = ask.body.kept in self._kept, ask.body.kept_tokens
        self._kept.add(ask.body.kept)
        return replace(completion, cached_tokens=count) if known else replace(completion, written_tokens=count)

    def _chat_answer(self, ask: Ask, entry: Entry | None, completions: list[Completion], ident: str) -> Plan:
        wanted = self._wanted(ask, entry)
        prompt = self._prompt_logprobs(ask, wanted)
        if not ask.chat:
            echo = self._echo(ask, completions[0], wanted)
            return text_plan(ask, completions[0], self.options.pace, ident, logprobs=echo, prompt=prompt)
        shown = None
        if ask.body.logprobs and self._gives_logprobs:
            shown = wire.token_logprobs(ask, completions[0].tokens, entry.options if entry else ())
        extra = {} if prompt is None else {"prompt_logprobs": prompt}
        return chat_plan(ask, completions, self.options.pace, ident, extra=extra, logprobs=shown)

    @property
    def _gives_logprobs(self) -> bool:
        return self.options.logprobs in ("ok", "shifted")

    def _wanted(self, ask: Ask, entry: Entry | None) -> tuple[str, ...]:
        if entry is None:
            return (self.options.answer,)
        return (entry.answer, View(entry, ask, rng()).label(entry.answer))

    def _prompt_logprobs(self, ask: Ask, wanted: tuple[str, ...]) -> list[dict[str, Any] | None] | None:
        if ask.body.prompt_logprobs is None or not self._gives_logprobs:
            return None
        return wire.prompt_logprobs(ask.transcript, wanted, shifted=self.options.logprobs == "shifted")

    def _echo(self, ask: Ask, completion: Completion, wanted: tuple[str, ...]) -> dict[str, Any] | None:
        if ask.body.logprobs is None or ask.body.logprobs is False or not self._gives_logprobs:
            return None
        tokens = (tokenize(ask.text) if ask.body.echo else []) + completion.tokens
        shifted, generated = self.options.logprobs == "shifted", len(completion.tokens)
        return wire.echo_logprobs(ask, tokens, wanted, shifted=shifted, generated=generated)

    def _reply(self, ask: Ask, entry: Entry | None, index: int) -> Reply:
        if entry is None:
            style, seed = self.options.drafter, self.options.seed + (ask.body.seed or 0)
            drafted = draft_reply(ask.text, style, seed) if style else None
            return Reply(self.options.answer if drafted is None else drafted)
        draw = index
        if ask.body.temperature and ask.body.seed is None:
            self._draws[ask.digest] += 1
            draw = self._draws[ask.digest]
        return self.options.reader.reply(View(entry, ask, rng(self.options.seed, ask.digest, ask.body.seed or 0, draw)))

    def _note(self, exchange: Exchange, occasion: Occasion, ask: Ask | None, **what: Any) -> None:
        """Count a request, and write its line to the log before it is answered."""
        self.stats[f"fault_{what['fault']}" if what["fault"] else f"status_{what['status']}"] += 1
        if self._log is None:
            return
        line = {
            "n": occasion.ordinal,
            "time": time.time(),
            "path": exchange.path,
            "body_sha256": occasion.body_hash,
            "attempt": occasion.attempt,
            "question": ask.digest if ask else None,
            "images": ask.image_hashes if ask else (),
            **what,
        }
        os.write(self._log, msgspec.json.encode(line) + b"\n")


async def play(plan: Plan, exchange: Exchange, started: float) -> None:
    """Send a plan piece by piece, each at its moment; the head leaves with the first piece."""
    head = b"" if plan.headless else response_head(plan.status, _headers(plan))
    for piece in plan.pieces:
        delay_s = started + piece.at_s - time.perf_counter() - WAKE_LATE_S
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        exchange.write(head + (b"%x\r\n%b\r\n" % (len(piece.data), piece.data) if plan.streamed else piece.data))
        head = b""
    if head:
        exchange.write(head)
    await _finish(plan, exchange)


async def _finish(plan: Plan, exchange: Exchange) -> None:
    match plan.finish:
        case "hang":
            await asyncio.get_running_loop().create_future()
        case "reset":
            exchange.reset()
        case "close":
            exchange.transport.close()
        case _ if plan.streamed:
            exchange.write(b"0\r\n\r\n")


def _headers(plan: Plan) -> dict[str, str]:
    headers = {"Content-Type": plan.content_type, **plan.headers}
    if plan.streamed:
        return {**headers, "Transfer-Encoding": "chunked", "Cache-Control": "no-cache"}
    size = len(plan.body) if plan.declared_bytes is None else plan.declared_bytes
    return {**headers, "Content-Length": str(size)}


@dataclass(frozen=True, slots=True)
class Running:
    """A started server. Close it with `await running.close()`."""

    server: MockServer
    listener: asyncio.Server
    port: int
    connections: WeakSet[HttpProtocol | ConstantProtocol]

    @property
    def base_url(self) -> str:
        """Return what goes into `--base-url`."""
        return f"http://127.0.0.1:{self.port}{speech_of(self.server.options.dialect).root}"

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        self.listener.close()
        for connection in list(self.connections):
            connection.drop()
        await asyncio.sleep(0)  # in which the loop closes their sockets
        self.server.close()


async def start(options: MockOptions | None = None, port: int = 0, *, trivial: bool = False) -> Running:
    """Start a server on this event loop; port 0 picks a free one. `trivial` answers a constant with the least work."""
    server = MockServer(options or MockOptions())
    connections: WeakSet[HttpProtocol | ConstantProtocol] = WeakSet()

    def protocol() -> asyncio.BaseProtocol:
        made = ConstantProtocol(constant_response(server)) if trivial else HttpProtocol(server.handle)
        connections.add(made)
        return made

    try:
        listener = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", port, backlog=4096)
    except OSError as error:
        reason = f"{error.strerror}; --port 0 picks a free port"
        raise EnvironmentProblem(f"cannot listen on 127.0.0.1:{port}: {reason}") from None
    return Running(server, listener, listener.sockets[0].getsockname()[1], connections)


def constant_response(server: MockServer) -> bytes:
    """Return the bytes of one complete chat response."""
    ask = parse_ask(b'{"messages":[{"role":"user","content":"?"}]}', chat=True)
    body = server.answer_plan(ask, None, Occasion(0, 1, "", "")).body
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body

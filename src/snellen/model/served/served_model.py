"""A request to a prediction by a server: write it in the provider's dialect, send, time, and read the reply."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlencode

import msgspec
from msgspec.structs import replace

from ...core.answerer import hashed_headers
from ...core.clock import Clock
from ...core.errors import ModelError, ServerLost, StopRun, UsageError, did_you_mean
from ...core.jobs import pay_for_resend
from ...core.protocols import Capability, EncodedImages, ImagePolicy
from ...core.secret import Secret
from ...core.text import clean_text
from ...core.types import FailureKind, ImageSent, Prediction, Request, Timing, Tool
from ..options import ModelOptions, Served, address_variable, first_set
from ..plain import cut_at_stop
from .access_tokens import command_token
from .candidate_scorer import CandidateScorer
from .dialect import Dialect, build_body, plain_body
from .http_client import AiohttpClient, Body, HttpClient
from .negotiation import Quirks
from .post import HttpResponse
from .replies import (
    BOM,
    LIMIT_HEADERS,
    NEGOTIABLE,
    Reply,
    calls_of,
    check_reply,
    check_streamed,
    decode_body,
    read_event,
    read_safely,
    scrub_reply,
    seconds_until,
    status_error,
    without_error,
)
from .reply_watch import LIMITS, ReplyWatch
from .server_fields import constraint_of, held_answer, merge_fields, reasoning_fields, with_marks

P = ParamSpec("P")
T = TypeVar("T")
SCARCE = 0.2
"""Below this share of a limit requests are spaced evenly over the time until it is full again."""
LONGEST_S = 60.0
"""No request is held back longer: the next reply tells how the limits stand then."""
PACING_TOLD_S = 0.5
"""From so much between two requests on it is told why: before, nobody wonders."""
TOKEN_STEPS = 100.0
"""A limit of tokens is taken to be used up in so many requests: what one takes is not known before."""


class Pacer:
    """Spaces requests while a limit is scarce; a server that tells nothing costs a few looks a reply."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next = 0.0
        self._spacing_s = 0.0
        self.words = ""
        """Why requests are spaced, while they are."""

    @property
    def must_wait(self) -> bool:
        """Tell whether requests have to wait for their turn."""
        return self._spacing_s > 0.0

    def note(self, headers: Mapping[str, str]) -> None:
        """Read how the limits stand."""
        spacing_s = 0.0
        for left, others in LIMIT_HEADERS.items():
            if left in headers:
                limit, reset, kind = others
                told = headers.get(left, ""), headers.get(limit, ""), headers.get(reset, "")
                apart_s = self._space(*told, kind=kind)
                if apart_s > spacing_s:
                    spacing_s = apart_s
                    self.words = f"the server says {told[0]} of {told[1]} {kind} are left until {told[2]}"
        self._spacing_s = min(spacing_s, LONGEST_S)

    def _space(self, left: str, limit: str, reset: str, *, kind: str) -> float:
        reset_s = seconds_until(reset, self._clock) or 0.0
        try:
            share, whole = float(left) / float(limit), float(left)
        except (ValueError, ZeroDivisionError):
            return 0.0
        if not 0 <= share < SCARCE:
            return 0.0
        steps = whole if kind == "requests" else share * TOKEN_STEPS
        return reset_s / max(1.0, steps)

    async def turn(self) -> None:
        """Wait until the next request may leave; each takes a place of its own."""
        now = self._clock.monotonic()
        self._next = max(self._next, now) + self._spacing_s
        await self._clock.sleep(min(self._next - now, LONGEST_S))


class KeyRing:
    """Holds the key that is sent now."""

    def __init__(self, options: ModelOptions, variable: str) -> None:
        command = partial(command_token, options.key_command) if options.key_command else None
        self._fetch = options.renew_key or command
        self._fetching = asyncio.Lock()
        self.key = options.api_key or (self._fetch() if self._fetch else None)
        if self.key is None and (value := first_set(variable)):
            self.key = Secret(value)

    async def renewed(self, refused: Secret | None) -> bool:
        """Fetch a new token after one was refused; False where there is no other, which stops the run."""
        if self._fetch is None:
            return False
        async with self._fetching:
            if self.key is not refused:  # meanwhile another request fetched one
                return True
            fresh = await asyncio.to_thread(self._fetch)
            if refused is not None and fresh.reveal() == refused.reveal():
                return False
            self.key = fresh
            return True


SERVICES = ("/chat/completions", "/completions", "/messages", "/models", "/responses")
"""Endings of addresses that are a service of the server, not the server."""


def split_address(base_url: str) -> tuple[str, Secret | None]:
    """Return an address without the user and password in it, and those; they go as a header, and nowhere else."""
    head, slashes, rest = base_url.strip().partition("://")
    host, slash, path = rest.partition("/")
    userinfo, at, host = host.rpartition("@")
    address = f"{head}{slashes}{host}{slash}{path}"
    if "?" in address or "#" in address:
        bare = re.split(r"[?#]", address)[0]
        raise UsageError(f"--base-url {bare} must end where its path ends: give a key by --api-key-env, not behind '?'")
    return address.rstrip("/"), Secret(unquote(userinfo)) if at else None


def trim_address(url: str) -> str:
    """Return a server's address without the ending of one of its services: people paste what they see in logs."""
    trimmed = url.rstrip("/")
    for ending in SERVICES:
        trimmed = trimmed.removesuffix(ending).rstrip("/")
    return trimmed


TELLING = ("id", "root", "parent", "owned_by", "max_model_len", "version")
"""What an entry of /models says of a checkpoint; its permissions are new each time."""
CREATED = "created"
SAME_MOMENT_S = 120.0
A_DAY_S = 86_400.0


def read_listing(value: Any, asked_at: float | None = None) -> dict[str, dict[str, Any]]:
    """Return what a server says of each of its models and does not change from one question to the next.

    `asked_at` is the moment of the question by the server's own clock: many servers give it as the date of the model.
    """
    rows = value.get("data") or value.get("models") if isinstance(value, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    named = {str(row.get("id") or row.get("name") or "").removeprefix("models/"): row for row in rows}
    told = {name: {key: row[key] for key in TELLING if row.get(key) is not None} for name, row in named.items() if name}
    for name, facts in told.items():
        if _is_a_date(created := named[name].get(CREATED), asked_at):
            facts[CREATED] = created
    return told


def _is_a_date(created: Any, asked_at: float | None) -> bool:
    """Tell whether it is when the model was made: not the moment of the question, nor nothing."""
    if not isinstance(created, int) or isinstance(created, bool) or created <= 0 or asked_at is None:
        return False
    return asked_at - created > SAME_MOMENT_S


VERSION = "/v1"
DEPLOYMENTS = frozenset({"azure", "litellm"})
"""Where the name of a model is one that its users gave it, or is changed on its way."""
POLL_S, POLL_TIMEOUT_S = 5.0, 60.0
"""Between two questions after a response that is made in the background, and for each."""
STOPS = frozenset({"stop", "stop_sequences", "stopSequences"})


class ServedModel(Served):
    """Any provider whose dialect is known: `dialect` writes for it, `remote_name` is what the server knows it by."""

    cacheable = True

    def __init__(self, dialect: Dialect, name: str, options: ModelOptions, http: HttpClient | None = None) -> None:
        if not name:
            raise UsageError(f"model {dialect.provider!r} needs a name: {dialect.provider}/NAME")
        self.name = f"{dialect.provider}/{name}"
        self.capabilities = dialect.capabilities
        self.batches = dialect.batch
        policy = options.image_policy or dialect.image_policy
        self.image_policy: ImagePolicy = replace(policy, bare=True) if options.strip_metadata else policy
        self.clock = options.clock
        self.dialect = dialect
        self.remote_name = name
        self._options = options
        self._constraint = constraint_of(options.constrain, dialect.constrain, dialect.provider)
        dialect.marks_cache = options.prompt_cache
        self.quirks = Quirks()
        """What this server wants otherwise; grows with its refusals."""
        self._reasoning = (
            reasoning_fields(options.reasoning, dialect.reasoning, dialect.provider) if options.reasoning else None
        )
        self._keys = KeyRing(options, dialect.key_variable)
        self._pacer = Pacer(options.clock)
        self._watch = ReplyWatch(name, named=dialect.provider not in DEPLOYMENTS)
        base_url = options.base_url or first_set(address_variable(dialect.provider)) or dialect.default_url
        address, self._password = split_address(base_url)
        self._http: HttpClient = http or AiohttpClient()
        self._move_to(trim_address(address))
        self._goes_along: dict[str, Any] | None = None
        self.said: Mapping[str, Any] = {}
        """What the server says of this model, once it was checked: two checkpoints may answer to one name."""
        self._headers = self._make_headers()
        self._hidden = self._secrets()
        can_score = Capability.LIKELIHOOD in dialect.capabilities
        self._scorer = CandidateScorer(self, options.arguments.get("likelihood")) if can_score else None

    def endpoint(self, *, stream: bool) -> tuple[str, dict[str, str]]:
        """Return where requests go and their headers, the key in them: for the wire only."""
        return self._address(stream=stream), self._headers

    def _address(self, *, stream: bool) -> str:
        return self._with_query(self.dialect.url(self._base_url, self.remote_name, stream=stream))

    def _with_query(self, url: str) -> str:
        query = self._options.query
        return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}" if query else url

    def reach(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the address of something else on this server and the headers, the key in them: for the wire only.

        `path` is below the server's address, with two slashes below its host; a whole address must be of this host.
        """
        if path.startswith("http"):
            return path, self._headers
        host = "/".join(self._base_url.split("/")[:3])
        url = f"{host}{path[1:]}" if path.startswith("//") else f"{self._base_url}{path}"
        return self._with_query(url), self._headers

    def is_here(self, url: str) -> bool:
        """Tell whether an address is of this very host: the key goes nowhere else."""
        return url.split("/")[:3] == self._base_url.split("/")[:3]

    def _make_headers(self) -> dict[str, str]:
        headers = self.dialect.headers(self._keys.key)
        headers |= {name: value.reveal() for name, value in self._options.headers.items()}
        if self._password is None:
            return headers
        if "Authorization" in headers:
            raise UsageError("--base-url holds a password and there is an API key as well: leave one of them out")
        return headers | {"Authorization": f"Basic {base64.b64encode(self._password.reveal().encode()).decode()}"}

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer one request, or raise ModelError."""
        try:
            if request.choices:
                return await self._score(request, images)
            reply, timing = await self._ask(request, images)
            return self._finished(request, reply, timing, images)
        except ModelError as error:
            raise self.scrubbed(error) from None

    def write_body(
        self,
        request: Request,
        images: EncodedImages,
        left_out: frozenset[str] = frozenset(),
        *,
        stream: bool | None = None,
    ) -> Body:
        """Return the body of a request as it would be sent now: a line of a batch, one of a load, one to be shown."""
        request = self._with_reasoning(replace(request, params=replace(request.params, stream=stream)))
        quirks = replace(self.quirks, drop=self.quirks.drop | left_out) if left_out else self.quirks
        return build_body(self.dialect, self.remote_name, request, images, quirks)

    def read_body(self, request: Request, images: EncodedImages, status: int, body: bytes) -> Prediction:
        """Return the prediction of a whole response that came some other way, or raise its ModelError."""
        try:
            if status != 200:
                raise status_error(status, {}, body, self.clock)
            reply = self._read_reply(body, request.tools)
        except ModelError as error:
            raise self.scrubbed(error) from None
        return self._finished(request, reply, None, images)

    async def post(self, path: str, body: Body) -> Mapping[str, Any]:
        """Send a body to a path under the server's address and return the JSON object it answers with."""
        if self._pacer.must_wait:
            await self._pacer.turn()
        response = await self.fetch(self.reach(path)[0], body)
        return read_safely(without_error, decode_body(response.body))

    async def fetch(self, url: str, body: Body | None = None, timeout_s: float | None = None) -> HttpResponse:
        """POST a body (GET without one) and return the response, or raise the error that it tells.

        Without `timeout_s` the engine keeps the deadline of the attempt; a second timer for each would only cost.
        """
        return await self.keyed(self._exchange, url, body, timeout_s)

    async def keyed(self, ask: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        """Return what one exchange brings; where the server no longer takes the key, once more with a fresh one."""
        key = self._keys.key
        try:
            return await ask(*args, **options)
        except ModelError as error:
            if error.kind is not FailureKind.AUTH or not await self._keys.renewed(key):
                raise
        self._headers, self._hidden = self._make_headers(), self._secrets()
        return await ask(*args, **options)

    async def _exchange(self, url: str, body: Body | None, timeout_s: float | None) -> HttpResponse:
        response = await self._http.send(url, body, self._headers, timeout_s)
        self._pacer.note(response.headers)
        if response.status != 200:
            raise status_error(response.status, response.headers, response.body, self.clock)
        return response

    async def check(self) -> None:
        """Raise if the server cannot be reached, refuses the key, or lists its models without this one."""
        known = await self.listed_models() if self.dialect.lists_models else {}
        self.said = known.get(self.remote_name, {})
        if known and self.remote_name not in known:
            near = did_you_mean(self.remote_name, known)
            served = ", ".join(list(known)[:8])
            raise UsageError(f"the server does not know model {self.remote_name!r}{near}; it serves: {served}")

    async def listed_models(self) -> dict[str, dict[str, Any]]:
        """Return what the server says of each of its models, none where it does not list them; raise if it is gone."""
        response = await self._list_models(self._base_url)
        if response.status == 404 and not self._base_url.endswith(VERSION):
            below = await self._list_models(self._base_url + VERSION)
            if below.status != 404:
                self._move_to(self._base_url + VERSION)
                response = below
        if response.status == 401:
            raise self.scrubbed(status_error(401, response.headers, response.body, self.clock))
        if response.status != 200:
            return {}
        return read_listing(decode_body(response.body), self._moment_of(response.headers))

    def _moment_of(self, headers: Mapping[str, str]) -> float:
        """Return when the server answered, by its own clock; where it does not tell, a day of doubt is left."""
        told = headers.get("Date") or headers.get("date")
        if told:
            with contextlib.suppress(ValueError, TypeError):
                return parsedate_to_datetime(told).timestamp()
        return self.clock.time() - A_DAY_S

    async def _list_models(self, address: str) -> HttpResponse:
        try:
            return await self._http.send(f"{address}/models", None, self._headers, 10.0)
        except ModelError as error:
            raise ServerLost(
                f"server of {self.name} is not reachable: {error}; is it running, is --base-url right?"
            ) from None

    def _move_to(self, address: str) -> None:
        self._base_url = address
        self._url = self._address(stream=False)

    def identity(self) -> Mapping[str, Any]:
        """Return what changes the answers: the name, where it is served, and the image policy."""
        shared = {"model": self.name, "base_url": self._base_url, "image_policy": self.image_policy}
        shared |= {"constrain": self._options.constrain} if self._constraint else {}
        return shared | ({"reasoning": self._options.reasoning} if self._reasoning else {})

    def surroundings(self) -> Mapping[str, Any]:
        """Return what else decides who answers: what goes with every request, and what the server lists."""
        if self._goes_along is None:  # before the first request: what is learned later is the server's own doing
            headers = hashed_headers(self._options.headers, self._base_url)
            self._goes_along = {"query": dict(self._options.query), "headers": headers, "body": self._written()}
        return {**self._goes_along, "listed": dict(self.said)}

    def _written(self) -> dict[str, Any]:
        """Return what is written into every body beside the request: by the card, the dialect, the arguments."""
        plain = msgspec.to_builtins(Quirks())
        told = {name: value for name, value in msgspec.to_builtins(self.quirks).items() if value != plain[name]}
        told.pop("learned", None)
        if "drop" in told:
            told["drop"] = sorted(told["drop"])
        more = {
            "arguments": dict(self._options.arguments),
            "reasoning": dict(self._reasoning.fields) if self._reasoning else {},
            "constrain": dict(self._constraint) if self._constraint else {},
        }
        return told | {name: value for name, value in more.items() if value}

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _score(self, request: Request, images: EncodedImages) -> Prediction:
        if self._scorer is None:
            message = f"{self.name} cannot score candidates: use --infer-method generation"
            raise ModelError(FailureKind.CAPABILITY, message)
        return await self._scorer.predict(request, images)

    def _finished(self, request: Request, reply: Reply, timing: Timing | None, images: EncodedImages) -> Prediction:
        if self._hidden:
            scrub_reply(reply, self._hidden)
        if reply.text:
            reply.text = self._as_asked(request, reply.text, reply.finish)
        sent = tuple([images[image].sent for turn in request.messages for image in turn.images]) if images else ()
        limit = self._limit_of(request)
        usage = reply.usage and reply.usage.believed()
        self._watch.look_at(request, reply, usage, limit, shown=len(sent))
        reply.usage = usage
        if limit is not None and "limit" in self._watch.said:
            self.quirks.take_back_limit(limit)
        return _to_prediction(request, reply, timing, sent, self.adjusted)

    def _as_asked(self, request: Request, text: str, finish: str | None) -> str:
        """Return a reply's text up to its stop strings, where the server takes none, and held to its options."""
        if request.params.stop and STOPS & self.quirks.drop:
            text = cut_at_stop(text, request.params.stop)
        constrain = self._options.constrain
        return held_answer(constrain, text, request.marks, finish) if text and constrain else text

    def _limit_of(self, request: Request) -> int | None:
        """Return the most tokens a reply may have, room to reason included; None where nothing limits it."""
        params = request.params
        limit = params.max_tokens or self.dialect.default_limit
        if params.extra_body:
            given = [one for name in LIMITS if isinstance(one := params.extra_body.get(name), int)]
            limit = next(iter(given), limit)
        return limit and limit + (self._reasoning.room if self._reasoning else 0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What replies showed of the server that its users should know."""
        return tuple([self._without_secrets(text) for text in self._watch.said.values()])

    @property
    def pacing(self) -> str:
        """Say how far apart requests leave, and why; nothing while they need not wait."""
        apart = self._pacer._spacing_s
        return f"one request each {apart:.2g} s: {self._pacer.words}" if apart >= PACING_TOLD_S else ""

    @property
    def adjusted(self) -> tuple[str, ...]:
        """What is sent otherwise than asked because the server refused it, in words."""
        return tuple([self._without_secrets(text) for text in self.quirks.learned]) if self.quirks.learned else ()

    async def _ask(self, request: Request, images: EncodedImages) -> tuple[Reply, Timing]:
        """Send a request; one whose parameters are refused is sent again at once as the server wants it."""
        request = self._with_reasoning(request)
        while True:
            known = len(self.quirks.learned)
            if self.quirks.stream and not request.params.stream:  # the server only streams
                request = replace(request, params=replace(request.params, stream=True))
            body = build_body(self.dialect, self.remote_name, request, images, self.quirks)
            if self._pacer.must_wait:
                await self._pacer.turn()
            try:
                if request.params.stream:
                    return await self.keyed(self._stream, request, body)
                return await self._send(body, request.tools)
            except ModelError as error:
                if error.status not in NEGOTIABLE or not self._learned(error, request, known):
                    raise
            pay_for_resend()

    def _with_reasoning(self, request: Request) -> Request:
        """Return the request with the fields that say how much to reason, and with room for it in its limit."""
        if self.dialect.unknown:
            self._note_unknown(request)
        if self._constraint is not None:
            request = self._constrained(request, self._constraint)
        if self._reasoning is None:
            return request
        params = request.params
        limit = params.max_tokens or self.dialect.default_limit
        limit = limit and limit + self._reasoning.room
        extra = merge_fields(params.extra_body or {}, self._reasoning.fields)
        return replace(request, params=replace(params, max_tokens=limit, extra_body=extra))

    def _constrained(self, request: Request, fields: dict[str, Any]) -> Request:
        """Return the request with what makes the server answer as it may."""
        if self._options.constrain == "options" and not request.marks:
            raise ModelError(FailureKind.CAPABILITY, "--constrain options: this question shows no options")
        params = request.params
        extra = merge_fields(params.extra_body or {}, with_marks(fields, request.marks))
        return replace(request, params=replace(params, extra_body=extra))

    def _note_unknown(self, request: Request) -> None:
        """Say once of a parameter that the API has no name for that it is left out."""
        for name in sorted(self.dialect.unknown - self.quirks.drop):
            if getattr(request.params, name) is None:
                continue
            what = f"{name} has no name in {self.dialect.provider}'s API"
            if self._options.strict_params:
                raise StopRun(FailureKind.CAPABILITY, f"{what} (--strict-params: not sent without it)")
            self.quirks.drop.add(name)
            self.quirks.learned.append(f"drop {name}: {what}")

    def _learned(self, error: ModelError, request: Request, known: int) -> bool:
        """Tell whether the next try is another one: something was learned now, or meanwhile by another request."""
        if len(self.quirks.learned) > known:
            return True
        body = plain_body(self.dialect, self.remote_name, request, self.quirks)
        sent = body.get(self.dialect.sampling_place, {}) if self.dialect.sampling_place else body
        if not self._options.strict_params:
            return self.quirks.learn(error, sent) is not None
        change = msgspec.convert(msgspec.to_builtins(self.quirks), Quirks).learn(error, sent)
        if change is not None:
            raise StopRun(error.kind, f"{error} (--strict-params: not sent otherwise)", status=error.status)
        return False

    async def _send(self, body: Body, tools: Sequence[Tool]) -> tuple[Reply, Timing]:
        sent = self.clock.monotonic()
        response = await self.fetch(self._url, body)
        while (path := self.dialect.unfinished(response.body)) is not None:
            await self.clock.sleep(POLL_S)
            response = await self.fetch(self.reach(path)[0], None, POLL_TIMEOUT_S)
        done = self.clock.monotonic()
        return self._read_reply(response.body, tools), Timing(sent, done)

    def _read_reply(self, body: bytes, tools: Sequence[Tool]) -> Reply:
        value = decode_body(body)
        reply = read_safely(self.dialect.parse, value)
        check_reply(reply, value, tools)
        return reply

    async def _stream(self, request: Request, body: Body) -> tuple[Reply, Timing]:
        sent = self.clock.monotonic()
        url = self._address(stream=True)
        timeout_s = request.params.timeout_s or self._options.timeout_s
        async with self._http.stream(url, body, self._headers, timeout_s) as response:
            self._pacer.note(response.headers)
            start = await anext(response.chunks, b"")
            is_page = "text/html" in response.headers.get("Content-Type", "")
            if response.status != 200 or is_page or start.removeprefix(BOM).lstrip()[:1] == b"{":  # it answers whole
                answer = b"".join([start, *[chunk async for chunk in response.chunks]])
                if response.status != 200:
                    raise status_error(response.status, response.headers, answer, self.clock)
                return self._read_reply(answer, request.tools), Timing(sent, self.clock.monotonic())
            return await self._collect(_with_start(start, response.chunks), sent, request.tools)

    async def _collect(
        self, chunks: AsyncIterator[bytes], sent: float, tools: Sequence[Tool] = ()
    ) -> tuple[Reply, Timing]:
        reply, first = Reply(), dict[str, float]()
        times, silent = list[float](), list[float]()
        try:
            async for event in self.dialect.events(chunks):
                now = self.clock.monotonic()
                first.setdefault("event", now)
                brought = read_event(self.dialect.parse_event, decode_body(event), reply)
                if brought:
                    first.setdefault(brought, now)
                (times if brought else silent).append(now)
        except ModelError as error:
            error.detail.setdefault("partial", clean_text(reply.text or ""))
            raise
        if not (reply.closed or reply.finish):
            partial = {"partial": clean_text(reply.text or "")}
            raise ModelError(FailureKind.NETWORK, "the stream was cut before its end", retryable=True, detail=partial)
        check_streamed(reply, tools)
        event_at, thought_at, text_at = map(first.get, ("event", "reasoning", "content"))
        return reply, Timing(
            sent, self.clock.monotonic(), None, event_at, thought_at, text_at, tuple(times), tuple(silent)
        )

    def _secrets(self) -> list[Secret]:
        """Return the key, what headers hold, the user with password and the password alone: whichever there are."""
        alone = None if self._password is None else Secret(self._password.reveal().partition(":")[2])
        known = (self._keys.key, self._password, alone, *self._options.headers.values())
        return [secret for secret in known if secret is not None]

    def _without_secrets(self, text: str) -> str:
        for secret in self._hidden:
            text = secret.scrub(text)
        return text

    def scrubbed(self, error: ModelError) -> ModelError:
        """Return the error without secrets in its words."""
        error.detail.pop("whole", None)  # it was for the negotiation
        error.args = (self._without_secrets(str(error)),)
        texts = {name: text for name, text in error.detail.items() if isinstance(text, str)}
        error.detail = error.detail | {name: self._without_secrets(text) for name, text in texts.items()}
        return error


def _detail_of(reply: Reply) -> dict[str, Any]:
    told = {"model": reply.model} if reply.model else {}
    if reply.fingerprint:
        told["fingerprint"] = reply.fingerprint
    return told | {"host": reply.host} if reply.host else told


def _to_prediction(
    request: Request, reply: Reply, timing: Timing | None, sent: tuple[ImageSent, ...], adjusted: Sequence[str]
) -> Prediction:
    prediction = Prediction(
        key=request.key,
        text=clean_text(reply.text or ""),
        reasoning=clean_text(reply.reasoning) if reply.reasoning else None,
        usage=reply.usage,
        timing=timing,
        finish=reply.finish,
        images=sent,
        detail=_detail_of(reply) | ({"adjusted": adjusted} if adjusted else {}),
    )
    if not request.tools:  # calls that were not offered are no reply: `check_reply` refuses them
        return prediction
    if reply.foreign:
        prediction.detail["foreign"] = reply.foreign
    return msgspec.structs.replace(prediction, calls=calls_of(reply), kept=tuple(reply.kept))


async def _with_start(start: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces of a stream whose first was looked at."""
    yield start
    async for chunk in rest:
        yield chunk

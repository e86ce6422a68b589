"""A model behind HTTP: encode the pictures, send, time, and read the reply in the provider's dialect."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...core.errors import DataError, EnvironmentProblem, ModelError, UsageError, did_you_mean
from ...core.secret import Secret
from ...core.types import FailureKind, Prediction, Request, Timing
from ...data.images.encode import EncodedImage, ImageDoor
from ..options import ModelOptions
from .events import read_events
from .http_client import AiohttpClient, Body, HttpClient
from .wire import Dialect, Reply, build_body, check_reply, clean_text, decode_body, status_error

T = TypeVar("T")


class ServedModel:
    """Any provider whose dialect is known. Holds one HTTP client and one image door."""

    def __init__(self, dialect: Dialect, name: str, options: ModelOptions, http: HttpClient | None = None) -> None:
        if not name:
            raise UsageError(f"model {dialect.provider!r} needs a name: {dialect.provider}/NAME")
        self.name = f"{dialect.provider}/{name}"
        self.capabilities = dialect.capabilities
        self.image_policy = options.image_policy or dialect.image_policy
        self.door = ImageDoor()
        self._dialect = dialect
        self._model = name
        self._options = options
        self._key = options.api_key or _key_from(dialect.key_variable)
        self._base_url = (
            options.base_url or os.environ.get(f"{dialect.provider.upper()}_BASE_URL") or dialect.default_url
        ).rstrip("/")
        self._http: HttpClient = http or AiohttpClient()
        self._clock = options.clock
        self._url = dialect.url(self._base_url, name, stream=False)
        self._headers = dialect.headers(self._key)

    @property
    def dialect(self) -> Dialect:
        """How its provider writes requests and replies."""
        return self._dialect

    @property
    def remote_name(self) -> str:
        """The name the server knows it by."""
        return self._model

    def endpoint(self, *, stream: bool) -> tuple[str, dict[str, str]]:
        """Return where requests go and their headers, the key in them: for the wire only."""
        return self._dialect.url(self._base_url, self._model, stream=stream), self._dialect.headers(self._key)

    async def predict(self, request: Request) -> Prediction:
        """Answer one request, or raise ModelError."""
        if request.choices:
            raise ModelError(
                FailureKind.CAPABILITY, f"{self.name} cannot score candidates: use --infer-method generation"
            )
        images = await self.encode_pictures(request)
        body = build_body(self._dialect, self._model, request, images)
        try:
            reply, timing = await (self._stream(request, body) if request.params.stream else self._send(body))
        except ModelError as error:
            raise self._scrubbed(error) from None
        if self._key is not None and not self._key.is_placeholder:  # some gateways echo what they were sent
            reply.text, reply.reasoning = (each and self._key.scrub(each) for each in (reply.text, reply.reasoning))
        return _to_prediction(request, reply, timing, images)

    async def encode_pictures(self, request: Request) -> list[list[EncodedImage]]:
        """Return the pictures of each message, ready to be sent."""
        if not any(turn.images for turn in request.messages):
            return [[] for _ in request.messages]
        try:
            return [
                [await self.door.encode(image, self.image_policy) for image in turn.images] for turn in request.messages
            ]
        except DataError as error:
            raise ModelError(FailureKind.DECODE, str(error)) from None

    async def check(self) -> None:
        """Raise if the server cannot be reached, refuses the key, or lists its models without this one."""
        try:
            response = await self._http.send(f"{self._base_url}/models", None, self._headers, 10.0)
        except ModelError as error:
            raise EnvironmentProblem(
                f"server of {self.name} is not reachable: {error}; is it running, is --base-url right?"
            ) from None
        if response.status == 401:
            raise self._scrubbed(status_error(401, response.headers, response.body, self._clock))
        known = _listed_models(response.body) if response.status == 200 else []
        if known and self._model not in known:
            raise UsageError(
                f"the server does not know model {self._model!r}{did_you_mean(self._model, known)}; it serves: {', '.join(known[:8])}"
            )

    def identity(self) -> Mapping[str, Any]:
        """Return what changes the answers: the name, where it is served, and the image policy."""
        return {"model": self.name, "base_url": self._base_url, "image_policy": self.image_policy}

    async def close(self) -> None:
        """Close the connections."""
        self.door.close()
        await self._http.close()

    async def _send(self, body: Body) -> tuple[Reply, Timing]:
        sent = self._clock.monotonic()
        # The engine keeps the deadline of every attempt; a second timer for each request would only cost.
        response = await self._http.send(self._url, body, self._headers, None)
        done = self._clock.monotonic()
        if response.status != 200:
            raise status_error(response.status, response.headers, response.body, self._clock)
        reply = read_safely(self._dialect.parse, decode_body(response.body))
        check_reply(reply)
        return reply, Timing(sent, done)

    async def _stream(self, request: Request, body: Body) -> tuple[Reply, Timing]:
        sent = self._clock.monotonic()
        url = self._dialect.url(self._base_url, self._model, stream=True)
        async with self._http.stream(url, body, self._headers, self._timeout(request)) as response:
            if response.status != 200:
                answer = b"".join([chunk async for chunk in response.chunks])
                raise status_error(response.status, response.headers, answer, self._clock)
            return await self._collect(response.chunks, sent)

    async def _collect(self, chunks: AsyncIterator[bytes], sent: float) -> tuple[Reply, Timing]:
        reply, times = Reply(), []
        first: dict[str, float] = {}
        try:
            async for event in read_events(chunks):
                now = self._clock.monotonic()
                first.setdefault("event", now)
                brought = read_safely(self._dialect.parse_event, decode_body(event), reply)
                if brought:
                    first.setdefault(brought, now)
                    times.append(now)
        except ModelError as error:
            error.detail.setdefault("partial", clean_text(reply.text or ""))
            raise
        if not (reply.closed or reply.finish):
            partial = {"partial": clean_text(reply.text or "")}
            raise ModelError(FailureKind.NETWORK, "the stream was cut before its end", retryable=True, detail=partial)
        check_reply(reply)
        done = self._clock.monotonic()
        return reply, Timing(
            sent, done, None, first.get("event"), first.get("reasoning"), first.get("content"), tuple(times)
        )

    def _timeout(self, request: Request) -> float:
        return request.params.timeout_s or self._options.timeout_s

    def _scrubbed(self, error: ModelError) -> ModelError:
        if self._key is not None:
            error.args = (self._key.scrub(str(error)),)
            error.detail = {
                name: self._key.scrub(value) if isinstance(value, str) else value
                for name, value in error.detail.items()
            }
        return error


def read_safely(parse: Callable[..., T], *values: Any) -> T:
    """Read a reply; one of another shape than any server should send is a retryable decode error, never a crash."""
    try:
        return parse(*values)
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        raise ModelError(FailureKind.DECODE, f"the server's reply has another shape: {error}", retryable=True) from None


def _to_prediction(
    request: Request, reply: Reply, timing: Timing, images: Sequence[Sequence[EncodedImage]]
) -> Prediction:
    return Prediction(
        key=request.key,
        text=clean_text(reply.text or ""),
        reasoning=clean_text(reply.reasoning) if reply.reasoning else None,
        usage=reply.usage,
        timing=timing,
        finish=reply.finish,
        images=tuple(image.sent for of_message in images for image in of_message),
        detail={"model": reply.model} if reply.model else {},
    )


def _key_from(variable: str) -> Secret | None:
    value = os.environ.get(variable, "").strip()
    return Secret(value) if value else None


def _listed_models(body: bytes) -> list[str]:
    value = decode_body(body)
    rows = value.get("data") or value.get("models") if isinstance(value, dict) else None
    names = (
        [str(row.get("id") or row.get("name") or "") for row in rows if isinstance(row, dict)]
        if isinstance(rows, list)
        else []
    )
    return [name.removeprefix("models/") for name in names if name]

"""`bedrock/MODEL-ID`: the region to an address, credentials to signatures, or a bearer token to a header."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote
from zlib import crc32

import msgspec

from ...core.errors import MissingExtra, ModelError, UsageError
from ...core.protocols import ImagePolicy
from ...core.types import FailureKind, Request, Turn, Usage
from ...model.options import ModelOptions, first_set
from ...model.served.dialect import Dialect, Picture, write_parts
from ...model.served.http_client import EVENT_LIMIT, AiohttpClient, Body, HttpClient, HttpStream
from ...model.served.post import HttpResponse
from ...model.served.replies import (
    Reply,
    decode_body,
    expect_object,
    refuse_error,
    text_in,
    texts_in,
    unreadable,
)
from ...model.served.served_model import ServedModel
from ...model.served.server_fields import merge_fields

FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
TEXT_BLOCKS = frozenset({"text", "reasoningContent", "cachePoint"})
"""Blocks of an answer; any other is none, also one that nobody knows."""
CONFIG = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop"}


class Bedrock(Dialect):
    """`/model/ID/converse` and `/model/ID/converse-stream`."""

    provider = "bedrock"
    family = "bedrock"
    key_variable = "AWS_BEARER_TOKEN_BEDROCK"
    image_policy = ImagePolicy(max_side=8000, max_bytes=3_750_000)
    sampling_place = "inferenceConfig"
    reasoning = "bedrock"
    unknown = frozenset({"seed"})
    lists_models = False

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return the address of a conversation; a model's name holds colons, which are written as AWS signs them."""
        return f"{base_url}/model/{quote(model, safe='')}/converse{'-stream' if stream else ''}"

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the body."""
        pairs = list(zip(request.messages, pictures, strict=True))
        params = request.params
        body: dict[str, Any] = {"messages": [_message(turn, shown) for turn, shown in pairs if turn.role != "system"]}
        system = [{"text": turn.text} for turn, _ in pairs if turn.role == "system"]
        config = {theirs: value for theirs, ours in CONFIG.items() if (value := getattr(params, ours)) is not None}
        body |= {"system": system} if system else {}
        body |= {"inferenceConfig": config} if config else {}
        return merge_fields(params.extra_body, body) if params.extra_body else body

    def parse(self, value: Any) -> Reply:
        """Read a whole reply."""
        whole = expect_object(value)
        refuse_error(whole)
        message = expect_object(expect_object(whole.get("output") or {}).get("message") or {})
        blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
        texts = texts_in(blocks, "text")
        thoughts = [_thought(block.get("reasoningContent") or {}) for block in blocks]
        return Reply(
            text="".join(texts) if texts else None,
            reasoning="".join(thoughts) or None,
            finish=_finish(whole.get("stopReason")),
            usage=_usage(whole.get("usage")),
            part=next((kind for block in blocks for kind in block if kind not in TEXT_BLOCKS), None),
            choices=len(blocks),
        )

    def events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the frames of a stream."""
        return read_frames(chunks)

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one frame; its name stands beside what it holds."""
        event = expect_object(value)
        refuse_error(event)
        kind = event.get("event")
        if kind == "messageStop":
            reply.finish = _finish(event.get("stopReason"))
        elif kind == "contentBlockStart":
            begun = expect_object(event.get("start") or {})
            reply.part = next((kind for kind in begun if kind not in TEXT_BLOCKS), reply.part)
        elif kind == "metadata":
            reply.usage = _usage(event.get("usage")) or reply.usage
            reply.closed = True
        return _take_delta(event.get("delta") or {}, reply) if kind == "contentBlockDelta" else None


def _message(turn: Turn, pictures: Sequence[Picture]) -> dict[str, Any]:
    return {"role": turn.role, "content": write_parts(turn, [_picture(picture) for picture in pictures])}


def _picture(picture: Picture) -> dict[str, Any]:
    return {"image": {"format": picture.mime.rpartition("/")[2], "source": {"bytes": picture.token}}}


def _thought(reasoning: Mapping[str, Any]) -> str:
    return text_in((reasoning.get("reasoningText") or {}).get("text"))


def _take_delta(delta: Mapping[str, Any], reply: Reply) -> str | None:
    thought = text_in((delta.get("reasoningContent") or {}).get("text"))
    if thought:
        return reply.add_thought(thought)
    if delta.get("text") is None:
        return None
    reply.choices += 1
    return reply.add_text(text_in(delta["text"]))


def _finish(reason: Any) -> str | None:
    return FINISH.get(reason, reason) if reason else None


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    read, written = (value.get(f"cache{kind}InputTokens") for kind in ("Read", "Write"))
    fresh = value.get("inputTokens")  # without what was read from or written to a cache
    whole = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(whole, value.get("outputTokens"), None, read, written_tokens=written or None)


PRELUDE, CHECKSUM = 12, 4
TEXT = 7
SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type, where they are fixed; 6 and 7 say their length first."""


async def read_frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield each message as one JSON object with its name as `event`; an exception as `error`."""
    buffer = bytearray()
    async for chunk in chunks:
        buffer += chunk
        for frame in take_frames(buffer):
            yield _to_json(frame)
    if buffer:
        message = "the stream was cut in the middle of a message"
        raise ModelError(FailureKind.NETWORK, message, retryable=True)


def take_frames(buffer: bytearray) -> Iterator[tuple[dict[str, str], bytes]]:
    """Take every whole message out of a buffer: its headers and its payload."""
    while len(buffer) >= PRELUDE:
        size, headers_size, told = struct.unpack_from(">III", buffer)
        if crc32(buffer[: PRELUDE - CHECKSUM]) != told or not PRELUDE + CHECKSUM + headers_size <= size <= EVENT_LIMIT:
            raise unreadable("a message of the stream has a wrong checksum")
        if len(buffer) < size:
            return
        frame = bytes(buffer[:size])
        del buffer[:size]
        if crc32(frame[:-CHECKSUM]) != struct.unpack(">I", frame[-CHECKSUM:])[0]:
            raise unreadable("a message of the stream has a wrong checksum")
        end = PRELUDE + headers_size
        yield _read_headers(frame[PRELUDE:end]), frame[end:-CHECKSUM]


def _read_headers(data: bytes) -> dict[str, str]:
    """Return the headers that are texts; others are passed over by their size."""
    headers, at = dict[str, str](), 0
    try:
        while at < len(data):
            name = data[at + 1 : at + 1 + data[at]].decode()
            at += 1 + data[at]
            kind, at = data[at], at + 1
            size = SIZES.get(kind)
            if size is None:
                size, at = struct.unpack_from(">H", data, at)[0], at + 2
            if kind == TEXT:
                headers[name] = data[at : at + size].decode()
            at += size
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise unreadable(f"a message of the stream has headers that cannot be read: {error}") from None
    return headers


def _to_json(frame: tuple[dict[str, str], bytes]) -> bytes:
    headers, payload = frame
    value = expect_object(decode_body(payload or b"{}"))
    if headers.get(":message-type") in ("exception", "error"):
        kind = headers.get(":exception-type") or headers.get(":error-code") or "exception"
        said = value.get("message") or headers.get(":error-message") or ""
        return msgspec.json.encode({"error": {"type": kind, "message": said}})
    return msgspec.json.encode({**value, "event": headers.get(":event-type", "")})


SERVICE = "bedrock"


def aws_credentials() -> Any:
    """Return what botocore finds: environment, profile, role. It renews what expires."""
    try:
        from botocore.session import Session
    except ImportError:
        raise MissingExtra("bedrock", "signing requests for AWS") from None
    found = Session().get_credentials()
    if found is None:
        known = "AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)"
        raise UsageError(f"bedrock: no AWS credentials were found; give {known}")
    return found


class SigningClient:
    """Signs each request on its way; fits the Protocol `HttpClient`."""

    def __init__(self, credentials: Any, region: str, inner: HttpClient | None = None) -> None:
        self._credentials, self._region = credentials, region
        self._inner: HttpClient = inner or AiohttpClient()

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """Sign and send."""
        method = "GET" if body is None else "POST"
        return await self._inner.send(url, body, self._sign(method, url, headers, body or ()), timeout_s)

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        """Sign and stream."""
        signed = self._sign("POST", url, headers, body)
        async with self._inner.stream(url, body, signed, timeout_s) as response:
            yield response

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()

    def _sign(self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> dict[str, str]:
        """Return the headers with those of the signature; it costs 0.1 ms beside a reply of seconds."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method, url, dict(headers), b"".join(body))
        SigV4Auth(self._credentials.get_frozen_credentials(), SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())


REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `bedrock/MODEL-ID`; `--model-arg region=…` where AWS_REGION does not say it."""
    options.allow_arguments("bedrock", ("region",))
    region = str(options.arguments.get("region") or first_set(*REGIONS))
    if not region:
        raise UsageError("bedrock: which region? Set AWS_REGION, or give --model-arg region=us-east-1")
    dialect = Bedrock()
    dialect.default_url = f"https://bedrock-runtime.{region}.amazonaws.com"
    bearer = options.api_key is not None or first_set(dialect.key_variable)
    http = None if bearer or options.key_command else SigningClient(aws_credentials(), region)
    return ServedModel(dialect, name, options, http)

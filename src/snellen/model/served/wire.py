"""Request bodies with pictures spliced in as bytes, and responses to replies or typed errors.

Base64 never passes through the JSON encoder: the body is encoded with short tokens and cut at them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.clock import Clock
from ...core.errors import ModelError, StopRun
from ...core.protocols import Capability, ImagePolicy
from ...core.secret import Secret
from ...core.text import clean_text as clean_text
from ...core.types import FailureKind, Image, Request, Usage
from ...data.images.encode import EncodedImage
from .http_client import Body

_NONCE = os.urandom(8).hex()
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
MESSAGE_LIMIT = 300


class Picture(NamedTuple):
    """A picture in a payload: `token` stands where its base64 will be; a dialect that names `file` instead leaves it out."""

    token: str
    mime: str
    sha256: str = ""
    file: str | None = None
    """The path of the picture where it is sent as its own file, unchanged."""


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


class Dialect(Protocol):
    """How one provider writes requests and responses; pure, so it is tested without a network."""

    provider: str
    default_url: str
    key_variable: str
    capabilities: frozenset[Capability]
    image_policy: ImagePolicy

    def url(self, base_url: str, model: str, *, stream: bool) -> str:
        """Return where a request goes."""
        ...

    def headers(self, key: Secret | None) -> dict[str, str]:
        """Return the headers, with the key if there is one."""
        ...

    def payload(self, model: str, request: Request, pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the body; `pictures` holds those of each message in turn."""
        ...

    def parse(self, value: Any) -> Reply:
        """Read a whole response."""
        ...

    def parse_event(self, value: Any, reply: Reply) -> str | None:
        """Read one stream event into `reply`; return `reasoning` or `content` when it brought some."""
        ...


def build_body(dialect: Dialect, model: str, request: Request, images: Sequence[Sequence[EncodedImage]]) -> Body:
    """Return the request body with all pictures in it, in parts."""
    flat = [image for of_message in images for image in of_message]
    if not flat:
        return (msgspec.json.encode(dialect.payload(model, request, [()] * len(images))),)
    tokens = iter(range(len(flat)))
    pictures = [
        [
            _picture(f"@{_NONCE}-{next(tokens)}@", image, reference)
            for image, reference in zip(of_message, turn.images, strict=True)
        ]
        for of_message, turn in zip(images, request.messages, strict=True)
    ]
    skeleton = msgspec.json.encode(dialect.payload(model, request, pictures))
    parts: list[bytes] = []
    for number, image in enumerate(flat):
        head, token, rest = skeleton.partition(b"@%s-%d@" % (_NONCE.encode(), number))
        if token:
            parts += (head, image.base64)
            skeleton = rest
    if b"@" + _NONCE.encode() in skeleton:
        raise AssertionError("a dialect must keep the order of pictures")
    return (*parts, skeleton)


def _picture(token: str, image: EncodedImage, reference: Image) -> Picture:
    own_file = not reference.edits and image.sent.original is None and ":" not in reference.ref[:6]
    return Picture(token, image.sent.mime, image.sent.sha256, reference.ref if own_file else None)


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
        raise ModelError(
            FailureKind.DECODE, f"the server's reply is not JSON ({problem}): {start!r}", retryable=True
        ) from None


def expect_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object, else raise a retryable decode error."""
    if not isinstance(value, dict):
        raise ModelError(
            FailureKind.DECODE, f"the server sent {type(value).__name__} where an object belongs", retryable=True
        )
    return value


def check_reply(reply: Reply) -> None:
    """Raise a typed error for a reply that holds no answer, or something else where its text should be."""
    try:
        msgspec.convert(msgspec.structs.asdict(reply), Reply)
    except msgspec.ValidationError as error:
        raise ModelError(FailureKind.DECODE, f"the server's reply has another shape: {error}", retryable=True) from None
    if reply.refusal or reply.finish in ("content_filter", "refusal", "safety"):
        raise ModelError(
            FailureKind.REFUSED, f"the provider refused: {(reply.refusal or reply.finish or '')[:MESSAGE_LIMIT]}"
        )
    if reply.text is None and reply.finish == "length":
        raise ModelError(FailureKind.TRUNCATED, "the reply was cut before its first word: raise --max-tokens")
    if reply.text is None:
        what = "null content" if reply.choices else "no choices"
        raise ModelError(FailureKind.DECODE, f"the server sent {what}", retryable=True)


def status_error(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> ModelError:
    """Turn an HTTP error into a typed one: which are final, which are retried, which stop the run."""
    message = f"HTTP {status}: {_error_text(body)}"
    if status == 401:
        return StopRun(FailureKind.AUTH, f"{message} (check the API key: --api-key-env NAME)", status=status)
    kind = _kind_of(status, message.lower())
    final = status not in RETRYABLE and status < 500
    if status == 429 and "insufficient_quota" in message:
        final = True
    return ModelError(
        kind, message, status=status, retryable=not final, retry_after_s=parse_retry_after(headers, clock)
    )


def _kind_of(status: int, message: str) -> FailureKind:
    long_words = (
        "context length",
        "context_length",
        "maximum context",
        "too long",
        "too many tokens",
        "max_model_len",
        "prompt is too",
    )
    if status in (400, 422) and any(word in message for word in long_words):
        return FailureKind.TOO_LONG
    if status in (400, 422) and ("content_filter" in message or "safety" in message):
        return FailureKind.REFUSED
    kinds = {413: FailureKind.PAYLOAD, 429: FailureKind.RATE, 403: FailureKind.AUTH, 408: FailureKind.TIMEOUT}
    return kinds.get(status, FailureKind.SERVER if status >= 500 else FailureKind.REQUEST)


def parse_retry_after(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the seconds to wait that `Retry-After` asks for, given as seconds or as an HTTP date."""
    value = headers.get("Retry-After") or headers.get("retry-after")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    try:
        seconds = parsedate_to_datetime(value).timestamp() - clock.time() if math.isnan(seconds) else seconds
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _error_text(body: bytes) -> str:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return clean_text(" ".join(body[:MESSAGE_LIMIT].decode("utf-8", "replace").split()))
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        text = " ".join(str(error[name]) for name in ("code", "type", "message", "detail") if error.get(name))
        error = text or str(error)
    return clean_text(str(error))[:MESSAGE_LIMIT]

"""One provider's way of speaking: a request of its own form to a chat body, a completion to its reply or stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from .ask import Ask, BadRequestError, Body
from .plan import EVENTS, Piece, Plan, json_plan
from .wire import Completion, Pace

Json = dict[str, Any]


class WireFormat(Protocol):
    """What a dialect must be able to say; pure, so a batch line is answered as a request is."""

    def reads(self, path: str) -> bool:
        """Tell whether requests of this path are of this dialect."""
        ...

    def read(self, path: str, data: bytes) -> Body:
        """Return the request as a chat body, or raise BadRequestError."""
        ...

    def answer(self, ask: Ask, completion: Completion, pace: Pace, ident: str) -> Plan:
        """Return the reply, whole or streamed as the request asks."""
        ...

    def refusal(self, error: Json, status: int) -> Any:
        """Return the body of an error, of which the chat form is given."""
        ...


class StreamEvent(NamedTuple):
    """One event of a stream: when it leaves, its name where the dialect names events, what it says."""

    at_s: float
    name: str | None
    value: Any


def decode_object(data: bytes) -> Json:
    """Decode a body that must be an object."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"invalid body: {error}") from None
    if not isinstance(value, dict):
        raise BadRequestError("the body is not an object")
    return value


def to_chat(value: Json) -> Body:
    """Return a chat body as the server keeps it; fields that are None are left out."""
    try:
        return msgspec.convert({name: item for name, item in value.items() if item is not None}, Body)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"invalid body: {error}") from None


def data_url(mime: Any, data: Any) -> Json:
    """Return a picture as a part of a chat message."""
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def event_plan(events: Iterable[StreamEvent]) -> Plan:
    """Return a stream of events without `[DONE]`."""
    return Plan(pieces=tuple(Piece(one.at_s, _write(one)) for one in events), content_type=EVENTS)


def _write(one: StreamEvent) -> bytes:
    head = f"event: {one.name}\n".encode() if one.name else b""
    return head + b"data: " + msgspec.json.encode(one.value) + b"\n\n"


def in_chunks(tokens: Sequence[str], pace: Pace, before: int = 0) -> list[tuple[float, str]]:
    """Return the texts of a stream's events and their moments; `before` tokens left earlier."""
    size = pace.chunk_tokens
    starts = range(0, len(tokens), size)
    return [(pace.at_s(before + start), "".join(tokens[start : start + size])) for start in starts]


def whole_plan(value: Any, completion: Completion, pace: Pace) -> Plan:
    """Return a whole reply, sent when its last token is due."""
    count = len(completion.tokens) + len(completion.reasoning)
    return json_plan(value, pace.at_s(max(0, count - 1)))

"""AWS's binary event stream: chunks of bytes to the JSON of each message, its checksums kept."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterator
from zlib import crc32

import msgspec

from ...core.errors import ModelError
from ...core.types import FailureKind
from ..served.events import EVENT_LIMIT
from ..served.replies import decode_body, expect_object, unreadable

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

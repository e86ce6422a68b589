"""Server-sent events: chunks of bytes to the data of each event, without `[DONE]`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ...core.errors import ModelError
from ...core.types import FailureKind

EVENT_LIMIT = 16 * 2**20
DONE = b"[DONE]"


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event. Comments and empty events are skipped; `[DONE]` ends the stream."""
    rest = b""
    async for chunk in chunks:
        rest += chunk
        *lines, rest = rest.split(b"\n")
        if len(rest) > EVENT_LIMIT:
            raise ModelError(FailureKind.DECODE, f"a stream event is larger than {EVENT_LIMIT // 2**20} MB")
        for line in lines:
            data = event_data(line)
            if data == DONE:
                return
            if data:
                yield data
    data = event_data(rest)
    if data and data != DONE:
        yield data


def event_data(line: bytes) -> bytes:
    """Return what follows `data:` on a line, or nothing."""
    return line[5:].strip() if line.startswith(b"data:") else b""

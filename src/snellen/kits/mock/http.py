"""Bytes of a connection to Exchanges: a small HTTP/1.1 server that can also misbehave on purpose."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from ...model.served.connection import Chunked

LONGEST_HEAD = 2**14
END_OF_HEAD = b"\r\n\r\n"


class Exchange:
    """One request and the means to answer it, well or badly."""

    __slots__ = ("body", "head", "method", "path", "received", "transport")

    def __init__(self, head: bytes, body: bytes, transport: asyncio.Transport) -> None:
        start, _, rest = head.partition(b"\r\n")
        method, _, target = start.partition(b" ")
        self.method = method.decode("latin-1")
        self.path = target.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        self.head = rest
        self.body = body
        self.transport = transport
        self.received = time.perf_counter()

    def header(self, name: str) -> str | None:
        """Return one request header, or None."""
        return find_header(self.head, name.lower().encode())

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.transport.write(data)

    def reset(self) -> None:
        """End the connection with a TCP reset instead of a proper close."""
        connection = cast("socket.socket | None", self.transport.get_extra_info("socket"))
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]


def phrase(status: int) -> str:
    """Return the reason phrase of a status, or a neutral word for one that has none."""
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Status"


def response_head(status: int, headers: dict[str, str]) -> bytes:
    """Return the status line and headers as bytes."""
    lines = [f"HTTP/1.1 {status} {phrase(status)}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def find_header(head: bytes, name: bytes) -> str | None:
    """Find a header by its lower-case name in the raw head."""
    for line in head.split(b"\r\n"):
        key, colon, value = line.partition(b":")
        if colon and key.strip().lower() == name:
            return value.strip().decode("latin-1")
    return None


class HttpProtocol(asyncio.Protocol):
    """One connection: requests in order, one task that answers them, cancelled when the client leaves."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._buffer = bytearray()
        self._waiting: deque[Exchange] = deque()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._continued = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)

    def drop(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop whatever still works for this client."""
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; start the answering task when a request is complete."""
        self._buffer += data
        try:
            while (exchange := self._take()) is not None:
                self._waiting.append(exchange)
        except ValueError:
            self._refuse()
            return
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._serve())

    def _refuse(self) -> None:
        if self._transport is not None:
            self._transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self._transport.close()

    def _take(self) -> Exchange | None:
        end = self._buffer.find(END_OF_HEAD)
        if end < 0 or self._transport is None:
            return None
        head = bytes(self._buffer[:end])
        lower = head.lower()
        taken = self._take_body(lower, end + len(END_OF_HEAD))
        if taken is None:
            self._send_continue(lower)
            return None
        body, position = taken
        del self._buffer[:position]
        self._continued = False
        return Exchange(head, body, self._transport)

    def _take_body(self, lower_head: bytes, start: int) -> tuple[bytes, int] | None:
        if b"transfer-encoding: chunked" in lower_head:
            chunked = Chunked()
            body, complete = chunked.feed(bytes(self._buffer[start:]))
            return (body, len(self._buffer) - len(chunked.surplus)) if complete else None
        size = int(find_header(lower_head, b"content-length") or 0)
        if len(self._buffer) < start + size:
            return None
        return bytes(self._buffer[start : start + size]), start + size

    def _send_continue(self, lower_head: bytes) -> None:
        if b"expect: 100-continue" in lower_head and not self._continued and self._transport is not None:
            self._continued = True
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _serve(self) -> None:
        while self._waiting:
            await self._handler(self._waiting.popleft())


class ConstantProtocol(asyncio.BufferedProtocol):
    """Answers every request with the same bytes and the least work: a yardstick. Bodies are counted, never kept."""

    _seen = memoryview(bytearray(2**20))
    """Where every connection's bytes arrive: each is looked at before the next one reads."""

    def __init__(self, response: bytes) -> None:
        self._response = response
        self._head = b""
        self._missing = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)

    def drop(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what comes."""
        return self._seen

    def buffer_updated(self, nbytes: int) -> None:
        """Count bytes of the body; answer when it is complete."""
        at = 0
        while at < nbytes:
            if not self._missing:
                at = self._take_head(at, nbytes)
            took = min(self._missing, nbytes - at)
            self._missing -= took
            at += took
            if not self._missing and not self._head and self._transport is not None:
                self._transport.write(self._response)

    def _take_head(self, at: int, end: int) -> int:
        """Read on in a head; return where its body begins, or `end` when there is more of it to come."""
        known = len(self._head)
        self._head += bytes(self._seen[at : min(end, at + LONGEST_HEAD)])
        stop = self._head.find(END_OF_HEAD)
        if stop < 0:
            return min(end, at + LONGEST_HEAD)
        self._missing = int(find_header(self._head[:stop], b"content-length") or 0)
        self._head = b""
        return at + stop + len(END_OF_HEAD) - known

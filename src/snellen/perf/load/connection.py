"""HTTP/1.1 straight on asyncio, for load, where a general client would be the bottleneck; bytes are stamped as read."""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Mapping
from time import perf_counter
from typing import NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from ...core.errors import ModelError
from ...core.types import FailureKind
from ...model.served.post import CONNECT_TIMEOUT_S
from .http1 import BadResponseError, Response

JOIN_LIMIT = 64 * 2**10
"""Up to this size head and body leave in one write; larger bodies are not copied."""


class Target(NamedTuple):
    """Where a connection leads."""

    host: str
    port: int
    secure: bool


class Sink(Protocol):
    """Who takes one response: called inside the socket's read, so it must be quick."""

    def on_data(self, data: bytes, moment: float) -> None:
        """Take a piece of the body and when it was read (`perf_counter`)."""
        ...

    def on_end(self, response: Response, moment: float, error: str | None) -> None:
        """The response is complete, or `error` says why it never will be."""
        ...


def parse_url(url: str) -> tuple[Target, str]:
    """Split a URL into where to connect and what to ask for."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelError(FailureKind.REQUEST, f"{url!r} is not a URL: check --base-url")
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.hostname, port or (443 if secure else 80), secure), path


def request_head(method: str, target: Target, path: str, headers: Mapping[str, str], size: int) -> bytes:
    """Return the head of a request; compressed replies are not asked for, since unpacking them would cost time."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{target.port}", "Accept-Encoding: identity"]
    lines += [f"Content-Length: {size}", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ModelError(FailureKind.REQUEST, "a header holds a line break: check the API key and --base-url")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one response on the way."""

    def __init__(self, idle: list[Connection]) -> None:
        self._idle = idle
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self._response: Response | None = None
        self._moment = 0.0
        self.used = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)

    @property
    def open(self) -> bool:
        """Whether it can still be written to."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, head: bytes, body: bytes, sink: Sink) -> None:
        """Write one request; its response goes to `sink`."""
        self.used += 1
        self._sink = sink
        self._response = Response(self._pass_on)
        transport = cast("asyncio.Transport", self._transport)
        if len(body) <= JOIN_LIMIT:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)

    def data_received(self, data: bytes) -> None:
        """Stamp the bytes, then read them."""
        self._moment = perf_counter()
        if self._response is None:
            self.abort()
            return
        try:
            complete = self._response.feed(data)
        except BadResponseError as error:
            self._end(str(error))
            self.abort()
            return
        if complete:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever still waits."""
        self._moment = perf_counter()
        if self in self._idle:
            self._idle.remove(self)
        if self._response is not None:
            reason = f"the connection was closed{f' ({exc})' if exc else ''}"
            self._end(None if self._response.finish() and exc is None else reason)

    def abort(self) -> None:
        """Drop the connection at once; no one is told."""
        self._sink = self._response = None
        if self._transport is not None:
            self._transport.abort()

    def _pass_on(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink.on_data(data, self._moment)

    def _finish(self) -> None:
        keep = self._response is not None and self._response.keep_alive
        self._end(None)
        if keep and self.open:
            self._idle.append(self)
        elif self._transport is not None:
            self._transport.close()

    def _end(self, error: str | None) -> None:
        sink, response = self._sink, self._response
        self._sink = self._response = None
        if sink is not None and response is not None:
            sink.on_end(response, self._moment, error)


class Pool:
    """Keep-alive connections by target; one that waits is used before a new one is opened."""

    def __init__(self) -> None:
        self._idle: dict[Target, list[Connection]] = defaultdict(list)
        self._ssl: ssl.SSLContext | None = None

    def idle(self, target: Target) -> Connection | None:
        """Return a waiting connection, if there is one."""
        waiting = self._idle[target]
        while waiting:
            connection = waiting.pop()
            if connection.open:
                return connection
        return None

    async def connect(self, target: Target) -> Connection:
        """Open a new connection, or raise ModelError."""
        if target.secure and self._ssl is None:
            self._ssl = ssl.create_default_context()
        context = self._ssl if target.secure else None
        make, connect = lambda: Connection(self._idle[target]), asyncio.get_running_loop().create_connection
        try:
            opening = connect(make, target.host, target.port, ssl=context)
            _, connection = await asyncio.wait_for(opening, CONNECT_TIMEOUT_S)
        except (OSError, TimeoutError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            message = f"cannot connect to {target.host}:{target.port}: {reason}"
            raise ModelError(FailureKind.NETWORK, message, retryable=True) from None
        return connection

    async def open_ahead(self, target: Target, count: int) -> None:
        """Open `count` connections and let them wait, so that no first request pays for connecting."""
        self._idle[target] += await asyncio.gather(*(self.connect(target) for _ in range(count)))

    def close(self) -> None:
        """Close the connections that wait."""
        for waiting in self._idle.values():
            for connection in list(waiting):
                connection.abort()
            waiting.clear()

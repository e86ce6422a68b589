"""HTTP/1.1 requests to responses straight on asyncio, over kept connections: where a general client costs too much.

Used for whole answers (`post.py`) and for load, which stamps bytes as they leave the socket.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import select
import ssl
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from ...core.errors import ModelError
from ...core.types import FailureKind

HEAD_LIMIT = 64 * 2**10
REPLY_LIMIT = 64 * 2**20
"""No answer is longer, also when it is unpacked: a few kilobytes of gzip could fill the memory."""
LONGEST_LENGTH = 18
"""Digits of a length that is meant."""
VERSION = b"HTTP/1."
_END_OF_HEAD = b"\r\n\r\n"


class BadResponseError(ValueError):
    """The bytes are no HTTP/1.1 response."""


class TooLargeError(BadResponseError):
    """The answer is larger than any that is meant."""

    def __init__(self) -> None:
        super().__init__(f"the answer is larger than {REPLY_LIMIT // 2**20} MB")


class Response:
    """Reads one response as its bytes arrive; `on_data` gets the body, decoded from its transfer encoding."""

    __slots__ = ("_body", "_on_data", "_rest", "_size", "headers", "keep_alive", "status")

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.keep_alive = True
        self._on_data = on_data
        self._rest = b""
        self._size = 0
        self._body: _Length | Chunked | _UntilClose | None = None

    def feed(self, data: bytes) -> bool:
        """Take bytes; return True when the response is complete."""
        while self._body is None:
            data = self._rest + data
            end = data.find(_END_OF_HEAD)
            if end < 0:
                self._keep_head(data)
                return False
            self._rest = b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        body, complete = self._body.feed(data)
        if body:
            self._size += len(body)
            if self._size > REPLY_LIMIT:
                raise TooLargeError
            self._on_data(body)
        if complete and self._body.surplus:  # what comes after the end would be taken for the next answer
            self.keep_alive = False
        return complete

    def finish(self) -> bool:
        """The connection has ended; return True if that completes the response."""
        return isinstance(self._body, _UntilClose)

    @property
    def begun(self) -> bool:
        """Whether anything of the response has come."""
        return bool(self.status or self._rest)

    def _keep_head(self, data: bytes) -> None:
        if not data.startswith(VERSION[: len(data)]):  # what speaks another protocol may wait for us in turn
            raise BadResponseError(f"not an HTTP/1.1 response: {data[:60]!r}")
        if len(data) > HEAD_LIMIT:
            raise BadResponseError("the response head does not end")
        self._rest = data

    def _read_head(self, head: bytes) -> None:
        start, _, more = head.partition(b"\r\n")
        version, _, rest = start.partition(b" ")
        if not version.startswith(VERSION) or not rest[:3].isdigit():
            raise BadResponseError(f"not an HTTP/1.1 response: {start[:60]!r}")
        status = int(rest[:3])
        if 100 <= status < 200:
            return
        headers: dict[str, str] = {}
        for line in more.decode("latin-1").split("\r\n") if more else ():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        self.status, self.headers = status, headers
        self._body = _body_of(status, headers)
        connection = headers.get("connection", "").lower()
        is_new = version != b"HTTP/1.0"
        self.keep_alive = not isinstance(self._body, _UntilClose) and (
            "close" not in connection if is_new else "keep-alive" in connection
        )


def _body_of(status: int, headers: Mapping[str, str]) -> _Length | Chunked | _UntilClose:
    if status in (204, 304):
        return _Length(0)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return Chunked()
    length = headers.get("content-length")
    if length is None:
        return _UntilClose()
    if not length.isdecimal() or len(length) > LONGEST_LENGTH:
        raise BadResponseError(f"Content-Length is {length[:60]!r}")
    if int(length) > REPLY_LIMIT:
        raise TooLargeError
    return _Length(int(length))


class _Length:
    __slots__ = ("_left", "surplus")

    def __init__(self, length: int) -> None:
        self._left = length
        self.surplus = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        data, self.surplus = data[: self._left], data[self._left :]
        self._left -= len(data)
        return data, self._left == 0


class _UntilClose:
    __slots__ = ()
    surplus = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        return data, False


class Chunked:
    """Chunked transfer encoding; trailers are skipped."""

    __slots__ = ("_left", "_rest", "_trailer")

    def __init__(self) -> None:
        self._rest = b""
        self._left = -1
        self._trailer = False

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return what they add to the body, and whether that is all of it."""
        data = self._rest + data if self._rest else data
        parts: list[bytes] = []
        at = 0
        while not self._trailer:
            if self._left < 0:
                end = data.find(b"\r\n", at)
                if end < 0:
                    break
                self._left = _chunk_size(data[at:end])
                at = end + 2
                self._trailer = self._left == 0
                continue
            if len(data) < at + self._left + 2:
                break
            parts.append(data[at : at + self._left])
            at += self._left + 2
            self._left = -1
        self._rest = data[at:]
        if len(self._rest) > HEAD_LIMIT and (self._left < 0 or self._trailer):
            raise BadResponseError("a chunk size or trailer does not end")
        # Trailers, if any, end with an empty line: without any that is the first one.
        return b"".join(parts), self._trailer and _END_OF_HEAD in b"\r\n" + self._rest

    @property
    def surplus(self) -> bytes:
        """What came after the end."""
        return (b"\r\n" + self._rest).partition(_END_OF_HEAD)[2]


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits.isalnum():  # int() would also take a sign
        raise BadResponseError(f"not a chunk size: {line[:20]!r}")
    try:
        size = int(digits, 16)
    except ValueError:
        raise BadResponseError(f"not a chunk size: {line[:20]!r}") from None
    if size > REPLY_LIMIT:
        raise TooLargeError
    return size


REMEMBERED = 256
NEAR_AN_END = 400
ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,200})"')
LAST_ID = re.compile(rb'"responseId"\s*:\s*"([^"\\]{1,200})"')
"""What an answer calls itself: OpenAI and Anthropic at its beginning, Gemini at its end."""
REQUEST_ID = "x-amzn-requestid"
"""Where Bedrock says it: its answers have no name."""


class Recent:
    """The last few ids of answers."""

    __slots__ = ("_known", "_order")

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._order: deque[bytes] = deque()

    def __contains__(self, name: bytes) -> bool:
        return name in self._known

    def add(self, name: bytes) -> None:
        """Remember an id; the oldest is forgotten."""
        if name in self._known:
            return
        self._known.add(name)
        self._order.append(name)
        if len(self._order) > REMEMBERED:
            self._known.discard(self._order.popleft())


class Copies:
    """What one server's ids are worth, over all connections to it."""

    __slots__ = ("_recent", "_repeating")

    def __init__(self) -> None:
        self._recent = Recent()
        self._repeating = False

    def is_copy(self, body: bytes, seen: Recent, *, first: bool, called: str = "") -> bool:
        """Tell whether an answer came before on its connection, whose ids are `seen`; then remember it.

        `called` is its id where a header says it.
        """
        if self._repeating:
            return False
        name = answer_id(body) or called.encode()
        if not name:
            return False
        self._repeating = first and name in self._recent
        copy = not first and name in seen
        seen.add(name)
        self._recent.add(name)
        return copy


def answer_id(body: bytes) -> bytes | None:
    """Return what an answer calls itself; text inside it cannot pass for that, its quotes are escaped."""
    found = ID.search(body, 0, NEAR_AN_END) or LAST_ID.search(body, max(0, len(body) - NEAR_AN_END))
    return found[1] if found else None


CONNECT_TIMEOUT_S = 10.0
NEXT_ADDRESS_S = 0.25
"""After so long a host's next address is tried as well: one that does not answer must not cost a time-out."""
JOIN_LIMIT = 2**20
"""Up to this size head and body leave in one write: a copy costs less than a second packet; more is not copied."""
READ_BYTES = 2**16
"""So much is read at once, into one place for all: asyncio makes 256 KB of new memory for every read, 10 µs of it."""
DEFAULT_PORTS = {"http": 80, "https": 443}


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

    def on_end(self, response: Response, moment: float, error: Exception | None) -> None:
        """The response is complete, or `error` says why it never will be."""
        ...


def parse_url(url: str) -> tuple[Target, str]:
    """Split a URL into where to connect and what to ask for."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ModelError(FailureKind.REQUEST, f"{url!r} is not a URL: check --base-url")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.hostname, port or DEFAULT_PORTS[parts.scheme], parts.scheme == "https"), path


def request_head(method: str, target: Target, path: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request up to the number that says how long its body is."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    if target.port != DEFAULT_PORTS["https" if target.secure else "http"]:
        host = f"{host}:{target.port}"
    named = {"Host": host, **headers, "Content-Length": ""}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    if not all(map(str.isprintable, lines)):
        message = "a header holds a line break or another control character: check the API key and --base-url"
        raise ModelError(FailureKind.REQUEST, message)
    return "\r\n".join(lines).encode()


class Connection(asyncio.BufferedProtocol):
    """One keep-alive connection with at most one response on the way; `rest` gets it when it can be used again.

    What arrives is read into `room`, which connections of one event loop share: it is taken out before the next read.
    """

    def __init__(self, rest: Callable[[Connection], None], room: memoryview) -> None:
        self._rest = rest
        self._room = room
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self._response: Response | None = None
        self._moment = 0.0
        self._arrived = select.poll()
        self.used = 0
        self.seen = Recent()
        """Marks of the answers that came over it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write, and where bytes arrive."""
        self._transport = cast("asyncio.Transport", transport)
        self._arrived.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    @property
    def open(self) -> bool:
        """Whether it can still be written to."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def unread(self) -> bool:
        """Whether bytes wait on the socket that nobody asked for: at rest there should be none."""
        return bool(self._arrived.poll(0))

    def send(self, head: bytes, body: Sequence[bytes], sink: Sink) -> None:
        """Write one request, its body in parts; its response goes to `sink`."""
        self.used += 1
        self._sink = sink
        self._response = Response(self._pass_on)
        transport = cast("asyncio.Transport", self._transport)
        size = sum(map(len, body))
        parts = (head, b"%d\r\n\r\n" % size, *body)
        for part in parts if size > JOIN_LIMIT else (b"".join(parts),):
            transport.write(part)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Stamp the bytes, then read them."""
        self._moment = perf_counter()
        data = bytes(self._room[:nbytes])
        if self._response is None:  # nobody asked: a proxy's "408 Request Timeout" must not answer the next question
            self.abort()
            return
        try:
            complete = self._response.feed(data)
        except BadResponseError as error:
            self._end(error)
            self.abort()
            return
        if complete:
            self._finish(self._response)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever still waits."""
        self._moment = perf_counter()
        if self._response is not None:
            whole = self._response.finish() and exc is None
            lost = ConnectionError(f"the connection was closed{f' ({exc})' if exc else ''}")
            lost.__cause__ = exc
            self._end(None if whole else lost)

    def abort(self) -> None:
        """Drop the connection at once; no one is told."""
        self._sink = self._response = None
        if self._transport is not None:
            self._transport.abort()

    def _pass_on(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink.on_data(data, self._moment)

    def _finish(self, response: Response) -> None:
        self._end(None)
        if response.keep_alive and self.open:
            self._rest(self)
        elif self._transport is not None:
            self._transport.close()

    def _end(self, error: Exception | None) -> None:
        sink, response = self._sink, self._response
        self._sink = self._response = None
        if sink is not None and response is not None:
            sink.on_end(response, self._moment, error)


class Pool:
    """Keep-alive connections by target; one that rests is used before a new one is opened.

    The last one to come back is the first to go out, so that a pool that is too large dries up.
    """

    def __init__(self, keep_alive_s: float = math.inf, now: Callable[[], float] = perf_counter) -> None:
        self._keep_alive_s = keep_alive_s
        self._now = now
        self._resting: dict[Target, list[tuple[Connection, float]]] = defaultdict(list)
        self._ssl: ssl.SSLContext | None = None
        self._room = memoryview(bytearray(READ_BYTES))

    def idle(self, target: Target) -> Connection | None:
        """Return a connection at rest, if there is one; what rested too long may be about to be closed over there."""
        resting = self._resting[target]
        while resting:
            connection, since = resting.pop()
            if connection.open and self._now() - since < self._keep_alive_s and not connection.unread:
                return connection
            connection.abort()
        return None

    async def connect(self, target: Target, name: str = "") -> Connection:
        """Open a new connection, or raise ModelError, which calls the other end by `name`."""
        if target.secure and self._ssl is None:
            self._ssl = ssl.create_default_context()
            self._ssl.set_alpn_protocols(["http/1.1"])
        opening = asyncio.get_running_loop().create_connection(
            lambda: Connection(partial(self._keep, target), self._room),
            target.host,
            target.port,
            ssl=self._ssl if target.secure else None,
            happy_eyeballs_delay=None if _is_address(target.host) else NEXT_ADDRESS_S,
        )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):  # no task of its own, as `wait_for` would make
                _, connection = await opening
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            message = f"cannot connect to {name or f'{target.host}:{target.port}'}: {reason}"
            raise ModelError(FailureKind.NETWORK, message, retryable=True) from None
        return connection

    async def open_ahead(self, target: Target, count: int) -> None:
        """Open `count` connections and let them wait, so that no first request pays for connecting."""
        for connection in await asyncio.gather(*(self.connect(target) for _ in range(count))):
            self._keep(target, connection)

    def close(self) -> None:
        """Close the connections at rest."""
        for resting in self._resting.values():
            for connection, _ in resting:
                connection.abort()
            resting.clear()

    def _keep(self, target: Target, connection: Connection) -> None:
        self._resting[target].append((connection, self._now()))


def _is_address(host: str) -> bool:
    """Tell whether a host is written as its one address: there is no next one to try."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

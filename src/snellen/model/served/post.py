"""Whole bodies to whole answers over kept connections: between two questions to a server only the body differs.

A session of a general client builds and checks URL, headers, cookies, payload, a writer task and a response object for
every request; that is half of its time. Here the head is written once for an address.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

import aiohttp
import msgspec
from aiohttp.http import SERVER_SOFTWARE

from ...core.errors import ModelError
from ...core.types import FailureKind
from .connection import (
    REPLY_LIMIT,
    REQUEST_ID,
    BadResponseError,
    Connection,
    Copies,
    Pool,
    Response,
    Target,
    TooLargeError,
    parse_url,
    request_head,
)

KEEP_ALIVE_S = 15.0
SENT_ALWAYS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "User-Agent": SERVER_SOFTWARE}
"""What a session says of itself; both ways of asking say the same."""
ROUTES = 256
"""Heads that are kept; one that is signed is new for every request."""
WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class HttpResponse(msgspec.Struct, frozen=True, gc=False):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Poster:
    """Sends bodies and returns answers; the caller keeps the time, a cancelled call closes its connection."""

    def __init__(self) -> None:
        self._pool = Pool(KEEP_ALIVE_S)
        self._routes: dict[tuple[object, ...], tuple[Target, bytes]] = {}
        self._copies: dict[Target, Copies] = defaultdict(Copies)
        self._distrusted: dict[Target, int] = {}
        """So many questions go over new connections, after a copy came: the next answer tells whether it was one."""

    async def post(self, url: str, body: Sequence[bytes], headers: Mapping[str, str]) -> HttpResponse:
        """Send the parts of a body as one and return the answer; raises ModelError, or what aiohttp would raise."""
        key = (url, *headers.items())
        route = self._routes.get(key)
        if route is None:
            if len(self._routes) >= ROUTES:
                self._routes.clear()
            target, path = parse_url(url)
            route = self._routes[key] = target, request_head("POST", target, path, {**SENT_ALWAYS, **headers})
        target, head = route
        connection = self._idle(target) or await self._pool.connect(target, url)
        answer = _Answer(connection, self._copies[target])
        connection.send(head, body, answer)
        del body  # an image must not stay in memory for our sake while the model thinks
        try:
            response = await answer.done
        except asyncio.CancelledError:
            # The answer to a question that was given up must not meet the next one. If it came before we heard that
            # we are cancelled, the connection rests already, or is someone else's by now.
            if answer.done.cancelled():
                connection.abort()
            raise
        if answer.is_copy:
            self._distrusted[target] = self._distrusted.get(target, 0) + 1
            message = "duplicate response on a reused connection; retried over a new one"
            raise ModelError(FailureKind.NETWORK, message, retryable=True, retry_after_s=0.0)
        return HttpResponse(response.status, response.headers, answer.content)

    def _idle(self, target: Target) -> Connection | None:
        if self._distrusted.get(target):
            self._distrusted[target] -= 1
            return None
        return self._pool.idle(target)

    def close(self) -> None:
        """Close all connections at rest."""
        self._pool.close()


class _Answer:
    """The sink of one response."""

    __slots__ = ("_connection", "_copies", "content", "done", "is_copy", "pieces")

    def __init__(self, connection: Connection, copies: Copies) -> None:
        self.done: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.pieces: list[bytes] = []
        self.content = b""
        self.is_copy = False
        self._connection = connection
        self._copies = copies

    def on_data(self, data: bytes, moment: float) -> None:
        self.pieces.append(data)

    def on_end(self, response: Response, moment: float, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is not None:
            self.done.set_exception(_client_error(response, error))
            return
        try:
            self._take(response)
        except (aiohttp.ClientPayloadError, ModelError) as problem:
            response.keep_alive = False
            self.done.set_exception(problem)
        else:
            self.done.set_result(response)

    def _take(self, response: Response) -> None:
        """Unpack the answer, and look whether it is a copy before the connection rests: all after one is shifted."""
        content, encoding = b"".join(self.pieces), response.headers.get("content-encoding")
        self.content = unpack(content, encoding) if encoding else content
        seen, first, called = self._connection.seen, self._connection.used == 1, response.headers.get(REQUEST_ID, "")
        self.is_copy = self._copies.is_copy(self.content, seen, first=first, called=called)
        response.keep_alive = response.keep_alive and not self.is_copy


def too_large() -> ModelError:
    """Return the failure of an answer that is larger than any that is meant; asked again it would be no smaller."""
    return ModelError(FailureKind.DECODE, str(TooLargeError()))


def _client_error(response: Response, error: Exception) -> aiohttp.ClientError | ModelError:
    """Return the error a session would raise, so that both ways of asking are told alike."""
    if isinstance(error, TooLargeError):
        return too_large()
    if isinstance(error, BadResponseError):
        return aiohttp.ClientPayloadError(f"the answer is no HTTP: {error}")
    if response.begun:
        return aiohttp.ClientPayloadError(f"Response payload is not completed: {error}")
    cause = error.__cause__
    return aiohttp.ClientOSError(*cause.args) if isinstance(cause, OSError) else aiohttp.ServerDisconnectedError()


def unpack(content: bytes, encoding: str) -> bytes:
    """Return a body without its content encoding."""
    name = encoding.strip().lower()
    if name in ("", "identity") or not content:
        return content
    if name not in WINDOW_BITS:
        raise aiohttp.ClientPayloadError(f"the answer's content encoding is {encoding!r}, which nobody asked for")
    bits = WINDOW_BITS[name]
    if name == "deflate" and content[0] & 0x0F != zlib.DEFLATED:  # some servers leave the zlib header out
        bits = -zlib.MAX_WBITS
    unpacked, rest = _unpack_member(content, name, bits, REPLY_LIMIT)
    if rest and name == "deflate":
        raise aiohttp.ClientPayloadError("bytes follow the end of its deflate: which of them is the answer?")
    while rest:
        member, rest = _unpack_member(rest, name, bits, REPLY_LIMIT - len(unpacked))
        unpacked += member
    return unpacked


def _unpack_member(content: bytes, name: str, bits: int, room: int) -> tuple[bytes, bytes]:
    """Return what a member holds, and the bytes after it: a gzip may have several, and all are the answer."""
    reader = zlib.decompressobj(bits)
    try:
        unpacked = reader.decompress(content, room + 1)  # of no limit, if it were 0
    except zlib.error as error:
        raise aiohttp.ClientPayloadError(f"the answer's {name} cannot be read: {error}") from None
    if len(unpacked) > room:
        raise too_large()
    if not reader.eof:
        raise aiohttp.ClientPayloadError(f"the answer's {name} is cut off")
    return unpacked, reader.unused_data

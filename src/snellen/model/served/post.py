"""POSTs over aiohttp's own connections without a request object each: what differs between two questions is only their body.

A session builds and checks URL, headers, cookies, payload, a writer task and a response object for every request; that is half
of its time. Here the head is built once for an address, by aiohttp's own `ClientRequest`; connecting, TLS and the parser
remain aiohttp's.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE_S = 15.0
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)


class HttpResponse(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Route(NamedTuple):
    """An address: the request that opens connections to it, all of its head but the length, and the connections at rest."""

    request: aiohttp.ClientRequest
    head: bytes
    resting: list[tuple[Connection, float]]
    """The last one to come back is the first to go out, so that a pool that is too large dries up; with the time it came back."""


class Poster:
    """Sends whole bodies and returns whole answers; the caller keeps the time, a cancelled call closes its connection."""

    def __init__(self, connector: aiohttp.BaseConnector, now: Callable[[], float] = time.monotonic) -> None:
        self._connector = connector
        self._now = now
        self._routes: dict[tuple[object, ...], _Route] = {}

    @staticmethod
    def is_supported() -> bool:
        """Tell whether this aiohttp opens connections as we ask it to; these few methods are not part of its written promises."""
        known = inspect.signature(aiohttp.BaseConnector.connect).parameters
        return list(known) == ["self", "req", "traces", "timeout"] and hasattr(ResponseHandler, "set_response_params")

    async def post(self, url: str, body: Sequence[bytes], headers: Mapping[str, str]) -> HttpResponse:
        """Send the parts of a body as one and return the answer; raises what aiohttp raises."""
        route = self._route(url, headers)
        connection = self._rested(route) or await self._connector.connect(route.request, [], _TIMEOUT)
        reusable = False
        try:
            answer = await _exchange(connection, b"".join((route.head, b"%d\r\n\r\n" % sum(map(len, body)), *body)))
            reusable = connection.protocol is not None and not connection.protocol.should_close
        finally:
            if reusable:
                route.resting.append((connection, self._now()))
            else:  # also when the question was given up: its answer must not meet the next one
                connection.close()
        return answer

    def close(self) -> None:
        """Give all connections at rest back to the connector."""
        for route in self._routes.values():
            for connection, _ in route.resting:
                connection.release()
            route.resting.clear()

    def _route(self, url: str, headers: Mapping[str, str]) -> _Route:
        key = (url, *headers.items())
        known = self._routes.get(key)
        if known is None:
            request = aiohttp.ClientRequest(
                "POST", URL(url), headers=headers, data=b"", loop=asyncio.get_running_loop()
            )
            lines = [f"{name}: {value}" for name, value in request.headers.items() if name != "Content-Length"]
            if not all(map(str.isprintable, lines)):
                raise ValueError("a header holds a control character: check the API key")
            head = "\r\n".join([f"POST {request.url.raw_path_qs} HTTP/1.1", *lines, "Content-Length: "])
            known = self._routes[key] = _Route(request, head.encode(), [])
        return known

    def _rested(self, route: _Route) -> Connection | None:
        """Return a connection that can be used again.

        One that rested too long may be about to be closed at the other end; one that brought something meanwhile (a proxy's
        "408 Request Timeout") would give the next question a wrong answer.
        """
        while route.resting:
            connection, since = route.resting.pop()
            protocol = connection.protocol
            if (
                protocol is not None
                and protocol.is_connected()
                and not protocol.should_close
                and self._now() - since < KEEP_ALIVE_S
            ):
                return connection
            connection.close()
        return None


async def _exchange(connection: Connection, message: bytes) -> HttpResponse:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(read_until_eof=True)
    protocol.transport.write(message)
    del message  # a picture must not stay in memory while the model thinks
    try:
        head, content = await protocol.read()
        while 100 <= head.code < 200 and head.code != 101:  # "continue" and its like come before the answer
            head, content = await protocol.read()
    except HttpProcessingError as error:
        raise aiohttp.ClientPayloadError(f"the answer is no HTTP: {error.message}") from error
    whole = content.is_eof() and content.exception() is None
    return HttpResponse(head.code, head.headers, content.read_nowait() if whole else await content.read())

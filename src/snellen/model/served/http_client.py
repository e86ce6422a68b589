"""The HTTP seam, two methods wide: send a body and get a response, or stream one. Here on aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from ...core.errors import ModelError
from ...core.types import FailureKind
from .post import CONNECT_TIMEOUT_S, Poster
from .post import HttpResponse as HttpResponse

BETWEEN_CHUNKS_S = 60.0
PIECE = 2**20
"""So many bytes are joined and written at once; of a larger body each part goes when the socket took the one before."""

Body = Sequence[bytes]
"""A body in parts: head, picture, tail."""


class HttpStream(NamedTuple):
    """A response whose body is still coming."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class HttpClient(Protocol):
    """What a served model needs of HTTP."""

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """POST `body` (GET when None) and return the whole response, or raise ModelError. None: the caller keeps the time."""
        ...

    def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AbstractAsyncContextManager[HttpStream]:
        """POST `body` and return a context that yields the response as it comes."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class PartsPayload(aiohttp.Payload):
    """Parts as an aiohttp payload."""

    def __init__(self, parts: Body) -> None:
        super().__init__(parts, content_type="application/json")
        self._size = sum(map(len, parts))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write all parts, large ones piecewise."""
        for part in self._value:
            if len(part) <= PIECE:
                await writer.write(part)
                continue
            view = memoryview(part)
            for start in range(0, len(part), PIECE):
                await writer.write(view[start : start + PIECE])


class AiohttpClient:
    """HttpClient on one aiohttp session: keep-alive, TLS verified, proxies from the environment."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._poster: Poster | None = None
        # Asked once: aiohttp's own trust_env reads netrc in a thread for every request.
        self._proxies = getproxies()

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """POST `body` (GET when None) and return the whole response."""
        try:
            if body is not None and timeout_s is None and self._poster is not None and sum(map(len, body)) <= PIECE:
                return await self._poster.post(url, body, headers)
            async with self._open(url, body, headers, timeout_s, None) as response:
                return HttpResponse(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise network_error(error, url, timeout_s) from None

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        """POST `body` and yield the response while it comes."""
        try:
            async with self._open(url, body, headers, timeout_s, BETWEEN_CHUNKS_S) as response:
                yield HttpStream(response.status, response.headers, response.content.iter_any())
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise network_error(error, url, timeout_s) from None

    async def close(self) -> None:
        """Close all connections."""
        if self._poster is not None:
            self._poster.close()
        if self._session is not None:
            await self._session.close()

    def _open(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None, read_s: float | None
    ) -> aiohttp.client._RequestContextManager:
        session = self._session or self._start(url)
        timeout = _timeout(timeout_s, read_s)
        proxy = proxy_for(url, self._proxies) if self._proxies else None
        if body is None:
            return session.get(url, headers=headers, timeout=timeout, allow_redirects=False, proxy=proxy)
        data = body[0] if len(body) == 1 else PartsPayload(body)
        return session.post(url, data=data, headers=headers, timeout=timeout, allow_redirects=False, proxy=proxy)

    def _start(self, url: str) -> aiohttp.ClientSession:
        """Open the session; a proxy's requests have another head, so only the session writes them."""
        # The engine bounds how many requests are in flight; a second bound here would only hide it.
        connector = aiohttp.TCPConnector(limit=0)
        # Cookies of one answer must not reach the next question.
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        if Poster.is_supported() and not (self._proxies and proxy_for(url, self._proxies)):
            self._poster = Poster(connector)
        return self._session


@lru_cache(maxsize=64)
def _timeout(total_s: float | None, read_s: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S, sock_read=read_s)


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """Return the proxy of the environment for a URL, or None where it names none or `no_proxy` excludes the host."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def network_error(error: Exception, url: str, timeout_s: float | None) -> ModelError:
    """Turn a transport error into a typed, retryable one."""
    if isinstance(error, aiohttp.InvalidURL):
        return ModelError(FailureKind.REQUEST, f"{url!r} is not a URL: check --base-url")
    if isinstance(error, aiohttp.ClientConnectorError):
        return ModelError(
            FailureKind.NETWORK, f"cannot connect to {url}: {error.os_error.strerror or error.os_error}", retryable=True
        )
    if isinstance(error, TimeoutError):
        return ModelError(
            FailureKind.TIMEOUT, f"no answer from {url} within {timeout_s or BETWEEN_CHUNKS_S:g} s", retryable=True
        )
    return ModelError(
        FailureKind.NETWORK, f"connection to {url} failed: {type(error).__name__}: {error}", retryable=True
    )

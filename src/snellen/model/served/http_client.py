"""The HTTP seam, two methods wide: send a body and get a response, or stream one.

Whole answers to bodies of usual size come by `post.py`; streams, proxies and everything unusual by aiohttp's session.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from ...core.errors import EnvironmentProblem, ModelError
from ...core.secret import hide_passwords
from ...core.types import FailureKind
from .connection import CONNECT_TIMEOUT_S, REPLY_LIMIT
from .post import SENT_ALWAYS, HttpResponse, Poster, too_large
from .replies import BOM, told_error

EVENT_LIMIT = 16 * 2**20
DONE = b"[DONE]"


class EventLines:
    """Cuts a stream into the data of its events, however it is chunked; an event named `error` is raised as one."""

    __slots__ = ("_begun", "_failed", "rest")

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of a line that has not ended."""
        self._begun = False
        self._failed = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take bytes; yield the data of every line that they end, `[DONE]` too."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        if len(self.rest) > EVENT_LIMIT:
            raise ModelError(FailureKind.DECODE, f"a stream event is larger than {EVENT_LIMIT // 2**20} MB")
        for line in lines:
            if data := self._data_of(line):
                yield data

    def finish(self) -> Iterator[bytes]:
        """The stream has ended; a last line without its end counts as one."""
        line, self.rest = self.rest, b""
        if data := self._data_of(line):
            yield data
        if self._failed:
            raise told_error("it did not say which")

    def _data_of(self, line: bytes) -> bytes:
        if not self._begun:
            line, self._begun = line.removeprefix(BOM), True
        data = event_data(line)
        if self._failed and (data or not line.strip()):
            raise told_error(data.decode("utf-8", "replace") or "it did not say which")
        if line.startswith(b"event:"):
            self._failed = line[6:].strip() == b"error"
        return data


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event. Comments and empty events are skipped; `[DONE]` ends the stream."""
    lines = EventLines()
    async for chunk in chunks:
        for data in lines.feed(chunk):
            if data == DONE:
                return
            yield data
    for data in lines.finish():
        if data != DONE:
            yield data


def event_data(line: bytes) -> bytes:
    """Return what follows `data:` on a line, or nothing."""
    return line[5:].strip() if line.startswith(b"data:") else b""


BETWEEN_CHUNKS_S = 60.0
PIECE = 2**20
"""So many bytes are joined and written at once; of a larger body each part goes when the socket took the one before."""

Body = Sequence[bytes]
"""A body in parts: head, image, tail."""

PLAIN_URL = re.compile(r"https?://[\w.:\[\]-]+/(?:[\w./:?=&+,;@~-]|%[\dA-F]{2})*", re.ASCII)
"""An address that is sent as it is written."""


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
        """POST `body` (GET when None) and return the whole response, or raise ModelError.

        Without `timeout_s` the caller keeps the time.
        """
        ...

    def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AbstractAsyncContextManager[HttpStream]:
        """POST `body` and return a context that yields the response as it comes."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class AiohttpClient:
    """HttpClient on one aiohttp session, with a shorter way for plain POSTs; TLS is verified, proxies are as set."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._poster = Poster()
        # Asked once: aiohttp's own trust_env reads netrc in a thread for every request.
        self._proxies = getproxies()
        self._plain: dict[str, bool] = {}

    async def send(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> HttpResponse:
        """POST `body` (GET when None) and return the whole response."""
        try:
            if body is not None and timeout_s is None and sum(map(len, body)) <= PIECE and self._is_plain(url):
                return await self._poster.post(url, body, headers)
            async with self._open(url, body, headers, timeout_s, None) as response:
                content = b"".join([chunk async for chunk in _bounded(response.content.iter_any())])
                return HttpResponse(response.status, response.headers, content)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise network_error(error, url, timeout_s) from None

    @asynccontextmanager
    async def stream(
        self, url: str, body: Body, headers: Mapping[str, str], timeout_s: float
    ) -> AsyncIterator[HttpStream]:
        """POST `body` and yield the response while it comes."""
        try:
            async with self._open(url, body, headers, timeout_s, BETWEEN_CHUNKS_S) as response:
                yield HttpStream(response.status, response.headers, _bounded(response.content.iter_any()))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise network_error(error, url, timeout_s) from None

    async def close(self) -> None:
        """Close all connections."""
        self._poster.close()
        if self._session is not None:
            await self._session.close()
        await asyncio.sleep(0)  # lets the sockets go

    def _is_plain(self, url: str) -> bool:
        """Tell whether an address needs nothing only the session knows: a proxy, a password, letters to be quoted."""
        if url not in self._plain:
            proxied = self._proxies and proxy_for(url, self._proxies)
            self._plain[url] = PLAIN_URL.fullmatch(url) is not None and not proxied
        return self._plain[url]

    def _open(
        self, url: str, body: Body | None, headers: Mapping[str, str], timeout_s: float | None, read_s: float | None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        # The engine bounds how many requests are in flight; a second bound here would only hide it.
        # Neither cookies of one answer nor a late copy of it may meet the next question: no connection is used twice.
        self._session = self._session or aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True), cookie_jar=aiohttp.DummyCookieJar()
        )
        size = sum(map(len, body or ()))
        headers = {**SENT_ALWAYS, **headers, **({"Content-Length": str(size)} if body else {})}
        return self._session.request(
            "GET" if body is None else "POST",
            _as_written(url),
            data=_pieces(body) if body and (len(body) > 1 or size > PIECE) else body and body[0],
            headers=headers,
            timeout=_timeout(timeout_s, read_s),
            allow_redirects=False,
            proxy=proxy_for(url, self._proxies) if self._proxies else None,
        )


def _as_written(url: str) -> str | URL:
    """Return an address that is sent as it was written: what was signed is not quoted anew."""
    return URL(url, encoded=True) if "%" in url else url


async def _pieces(body: Body) -> AsyncIterator[bytes | memoryview]:
    """Yield all parts, large ones piecewise: the next leaves when the socket took the one before."""
    for part in body:
        view = memoryview(part)
        for start in range(0, len(part), PIECE):
            yield view[start : start + PIECE]


async def _bounded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of an answer, unpacked as they are; what is longer than any answer is a failure.

    The time between them is bounded here too: a session waits for ever for a stream that ends in a broken chunk.
    """
    size = 0
    while True:
        try:
            async with asyncio.timeout(BETWEEN_CHUNKS_S) as silence:
                chunk = await anext(chunks, None)
        except TimeoutError:
            if not silence.expired():
                raise
            silent = f"nothing more came of a stream for {BETWEEN_CHUNKS_S:g} s"
            raise ModelError(FailureKind.TIMEOUT, silent, retryable=True) from None
        if chunk is None:
            return
        size += len(chunk)
        if size > REPLY_LIMIT:
            raise too_large()
        yield chunk


@lru_cache(maxsize=64)
def _timeout(total_s: float | None, read_s: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S, sock_read=read_s)


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """Return the proxy of the environment for a URL, or None where it names none or `no_proxy` excludes the host."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    name = parts.scheme if proxies.get(parts.scheme) else "all"
    proxy = proxies.get(name)
    if not proxy:
        return None
    address, variable = proxy if "://" in proxy else f"http://{proxy}", f"{name.upper()}_PROXY"
    fix = f"unset {variable}, or set an HTTP proxy (http://HOST:PORT); NO_PROXY names hosts that are asked directly"
    if address.lower().startswith("socks"):
        raise EnvironmentProblem(f"{variable} names a SOCKS proxy, which is not spoken: {fix}")
    if not _is_address(address):
        raise EnvironmentProblem(f"{variable} is no address of a proxy ({hide_passwords(address)!r}): {fix}")
    return address


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def network_error(error: Exception, url: str, timeout_s: float | None) -> ModelError:
    """Turn a transport error into a typed, retryable one."""
    if isinstance(error, aiohttp.InvalidURL):
        return ModelError(FailureKind.REQUEST, f"{url!r} is not a URL: check --base-url")
    if isinstance(error, aiohttp.ClientConnectorError):
        message = f"cannot connect to {url}: {error.os_error.strerror or error.os_error}"
    elif isinstance(error, TimeoutError):
        message = f"no answer from {url} within {timeout_s or BETWEEN_CHUNKS_S:g} s"
        return ModelError(FailureKind.TIMEOUT, message, retryable=True)
    else:
        told = " ".join(hide_passwords(str(error)).split())  # a proxy's passwords, too; some errors have many lines
        message = f"connection to {url} failed: {type(error).__name__}: {told}"
    return ModelError(FailureKind.NETWORK, message, retryable=True)

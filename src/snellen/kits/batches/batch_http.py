"""Files and JSON to and from a batch service, piecewise: neither an upload nor a download is ever whole in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.request import getproxies

import aiohttp
import msgspec

from ...core.errors import ModelError
from ...core.types import FailureKind
from ...model.served.http_client import network_error, proxy_for
from ...model.served.replies import decode_body, expect_object, status_error
from ...model.served.served_model import ServedModel

PIECE = 2**20
ANSWER_S, TRANSFER_S = 120.0, 3600.0
"""Seconds for a question about a batch, and for a file."""


P = ParamSpec("P")
T = TypeVar("T")


def keyed(
    ask: Callable[Concatenate[BatchHttp, P], Awaitable[T]],
) -> Callable[Concatenate[BatchHttp, P], Coroutine[Any, Any, T]]:
    """Let a question be put once more, from its beginning, where the server no longer takes the key it was put with."""

    @wraps(ask)
    async def put(http: BatchHttp, /, *args: P.args, **options: P.kwargs) -> T:
        return await http.model.keyed(ask, http, *args, **options)

    return put


class BatchHttp:
    """Asks at the address of a served model, with its key; errors are typed as those of its requests."""

    def __init__(self, model: ServedModel) -> None:
        self.model = model
        self._session: aiohttp.ClientSession | None = None
        self._proxies = getproxies()

    @keyed
    async def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path below the address."""
        async with self._open("GET", path, ANSWER_S) as response:
            return expect_object(decode_body(await response.read()))

    @keyed
    async def post(self, path: str, value: Any = None) -> dict[str, Any]:
        """Send a JSON value and return the object that comes back."""
        body = msgspec.json.encode({} if value is None else value)
        async with self._open("POST", path, ANSWER_S, data=body) as response:
            return expect_object(decode_body(await response.read() or b"{}"))

    @keyed
    async def post_file(self, path: str, file: Path, more: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a file as the body, with more headers, and return the object that comes back."""
        async with self._open("POST", path, TRANSFER_S, data=_pieces(file), size=_size(file), more=more) as response:
            return expect_object(decode_body(await response.read()))

    @keyed
    async def post_form(self, path: str, file: Path, name: str, fields: Mapping[str, str]) -> dict[str, Any]:
        """Send a file as a form's, with other fields."""
        with file.open("rb") as opened:
            form = aiohttp.FormData(quote_fields=False)
            for key, value in fields.items():
                form.add_field(key, value)
            form.add_field("file", opened, filename=name, content_type="application/jsonl")
            async with self._open("POST", path, TRANSFER_S, data=form, json=False) as response:
                return expect_object(decode_body(await response.read()))

    async def upload_in_steps(self, path: str, file: Path, name: str) -> dict[str, Any]:
        """Send a file as Google takes it: say what comes, then send it where the answer says."""
        place = await self._begin_upload(path, name, _size(file))
        if not self.model.is_here(place):
            raise ModelError(FailureKind.DECODE, f"the server names {place[:100]!r} for an upload, which is elsewhere")
        more = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        return await self.post_file(place, file, more)

    @keyed
    async def _begin_upload(self, path: str, name: str, size: int) -> str:
        told = {"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start"}
        told["X-Goog-Upload-Header-Content-Length"] = str(size)
        told["X-Goog-Upload-Header-Content-Type"] = "application/jsonl"
        about = msgspec.json.encode({"file": {"display_name": name}})
        async with self._open("POST", path, ANSWER_S, data=about, more=told) as response:
            return response.headers.get("X-Goog-Upload-URL", "")

    @keyed
    async def download(self, path: str, into: Path) -> None:
        """Append what stands at a path to a file."""
        async with self._open("GET", path, TRANSFER_S) as response:
            with into.open("ab") as out:
                last = b"\n"
                async for chunk in response.content.iter_chunked(PIECE):
                    out.write(chunk)
                    last = chunk[-1:]
                if last != b"\n":
                    out.write(b"\n")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        timeout_s: float,
        *,
        data: Any = None,
        size: int | None = None,
        json: bool = True,
        more: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url, sent_always = self.model.reach(path)
        headers = {**sent_always, **(more or {}), **({"Content-Length": str(size)} if size is not None else {})}
        if not json or data is None:  # a form says itself what it is
            headers.pop("Content-Type", None)
        self._session = self._session or aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        limit = aiohttp.ClientTimeout(total=timeout_s, sock_connect=30.0)
        proxy = proxy_for(url, self._proxies) if self._proxies else None
        options: dict[str, Any] = {"data": data, "headers": headers, "timeout": limit, "proxy": proxy}
        try:
            async with self._session.request(method, url, allow_redirects=False, **options) as response:
                if response.status not in (200, 201, 202):
                    answer = await response.content.read(PIECE)
                    raise self.model.scrubbed(status_error(response.status, response.headers, answer, self.model.clock))
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise network_error(error, url, timeout_s) from None


def _size(file: Path) -> int:
    return file.stat().st_size


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(PIECE):
            yield piece

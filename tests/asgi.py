"""Calls an ASGI application without a network: path in, status, headers and body out."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What the application sent."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8")


def call(
    app: Any, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: bytes = b""
) -> Answer:
    """Send one request."""
    return asyncio.run(_call(app, path, method, {"host": "127.0.0.1:1", **(headers or {})}, body))


async def _call(app: Any, path: str, method: str, headers: dict[str, str], body: bytes) -> Answer:
    from urllib.parse import unquote

    bare, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "path": unquote(bare),
        "raw_path": bare.encode(), "query_string": query.encode(), "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    told = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if told.is_set():
            await asyncio.Event().wait()  # the client stays, and says no more
        told.set()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    heads = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], heads, b"".join(message.get("body", b"") for message in sent[1:]))

"""Requests to refusals: another host name, no token, a foreign origin. Every answer carries rules for the browser."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from ...core.ids import sha256_hex

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
_OWN = [f"{kind} 'self'" for kind in ("script-src", "style-src", "img-src", "media-src", "connect-src", "form-action")]
POLICY = "; ".join(("default-src 'none'", *_OWN, "base-uri 'none'", "frame-ancestors 'none'"))
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with `no-referrer` browsers hide the origin of our own forms: all refused
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_SENT = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Lets a request in only if it names this host and knows the token (once in the address, then as a cookie)."""

    def __init__(self, app: Asgi, token: str) -> None:
        self._app = app
        self._token = token
        self._cookie = cookie_name(token)
        self._home = f"/{self._cookie}"
        """Where the pages lie. Browsers send a cookie to every port of a host, but only below its path."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Check one request and pass it on, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._check(scope, receive, send)

    async def _check(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        path = scope["path"]
        if path == self._home or path.startswith(f"{self._home}/"):
            below = path[len(self._home) :] or "/"
            scope = {**scope, "path": below, "raw_path": quote(below).encode()}
            send = _below(self._home, send)
        if not _host_is_ours(headers.get("host", "")):
            await _answer(send, 421, "This viewer answers to 127.0.0.1 and localhost only.")
        elif scope["method"] not in ("GET", "HEAD") and headers.get("origin") != f"http://{headers['host']}":
            await _answer(send, 403, "A change must come from the viewer's own page.")
        else:
            await self._admit(scope, headers.get("cookie", ""), receive, send)

    async def _admit(self, scope: dict[str, Any], cookies: str, receive: Any, send: Any) -> None:
        """Turn a token in the address into a cookie, and pass on what brings that cookie."""
        if (rest := self._token_in_address(scope)) is not None:
            cookie = f"{self._cookie}={self._token}; Path={self._home}; HttpOnly; SameSite=Strict"
            location = self._home + quote(scope["path"]) + (f"?{rest}" if rest else "")
            await _answer(send, 303, "", {"location": location, "set-cookie": cookie})
        elif not self._knows(_cookie(cookies, self._cookie)):
            await _answer(send, 403, "Open the address that `snellen view` printed: it carries the key.")
        else:
            await self._app(scope, receive, _with_headers(send))

    def _token_in_address(self, scope: dict[str, Any]) -> str | None:
        """Return the rest of the query if it carries the right token."""
        if b"token" not in scope["query_string"]:
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(pairs).get("token")
        if given is None or not self._knows(given) or scope["path"].startswith("//"):
            return None
        return urlencode([pair for pair in pairs if pair[0] != "token"])

    def _knows(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


def _host_is_ours(host: str) -> bool:
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    name, port = (name, port) if name else (port, "")
    return name.lower() in HOSTS and (not port or port.isdigit())


def cookie_name(token: str) -> str:
    """Return the name of a viewer's cookie: two viewers on one machine share a host, and must not take each other's."""
    return f"snellen-{sha256_hex(token.encode())[:8]}"


def _cookie(header: str, name: str) -> str:
    """Return the value of a cookie; ours is plain, so nothing need be unquoted."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return next((value for key, _, value in pairs if key == name), "")


OURS = re.compile(rb' (href|src|srcset|poster|action|formaction|data-[a-z-]+)="/(?!/)')
"""An address of ours in a page: every page writes them from the root on."""


def _below(home: str, send: Any) -> Any:
    """Return a sender that moves every address of a page, and where an answer leads to, below `home`."""
    held: list[dict[str, Any]] = []
    parts: list[bytes] = []

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [_moved(home, *pair) for pair in message.get("headers", [])]}
            if any(name == b"content-type" and value.startswith(b"text/html") for name, value in message["headers"]):
                held.append(message)
                return
        elif held:
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = OURS.sub(rb' \1="' + home.encode() + b"/", b"".join(parts))
            kept = [pair for pair in held[0]["headers"] if pair[0] != b"content-length"]
            await send({**held.pop(), "headers": [*kept, (b"content-length", str(len(body)).encode())]})
            message = {**message, "body": body}
        await send(message)

    return sending


def _moved(home: str, name: bytes, value: bytes) -> tuple[bytes, bytes]:
    inside = name.lower() == b"location" and value.startswith(b"/") and not value.startswith(home.encode() + b"/")
    return (name, home.encode() + value) if inside else (name, value)


def _with_headers(send: Any) -> Any:
    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *_SENT]}
        await send(message)

    return sending


async def _answer(send: Any, status: int, words: str, more: dict[str, str] | None = None) -> None:
    headers = {"content-type": "text/plain; charset=utf-8", **HEADERS, **(more or {})}
    encoded = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": words.encode()})

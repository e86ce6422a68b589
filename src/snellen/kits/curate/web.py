"""The desk as a web page on localhost: a link for every reviewer, no foreign origin or script, pictures drawn anew."""

from __future__ import annotations

import hashlib
import hmac
import io
import secrets
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from ...core.errors import DataError, EnvironmentProblem, MissingExtra, SnellenError, UsageError
from ...data.images.decode import open_image
from .decisions import MODES, Decision
from .desk import REASONS, Desk

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response
    from starlette.routing import Route
except ImportError:
    raise MissingExtra("view", "the review page") from None

COOKIE = "snellen-review"
LARGEST_SIDE_PX = 1200
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
STATIC = {"review.js": "text/javascript", "review.css": "text/css"}


class Keys:
    """One secret a workshop, and from it a token for every reviewer: who decided is known, not claimed."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(32))
        self._secret = path.read_text().strip().encode()

    def token(self, reviewer: str) -> str:
        """Return the reviewer's own token."""
        return hmac.new(self._secret, reviewer.encode(), hashlib.sha256).hexdigest()[:32]

    def place(self, reviewer: str) -> str:
        """Return the folder of the reviewer's own address: no secret, and no two people (or workshops) share it."""
        return hmac.new(self._secret, f"place of {reviewer}".encode(), hashlib.sha256).hexdigest()[:16]

    def reviewer(self, claim: str) -> str | None:
        """Return the reviewer of `name:token`, or None."""
        name, _, token = claim.rpartition(":")
        return name if name and hmac.compare_digest(token.encode(), self.token(name).encode()) else None


class LocalOnly:
    """Refuses requests that name another host or come from another page (DNS rebinding, CSRF)."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or answer 403."""
        if scope["type"] == "http" and not self._allowed(scope):
            await Response("refused: not from this page\n", 403, HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    @staticmethod
    def _allowed(scope: Any) -> bool:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        origin = headers.get("origin")
        if host.rpartition(":")[0] not in LOCAL_HOSTS and host not in LOCAL_HOSTS:
            return False
        if origin is not None and origin != f"http://{host}":
            return False
        if scope["method"] in ("GET", "HEAD"):
            return True
        return headers.get("x-snellen") == "1" and headers.get("content-type", "").startswith("application/json")


BODY_LIMIT = 256 * 2**10
"""Bytes of a save: an item with all its texts is a few kilobytes."""
Short = Annotated[str, msgspec.Meta(max_length=1000)]


async def read_body(request: Request) -> bytes:
    """Return the body of a save; one that is larger than any is refused before it is held."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise UsageError(f"a save is larger than {BODY_LIMIT // 2**10} KB")
    return body


class Decide(msgspec.Struct, frozen=True):
    """The body of a save."""

    mode: Short
    item: Short
    action: Short
    ticket: Short
    reason: Annotated[str, msgspec.Meta(max_length=10_000)] = ""
    body: Any = None


class Pages:
    """The handlers; each answers from memory, and a save only after it is on disk."""

    def __init__(self, desk: Desk, keys: Keys, name: str) -> None:
        self._desk = desk
        self._keys = keys
        self._name = name
        self._picture: Callable[[str], bytes] = lru_cache(maxsize=256)(self._draw)

    def routes(self) -> list[Route]:
        """Return the addresses of the page."""
        return [
            Route("/", self.enter),
            Route("/r/{place}/", self.page),
            Route("/favicon.ico", self.no_icon),
            Route("/static/{name}", self.static),
            Route("/r/{place}/image/{item:path}", self.image),
            Route("/r/{place}/api/next", self.next),
            Route("/r/{place}/api/item/{item:path}", self.item),
            Route("/r/{place}/api/state", self.state),
            Route("/r/{place}/api/decide", self.decide, methods=["POST"]),
            Route("/r/{place}/api/undo", self.undo, methods=["POST"]),
        ]

    async def enter(self, request: Request) -> Response:
        """Lead a link with a token to the reviewer's own address; the cookie holds for nothing else on this host."""
        claim = f"{request.query_params.get('reviewer', '')}:{request.query_params.get('token', '')}"
        who = self._keys.reviewer(claim)
        if who is None:
            return NO_LINK
        home = f"/r/{self._keys.place(who)}/"
        answer = RedirectResponse(home, 303, HEADERS)
        answer.set_cookie(COOKIE, claim.encode().hex(), path=home, httponly=True, samesite="strict")
        return answer

    async def page(self, request: Request) -> Response:
        """Serve the page of one reviewer."""
        if self._who(request) is None:
            return NO_LINK
        return Response(_file("review.html"), 200, HEADERS, "text/html")

    async def no_icon(self, request: Request) -> Response:
        """Say that there is no icon."""
        return Response(None, 204, HEADERS)

    async def static(self, request: Request) -> Response:
        """Serve our own script and style."""
        name = request.path_params["name"]
        return Response(_file(name), 200, HEADERS, STATIC[name]) if name in STATIC else Response("", 404, HEADERS)

    async def image(self, request: Request) -> Response:
        """Serve a picture, drawn anew from its pixels with the region marked."""
        if self._who(request) is None:
            return STRANGER
        try:
            data = await run_in_threadpool(self._picture, request.path_params["item"])
        except SnellenError as error:
            return _json({"error": str(error)}, 404)
        return Response(data, 200, HEADERS | {"Cache-Control": "private, max-age=3600"}, "image/png")

    async def next(self, request: Request) -> Response:
        """Return the next item of a mode, with the state beside it."""
        after = request.query_params.get("after", "")
        return self._answer(request, lambda who, mode: self._desk.next_item(mode, who, after))

    async def item(self, request: Request) -> Response:
        """Return one item by name."""
        return self._answer(request, lambda who, mode: str(request.path_params["item"]))

    def _answer(self, request: Request, choose: Callable[[str, str], str | None]) -> Response:
        who, mode = self._who(request), request.query_params.get("mode", "review")
        if who is None:
            return STRANGER
        if mode not in MODES:
            return _json({"error": f"no mode {mode!r}"}, 400)
        try:
            return self._show(choose(who, mode), mode, who)
        except SnellenError as error:
            return _json({"error": str(error)}, 404)

    def _show(self, item: str | None, mode: str, who: str, **more: Any) -> Response:
        """Return an item (or None) as the page gets it, with the state beside it."""
        shown = self._desk.show(item, mode, who) if item else None
        state = {"state": self._desk.state(who), "name": self._name, "reasons": REASONS}
        return _json({**more, "item": shown, **state})

    async def state(self, request: Request) -> Response:
        """Return progress and agreement."""
        who = self._who(request)
        return _json(self._desk.state(who)) if who else STRANGER

    async def decide(self, request: Request) -> Response:
        """Store a decision and hand out the next item."""
        who = self._who(request)
        if who is None:
            return STRANGER
        try:
            save = msgspec.json.decode(await read_body(request), type=Decide)
            reason = save.reason.strip()
            decision = Decision(save.mode, save.item, who, _now(), save.action, save.ticket, reason, save.body)
            self._desk.check(decision)
            stored = await self._store(decision)
        except (msgspec.DecodeError, SnellenError) as error:
            return _json({"error": str(error)}, 503 if isinstance(error, EnvironmentProblem) else 400)
        return self._show(self._desk.next_item(save.mode, who), save.mode, who, saved=stored.id)

    async def undo(self, request: Request) -> Response:
        """Take back the last decision."""
        who = self._who(request)
        if who is None:
            return STRANGER
        try:
            fields = msgspec.json.decode(await read_body(request), type=dict[str, Short])
            mode = fields.get("mode", "review")
            undo = self._desk.ledger.undo_of(mode, who, _now(), fields["ticket"])
            item = (await self._store(undo)).item if undo is not None else None
        except (msgspec.DecodeError, KeyError, SnellenError) as error:
            return _json({"error": str(error)}, 400)
        return self._show(item, mode, who, undone=item)

    async def _store(self, decision: Decision) -> Decision:
        """Wait for the disk in a thread, then change the state here, where alone it is read."""
        stored: Decision
        stored, fresh = await run_in_threadpool(self._desk.ledger.write, decision)
        if fresh:
            self._desk.take(stored)
        return stored

    def _who(self, request: Request) -> str | None:
        """Return whose address this is, if the cookie proves it: a cookie of another address proves nothing."""
        try:
            who = self._keys.reviewer(bytes.fromhex(request.cookies.get(COOKIE, "")).decode())
        except ValueError:
            return None
        return who if who is not None and self._keys.place(who) == request.path_params["place"] else None

    def _draw(self, item: str) -> bytes:
        gated = self._desk.items.get(item)
        if gated is None:
            raise DataError(f"no item {item!r}")
        picture = open_image(gated.draft.source.picture())
        picture.thumbnail((LARGEST_SIDE_PX, LARGEST_SIDE_PX))
        out = io.BytesIO()
        picture.convert("RGB").save(out, "PNG", compress_level=1)
        return out.getvalue()


def make_app(desk: Desk, keys: Keys, name: str) -> Starlette:
    """Return the web application."""
    return Starlette(routes=Pages(desk, keys, name).routes(), middleware=[Middleware(LocalOnly)])


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, HEADERS, "application/json")


NO_LINK = Response("open the link that `snellen curate review` printed for you\n", 403, HEADERS)
STRANGER = _json({"error": "open your own link"}, 403)


@lru_cache(maxsize=8)
def _file(name: str) -> bytes:
    return (files("snellen.kits.curate") / "static" / name).read_bytes()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def serve(desk: Desk, keys: Keys, name: str, port: int, ready: Callable[[dict[str, str], int], None]) -> None:
    """Serve until stopped; `ready` is told each reviewer's link and the port once the socket listens."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("view", "the review page") from None
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or answers wait 40 ms
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        fix = "--port 0 picks a free port"
        raise EnvironmentProblem(f"cannot listen on 127.0.0.1:{port}: {error.strerror}; {fix}") from None
    chosen = int(listener.getsockname()[1])
    queries = {who: f"reviewer={quote(who)}&token={keys.token(who)}" for who in desk.settings.reviewers}
    ready({who: f"http://127.0.0.1:{chosen}/?{query}" for who, query in queries.items()}, chosen)
    app, quiet = make_app(desk, keys, name), {"access_log": False, "server_header": False}
    config = uvicorn.Config(app, log_level="warning", lifespan="off", **quiet)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        desk.ledger.close()

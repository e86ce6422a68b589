"""A desk to a running server on localhost, with one link for every reviewer; however it ends, nothing is lost."""

from __future__ import annotations

import socket
from collections.abc import Callable
from urllib.parse import quote

from ...core.errors import EnvironmentProblem, MissingExtra
from .desk import Desk
from .web import Keys, make_app


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

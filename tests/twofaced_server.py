"""A server that is several models: which one answers is decided by query, header, body, or by what it was told to be."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class TwoFaced:
    """What it lists, what its replies say of themselves, and what it answers to a request."""

    answer: Callable[[web.Request, dict[str, Any]], str] = lambda request, body: "A"
    listed: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ("m",)
    """Models that it lists."""
    asked: int = 0
    texts: list[str] = field(default_factory=list)
    """What was said last in each request, without pictures."""
    after: Callable[[int], None] = lambda count: None
    """Called with how many were asked, before each answer: to turn into another."""


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@contextmanager
def twofaced(faces: TwoFaced) -> Iterator[str]:
    """Serve it on 127.0.0.1 for the block; yields its address."""
    loop, runners = asyncio.new_event_loop(), list[web.AppRunner]()

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        faces.asked += 1
        faces.texts.append(_text_of(body["messages"][-1]["content"]))
        faces.after(faces.asked)
        message = {"role": "assistant", "content": faces.answer(request, body)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 30, "completion_tokens": 1, "total_tokens": 31}
        reply = {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
        return web.json_response(reply | faces.said)

    async def models(request: web.Request) -> web.Response:
        rows = [{"id": name, "object": "model", **faces.listed} for name in faces.names]
        return web.json_response({"object": "list", "data": rows})

    async def start() -> int:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", chat)
        app.router.add_get("/v1/models", models)
        runners.append(web.AppRunner(app))
        await runners[0].setup()
        site = web.TCPSite(runners[0], "127.0.0.1", 0)
        await site.start()
        return int(runners[0].addresses[0][1])

    port = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(runners[0].cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

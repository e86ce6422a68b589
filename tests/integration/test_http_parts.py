"""Bodies in parts arrive whole, with their length said before, whatever their size."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from snellen.model.served.http_client import PIECE, AiohttpClient, Body


@pytest.mark.parametrize(
    "parts",
    [(b'{"a":1}',), (b'{"url":"', b"x" * 1000, b'"}'), (b"<", bytes(range(256)) * (3 * PIECE // 256) + b"end", b">")],
    ids=["one part", "three parts", "larger than a piece"],
)
def test_parts_arrive_as_one_body(parts: Body) -> None:
    async def send() -> tuple[bytes, str | None, str | None]:
        got: list[tuple[bytes, str | None, str | None]] = []

        async def answer(request: web.Request) -> web.Response:
            got.append(
                (await request.read(), request.headers.get("Content-Length"), request.headers.get("Content-Type"))
            )
            return web.Response(body=b"{}")

        app = web.Application(client_max_size=2**24)
        app.router.add_post("/", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        client = AiohttpClient()
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
            response = await client.send(url, parts, {"Content-Type": "application/json"}, 10.0)
        finally:
            await client.close()
            await runner.cleanup()
        assert response.status == 200
        return got[0]

    body = b"".join(parts)
    assert asyncio.run(send()) == (body, str(len(body)), "application/json")

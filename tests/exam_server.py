"""A server for the exam's observer: it knows a picture only by the hash of its bytes, and the truth it was told of that hash."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from exam_observer import Observer
from snellen.core.types import Sample


class Ledger:
    """Hashes of pictures, and the trials they belong to."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, ...], Sample] = {}
        self.peak = self.running = 0

    def tell(self, sample: Sample) -> None:
        """Hear of a trial before it is asked."""
        hashes = (hashlib.sha256(Path(image.ref).read_bytes()).hexdigest() for image in sample.images)
        self._samples[tuple(hashes)] = sample

    def find(self, body: dict[str, object]) -> Sample:
        """Return the trial whose pictures these are."""
        parts = [part for message in body["messages"] for part in message["content"]]  # type: ignore[attr-defined]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        data = [base64.b64decode(url.partition(",")[2]) for url in urls]
        return self._samples[tuple(hashlib.sha256(one).hexdigest() for one in data)]


@contextmanager
def serving(
    observer: Observer, ledger: Ledger, *, delay_s: float = 0.0, most_bytes: int = 2**28, refusal: str = ""
) -> Iterator[str]:
    """Serve an observer on 127.0.0.1 for the block; yields its address. Larger bodies get a 413 with `refusal`."""
    loop, runners = asyncio.new_event_loop(), list[web.AppRunner]()

    async def answer(request: web.Request) -> web.Response:
        if (request.content_length or 0) > most_bytes:
            return web.Response(status=413, text=refusal)
        sample = ledger.find(await request.json())
        ledger.running += 1
        ledger.peak = max(ledger.peak, ledger.running)
        await asyncio.sleep(delay_s)
        ledger.running -= 1
        message = {"role": "assistant", "content": observer.answer(sample)}
        usage = {"prompt_tokens": 300, "completion_tokens": 5, "total_tokens": 305}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "known", "object": "model"}]})

    async def start() -> None:
        app = web.Application(client_max_size=2**28)
        app.add_routes([web.post("/v1/chat/completions", answer), web.get("/v1/models", models)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        yield f"http://127.0.0.1:{runners[0].addresses[0][1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(runners[0].cleanup(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()

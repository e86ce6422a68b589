"""A server that sends byte after byte and never ends, in any part of a reply: the limits of a run hold."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import snellen
from figures import note_figure

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
PHASES: dict[str, tuple[bytes, bytes, bool]] = {
    "nothing": (b"", b"", False),
    "status": (b"HTTP/1.1 200 ", b"O", False),
    "heads": (HEAD, b"X-More: 1\r\n", False),
    "one long head": (HEAD + b"X-Long: ", b"x", False),
    "interim replies": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", False),
    "body": (HEAD + b"Content-Length: 1000000\r\n\r\n", b" ", False),
    "body until close": (HEAD + b"Connection: close\r\n\r\n", b" ", False),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", False),
    "size of a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0", False),
    "trailer": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"X-T: 1\r\n", False),
    "comments of a stream": (STREAM, b"3\r\n: \n\r\n", True),
    "pieces of a stream": (STREAM, f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n", True),
}
"""What comes at once, what then comes again and again, and whether a stream was asked for."""
BETWEEN_S = 0.02
MOST = 1_500
"""Of these bytes a server sends so many at most: a run that waits for all of them has no limit of its own."""


@contextmanager
def dripping(start: bytes, more: bytes) -> Iterator[tuple[str, list[int]]]:
    """Serve it on 127.0.0.1; yields the address, and how often each request was sent `more`."""
    loop, sent = asyncio.new_event_loop(), list[int]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.transport.abort()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/models" in head.split(b"\r\n")[0]:
            listing = json.dumps({"data": [{"id": "m"}]}).encode()
            writer.write(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(listing) + listing)
            writer.close()
            await writer.wait_closed()
        else:
            place = len(sent)
            sent.append(0)
            writer.write(start)
            while sent[place] < MOST and not writer.is_closing():
                writer.write(more)
                sent[place] += 1
                await asyncio.sleep(BETWEEN_S)
        await writer.drain()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def stop() -> None:
        server.close()
        open_still = asyncio.all_tasks() - {asyncio.current_task()}
        for task in open_still:
            task.cancel()
        await asyncio.gather(*open_still, return_exceptions=True)
        await asyncio.sleep(0)

    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", sent
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def ends(phase: str, folder: Path) -> bool:
    """Tell whether a run ends by its own limits, long before the server does, and takes nothing for an answer."""
    start, more, stream = PHASES[phase]
    path = folder / "t.jsonl"
    path.write_text(json.dumps({"id": "1", "question": "x?", "answer": "x"}))
    limits = {"timeout_s": 0.5, "deadline_s": 1.0, "max_retries": 3}
    with dripping(start, more) as (url, sent):
        out = folder / phase.replace(" ", "-")
        found = snellen.run(str(path), "openai/m", base_url=url, output_dir=out, stream=stream, cache=False, **limits)
        assert sent, "it was asked"
        return found.results["tasks"]["t"]["metrics"]["accuracy"]["n"] == 0 and max(sent) < MOST


@pytest.mark.parametrize("phase", ["trailer", "pieces of a stream"])
def test_a_reply_that_never_ends_is_given_up(phase: str, tmp_path: Path) -> None:
    assert ends(phase, tmp_path)


@pytest.mark.slow
def test_a_reply_that_never_ends_is_given_up_in_every_part(tmp_path: Path) -> None:
    endless = [phase for phase in PHASES if not ends(phase, tmp_path)]
    figure = f"{len(PHASES)} parts of a reply: {len(PHASES) - len(endless)} ended by --timeout 0.5 --deadline 1"
    note_figure("fault", "slow bytes without end, in a status, heads, chunks, trailers, bodies and streams", figure)
    assert not endless

"""Replies without measure: a bound after unpacking, whole and streamed, told as a typed failure; the memory stays small."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from collections.abc import Iterator

import pytest

from snellen.core.errors import ModelError
from snellen.core.types import FailureKind
from snellen.model.served.connection import REPLY_LIMIT, BadResponseError, Chunked, Response, TooLargeError
from snellen.model.served.http_client import AiohttpClient

MEGABYTE = b"x" * 2**20


def plain() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    for _ in range(200):
        yield MEGABYTE


def announced() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 800000000\r\n\r\n"
    yield MEGABYTE


def chunked() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(200):
        yield b"100000\r\n" + MEGABYTE + b"\r\n"


def packed() -> Iterator[bytes]:
    content = gzip.compress(b"\0" * 300 * 2**20, 9)
    yield b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(content)
    yield content


KINDS = {function.__name__: function for function in (plain, announced, chunked, packed)}


async def ask(kind: str, *, way: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for part in KINDS[kind]():
                writer.write(part)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    url, client = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/chat", AiohttpClient()
    try:
        if way == "stream":
            async with client.stream(url, (b"{}",), {}, 60.0) as response:
                async for _ in response.chunks:
                    pass
        else:
            await client.send(url, (b"{}",), {}, None if way == "post" else 60.0)
    finally:
        await client.close()
        listener.close()


# A session believes an announced length and waits for the bytes: there the deadline ends it, not the limit.
CASES = [(kind, way) for kind in KINDS for way in ("post", "session", "stream") if kind != "announced" or way == "post"]


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_a_reply_larger_than_any_is_a_typed_failure(kind: str, way: str) -> None:
    with pytest.raises(ModelError, match="larger than 64 MB") as caught:
        asyncio.run(asyncio.wait_for(ask(kind, way=way), 60))
    assert caught.value.kind is FailureKind.DECODE and not caught.value.retryable


CHILD = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from test_large_replies import ask
try:
    asyncio.run(ask("packed", way={way!r}))
except Exception as error:
    # The peak of this program: ru_maxrss would hold that of the process it was forked from.
    print(type(error).__name__, int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.parametrize("way", ["post", "session", "stream"])
def test_a_packed_reply_that_would_fill_the_memory_does_not(way: str) -> None:
    from pathlib import Path

    child = CHILD.format(tests=str(Path(__file__).parent), way=way)
    found = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=120, check=True)
    name, megabytes = found.stdout.split()
    assert name == "ModelError"
    assert int(megabytes) < 512 + 320, "the child itself packs 300 MB first"


def test_lengths_chunks_and_trailers_have_bounds() -> None:
    with pytest.raises(TooLargeError):
        Response(lambda _: None).feed(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (REPLY_LIMIT + 1))
    with pytest.raises(TooLargeError):
        Chunked().feed(b"fffffff0\r\n")
    with pytest.raises(BadResponseError, match="does not end"):
        Chunked().feed(b"1" * 70_000)
    with pytest.raises(BadResponseError, match="does not end"):
        Chunked().feed(b"0\r\n" + b"a: b\r\n" * 20_000)

"""Whole POSTs over connections of our own: the same bytes a session would send, and every odd answer a typed error."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp
import pytest

import snellen.model.served.http_client as http
import snellen.model.served.post as post
from snellen.core.errors import ModelError
from snellen.core.types import FailureKind
from snellen.model.served.connection import READ_BYTES
from snellen.model.served.http_client import PIECE, AiohttpClient
from snellen.model.served.post import HttpResponse, unpack

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer key"}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Wire:
    """A server that answers with given bytes and remembers what it was sent."""

    answers: list[bytes]
    close_after: bool = False
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(int(lines.get("Content-Length", "0"))))
                writer.write(self.answers.pop(0) if head.startswith(b"POST") else OK)
                if self.close_after:
                    return
        except asyncio.IncompleteReadError:
            self.lost.set()
        finally:
            writer.close()


def played(wire: Wire, client: Callable[[AiohttpClient, str], Awaitable[None]]) -> Wire:
    async def main() -> None:
        server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
        mine = AiohttpClient()
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            await mine.send(f"{url}/models", None, HEADERS, 10.0)  # as every run does: it opens the session
            await client(mine, f"{url}/chat?x=1")
        finally:
            await mine.close()
            server.close()

    asyncio.run(asyncio.wait_for(main(), 20))
    return wire


def ask(answer: bytes, *, close_after: bool = False) -> HttpResponse:
    found: list[HttpResponse] = []

    async def client(mine: AiohttpClient, url: str) -> None:
        found.append(await mine.send(url, (b"{}",), HEADERS, None))

    played(Wire([answer], close_after), client)
    return found[0]


def test_the_bytes_are_those_of_a_session_and_the_connection_is_kept() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        assert (
            await mine.send(url, (b'{"a":', b"1}"), HEADERS, 10.0)
        ).status == 200  # with its own timeout: by the session
        assert (await mine.send(url, (b'{"a":', b"1}"), HEADERS, None)).status == 200
        assert (await mine.send(url, (b"[]",), HEADERS, None)).body == b"{}"

    wire = played(Wire([OK, OK, OK]), client)
    _, by_session, posted, other = (sorted(head.split(b"\r\n")) for head in wire.heads)
    assert posted == [line for line in by_session if line != b"Connection: close"]
    assert b"Content-Length: 2" in other and b"Authorization: Bearer key" in other
    assert b"POST /chat?x=1 HTTP/1.1" in other
    assert wire.bodies[1:] == [b'{"a":1}', b'{"a":1}', b"[]"]
    assert wire.connections == 3, "two of the session, which uses none twice, and one for both posts"


def test_a_body_beyond_one_piece_goes_part_by_part() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        await mine.send(url, (b"<", b"x" * (2 * PIECE), b">"), HEADERS, None)

    assert len(played(Wire([OK]), client).bodies[1]) == 2 * PIECE + 2


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"{}"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"{}"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 22\r\n\r\n" + gzip.compress(b"{}", mtime=0),
            b"{}",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: 10\r\n\r\n" + zlib.compress(b"{}"), b"{}"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: 4\r\n\r\n" + zlib.compress(b"{}")[2:-4],
            b"{}",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", b""),
    ],
    ids=[
        "chunked",
        "continue first",
        "gzip",
        "deflate",
        "deflate without its header",
        "as it is",
        "no content",
        "redirects are not followed",
    ],
)
def test_answers_are_read_whole(answer: bytes, body: bytes) -> None:
    assert ask(answer).body == body


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"no HTTP at all\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
    ],
    ids=[
        "cut body",
        "garbage",
        "closed at once",
        "cut head",
        "unasked encoding",
        "no gzip",
        "chunk of less",
        "length of less",
    ],
)
def test_what_is_no_answer_is_a_network_error(answer: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        ask(answer, close_after=not answer.startswith(b"no"))
    assert caught.value.kind is FailureKind.NETWORK
    assert caught.value.retryable


def test_a_few_bytes_that_unpack_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "REPLY_LIMIT", 1000)
    assert unpack(gzip.compress(b"x" * 1000), "gzip") == b"x" * 1000
    with pytest.raises(ModelError, match="larger than") as caught:
        unpack(gzip.compress(b"x" * 1001), "gzip")
    assert caught.value.kind is FailureKind.DECODE and not caught.value.retryable
    with pytest.raises(aiohttp.ClientPayloadError, match="cut off"):
        unpack(gzip.compress(b"xyz" * 99)[:-20], "gzip")


def test_an_error_of_many_lines_is_told_in_one() -> None:
    found = http.network_error(aiohttp.ClientPayloadError("400, message:\n  Can not decode"), "http://x/v1", None)
    assert str(found) == "connection to http://x/v1 failed: ClientPayloadError: 400, message: Can not decode"


def test_every_member_of_a_gzip_is_read_and_what_follows_is_never_left_out_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = gzip.compress(b'{"a": '), gzip.compress(b"1}")
    assert unpack(one + two, "gzip") == b'{"a": 1}'
    for tail in (b"garbage", b"\0", one[:1], one[:9]):
        with pytest.raises(aiohttp.ClientPayloadError, match="gzip"):
            unpack(one + tail, "gzip")
    with pytest.raises(aiohttp.ClientPayloadError, match="bytes follow the end of its deflate"):
        unpack(zlib.compress(b"{}") + zlib.compress(b"{}"), "deflate")
    monkeypatch.setattr(post, "REPLY_LIMIT", 8)
    assert unpack(one + two, "gzip") == b'{"a": 1}'
    with pytest.raises(ModelError, match="larger than"):
        unpack(one + two + gzip.compress(b" "), "gzip")


def test_large_answers_at_once_are_not_mixed_though_all_are_read_into_one_place() -> None:
    size = 5 * READ_BYTES + 7
    bodies = [bytes([letter]) * size for letter in b"abcdefgh"]
    found: list[bytes] = []

    async def client(mine: AiohttpClient, url: str) -> None:
        answers = await asyncio.gather(*(mine.send(url, (b"{}",), HEADERS, None) for _ in bodies))
        found.extend(answer.body for answer in answers)

    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    wire = played(Wire([head + body for body in bodies]), client)
    assert wire.connections > len(bodies)
    assert sorted(found) == bodies


def test_a_closed_connection_is_not_used_again() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
        wire.answers[:] = [closing, OK]
        for _ in range(2):
            assert (await mine.send(url, (b"{}",), HEADERS, None)).body == b"{}"

    wire = Wire([])
    assert played(wire, client).connections == 3, "one is the session's"


def test_a_connection_that_rested_too_long_is_closed_and_another_opened() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        for now in (0.0, 14.0, 29.5):
            mine._poster._pool._now = lambda now=now: now  # type: ignore[misc]
            await mine.send(url, (b"{}",), HEADERS, None)
        await wire.lost.wait()

    wire = Wire([OK, OK, OK])
    assert played(wire, client).connections == 3, "one is the session's"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize("answer", [OK, CHUNKED])
def test_what_nobody_asked_for_is_no_answer_to_the_next_question(answer: bytes) -> None:
    late = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate"

    async def client(mine: AiohttpClient, url: str) -> None:
        first = await mine.send(url, (b"{}",), HEADERS, None)
        await asyncio.sleep(0)  # whatever came with it has been read
        second = await mine.send(url, (b"{}",), HEADERS, None)
        assert (first.status, second.status, second.body) == (200, 200, b"{}")

    assert played(Wire([answer + late, OK]), client).connections == 3, "one is the session's"


def test_a_control_character_in_a_key_is_refused() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        for timeout_s in (None, 10.0):
            with pytest.raises(ModelError, match="control character"):
                await mine.send(url, (b"{}",), {"Authorization": "Bearer key\n"}, timeout_s)

    assert len(played(Wire([OK]), client).heads) == 1


def test_a_name_and_password_in_the_address_go_where_a_session_puts_them() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        for timeout_s in (10.0, None):
            await mine.send(url.replace("//", "//me:secret@"), (b"{}",), {}, timeout_s)

    wire = played(Wire([OK, OK]), client)
    by_session, posted = (sorted(head.split(b"\r\n")) for head in wire.heads[1:])
    assert [line for line in posted if not line.startswith(b"Content-Type")] == [
        line for line in by_session if not line.startswith(b"Content-Type")
    ]
    assert any(line.startswith(b"Authorization: Basic ") for line in posted)


def test_a_cancelled_question_closes_its_connection() -> None:
    async def client(mine: AiohttpClient, url: str) -> None:
        asking = asyncio.create_task(mine.send(url, (b"{}",), HEADERS, None))
        while len(wire.bodies) < 2:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await wire.lost.wait()

    wire = Wire([b""])
    played(wire, client)


def test_a_question_cancelled_after_its_answer_came_leaves_the_connection_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_end = post._Answer.on_end

    async def client(mine: AiohttpClient, url: str) -> None:
        asking = asyncio.create_task(mine.send(url, (b"{}",), HEADERS, None))

        def cancelled_at_the_end(self: object, *arguments: object) -> None:
            on_end(self, *arguments)  # type: ignore[arg-type]
            asking.cancel()

        with monkeypatch.context() as patch:
            patch.setattr(post._Answer, "on_end", cancelled_at_the_end)
            with pytest.raises(asyncio.CancelledError):
                await asking
        assert (await mine.send(url, (b"{}",), HEADERS, None)).body == b"{}"

    assert played(Wire([OK, OK]), client).connections == 2, "one is the session's"


def test_another_protocol_is_known_at_once_although_it_keeps_the_connection() -> None:
    with pytest.raises(ModelError, match="no HTTP"):
        ask(b"-ERR unknown command\r\n")


def test_a_proxy_gets_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> bytes:
        wire = Wire([OK])
        server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
        monkeypatch.setattr(
            http, "getproxies", lambda: {"http": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
        )
        monkeypatch.setattr(http, "proxy_bypass", lambda _: False)
        client = AiohttpClient()
        try:
            await client.send("http://model.invalid/models", None, HEADERS, 10.0)
            await client.send("http://model.invalid/chat", (b"{}",), HEADERS, None)
        finally:
            await client.close()
            server.close()
        return wire.heads[1]

    assert asyncio.run(main()).startswith(b"POST http://model.invalid/chat HTTP/1.1\r\n")

"""Workers that die, certificates nobody trusts, connections that misbehave: a typed answer each time."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import os
import shutil
import signal
import ssl
import struct
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import EnvironmentProblem, ModelError
from snellen.model.served.connection import Pool, Response, Target, request_head
from snellen.model.served.openai import OpenAI
from snellen.perf import measure as fleet
from snellen.perf.collect import Collector
from snellen.perf.generator import Item, LoadJob, LoadResult
from snellen.perf.measure import READY, run_fleet, serve
from snellen.perf.self_check import Watch

REPLY = b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}'
JOB = LoadJob(
    "openai", ("http://127.0.0.1:9/v1/chat/completions",), {}, (Item("a", (b"{}",)),), slots=(0.0, 0.0), count=4
)


def test_a_worker_speaks_its_protocol() -> None:
    body = msgspec.msgpack.encode(JOB)
    sink = io.BytesIO()
    serve(io.BytesIO(struct.pack("<Q", len(body)) + body + struct.pack("<d", 0.0)), sink)
    ready, _, packed = sink.getvalue().partition(b"\n")
    assert ready + b"\n" == READY
    result = msgspec.msgpack.decode(packed, type=LoadResult)
    assert {outcome.record.failure for outcome in result.outcomes} == {"network"}
    assert len(result.outcomes) == 4


def test_a_worker_whose_parent_is_gone_leaves_quietly() -> None:
    body = msgspec.msgpack.encode(JOB)
    sink = io.BytesIO()
    serve(io.BytesIO(struct.pack("<Q", len(body)) + body), sink)
    assert sink.getvalue() == READY


def test_two_workers_merge() -> None:
    result = asyncio.run(run_fleet(JOB, 2))
    assert (len(result.outcomes), result.watch.processes) == (4, 2)
    assert {outcome.record.worker for outcome in result.outcomes} == {0, 1}


def test_a_worker_that_is_killed_is_an_environment_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def killed(self: Any, start: float) -> LoadResult:
        os.kill(self._process.pid, signal.SIGKILL)
        return await finish(self, start)

    finish = fleet._Worker.finish
    monkeypatch.setattr(fleet._Worker, "finish", killed)
    with pytest.raises((EnvironmentProblem, ConnectionError)):
        asyncio.run(run_fleet(JOB, 2))


async def ask(pool: Pool, target: Target) -> Collector:
    collector = Collector(OpenAI())
    connection = pool.idle(target) or await pool.connect(target)
    connection.send(request_head("POST", target, "/", {}), (b"{}",), collector)
    await collector.done
    collector.read()
    return collector


def talk(
    answer: bytes, *, close: bool = False, context: ssl.SSLContext | None = None, times: int = 1
) -> list[Collector]:
    """Serve `answer` to every request and return what the client made of it."""

    handlers: set[Any] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                writer.write(answer)
                await writer.drain()
                if close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    async def go() -> list[Collector]:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        target = Target(
            "localhost" if context else "127.0.0.1", server.sockets[0].getsockname()[1], context is not None
        )
        pool = Pool()
        try:
            return [await ask(pool, target) for _ in range(times)]
        finally:
            pool.close()
            server.close()
            await asyncio.gather(*handlers)

    return asyncio.run(go())


def whole(body: bytes = REPLY, head: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_connections_are_kept_and_used_again() -> None:
    collectors = talk(whole(), times=3)
    assert [collector.reply.text for collector in collectors] == ["ok"] * 3


@pytest.mark.parametrize(
    ("answer", "kind", "part"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "network", "not an HTTP/1.1 response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "network", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", "network", "closed"),
        (b"", "network", "closed"),
        (whole(b"{"), "decode", "not JSON"),
    ],
)
def test_bytes_that_are_no_answer(answer: bytes, kind: str, part: str) -> None:
    collector = talk(answer, close=True)[0]
    record = collector.record("x", 0.0)
    assert record.failure == kind
    assert part in (record.message or "")


def test_a_body_until_close_is_an_answer() -> None:
    assert talk(b"HTTP/1.1 200 OK\r\n\r\n" + REPLY, close=True)[0].reply.text == "ok"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(cert),
        "-days",
        "2",
    ]
    subprocess.run(
        [*command, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


def test_tls_with_a_trusted_certificate(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert talk(whole(), context=certificate[1])[0].reply.text == "ok"


def test_tls_with_an_unknown_certificate_is_refused(certificate: tuple[Path, ssl.SSLContext]) -> None:
    with pytest.raises(ModelError, match="cannot connect to localhost"):
        talk(whole(), context=certificate[1])


STREAM = (
    b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n: comment\n\n'
    b'data: {"choices":[{"delta":{"content":"Gr\\u00fc\xc3\x9fe"}}]}\r\n\r\n'
    b'data: {"choices":[{"delta":{"content":" aus"},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\ndata: [DONE]\n\n'
)


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_a_stream_cut_anywhere_reads_the_same(cuts: list[int]) -> None:
    async def play() -> Collector:
        collector = Collector(OpenAI())
        edges = [0, *sorted(set(cuts)), len(STREAM)]
        for moment, (start, end) in enumerate(itertools.pairwise(edges)):
            collector.on_data(STREAM[start:end], float(moment))
        response = Response(lambda data: None)
        response.status = 200
        collector.on_end(response, 99.0, None)
        collector.read()
        return collector

    collector = asyncio.run(play())
    record = collector.record("x", 0.0)
    assert (collector.error, collector.reply.text, record.output_tokens, len(record.chunks)) == (
        None,
        "Grüße aus",
        4,
        2,
    )
    assert list(record.chunks) == sorted(record.chunks)


def test_the_watch_sees_a_blocked_loop() -> None:
    async def block() -> float:
        watch = Watch()
        async with watch:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(0)
            end = loop.time() + 0.2
            while loop.time() < end:
                pass
            await asyncio.sleep(0.01)
        return watch.report([], capped=False).lag_p99_s

    assert asyncio.run(block()) > 0.05

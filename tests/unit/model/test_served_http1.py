"""The response reader: any split of any response gives the same body, and nonsense is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ModelError
from snellen.model.served.connection import HEAD_LIMIT, BadResponseError, Response, parse_url, request_head

BODY = b'data: {"a": 1}\n\ndata: [DONE]\n\n'


def chunked(body: bytes, sizes: list[int]) -> bytes:
    out, at = b"", 0
    for size in sizes:
        piece = body[at : at + size]
        if piece:
            out += b"%x;note=1\r\n%b\r\n" % (len(piece), piece)
        at += size
    if at < len(body):
        out += b"%x\r\n%b\r\n" % (len(body) - at, body[at:])
    return out + b"0\r\nTrailer: x\r\n\r\n"


def feed(raw: bytes, cuts: list[int]) -> tuple[Response, bytes, bool]:
    parts: list[bytes] = []
    response = Response(parts.append)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    complete = False
    for start, end in itertools.pairwise(edges):
        if end > start:
            complete = response.feed(raw[start:end])
    return response, b"".join(parts), complete


@given(st.lists(st.integers(1, 9), max_size=6), st.lists(st.integers(0, 200), max_size=8))
def test_chunked_bodies_survive_any_split(sizes: list[int], cuts: list[int]) -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(BODY, sizes)
    response, body, complete = feed(raw, cuts)
    assert (response.status, body, complete, response.keep_alive) == (200, BODY, True, True)


@given(st.lists(st.integers(0, 120), max_size=8))
def test_lengths_and_interim_responses_survive_any_split(cuts: list[int]) -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 4\r\nRetry-After: 2\r\nConnection: close\r\n\r\nbusy"
    response, body, complete = feed(raw, cuts)
    assert (response.status, body, complete, response.keep_alive) == (503, b"busy", True, False)
    assert response.headers["retry-after"] == "2"


def test_a_body_until_close_ends_with_the_connection() -> None:
    response, body, complete = feed(b"HTTP/1.0 200 OK\r\n\r\nall of it", [3, 20])
    assert (body, complete, response.finish(), response.keep_alive) == (b"all of it", False, True, False)


def test_a_cut_body_is_not_complete() -> None:
    response, _, complete = feed(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", [])
    assert not complete
    assert not response.finish()
    assert response.begun


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_LIMIT,
        b"+OK",
    ],
)
def test_nonsense_is_refused(raw: bytes) -> None:
    with pytest.raises(BadResponseError):
        feed(raw, [])


def test_a_wrong_chunk_size_is_refused() -> None:
    with pytest.raises(BadResponseError, match="chunk size"):
        feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", [])


def test_urls() -> None:
    target, path = parse_url("http://localhost:8000/v1/chat?x=1")
    assert (target.host, target.port, target.secure, path) == ("localhost", 8000, False, "/v1/chat?x=1")
    assert parse_url("https://h")[0].port == 443
    assert b"Host: [::1]\r\n" in request_head("POST", parse_url("http://[::1]/")[0], "/", {})
    for wrong in ("ftp://x/", "localhost:8000", "http://x:port/"):
        with pytest.raises(ModelError, match="--base-url"):
            parse_url(wrong)


def test_a_header_with_a_line_break_never_reaches_the_wire() -> None:
    with pytest.raises(ModelError, match="line break"):
        request_head("POST", parse_url("http://h/")[0], "/", {"Authorization": "Bearer a\r\nX: y"})

"""The yardstick server answers once a request, however the bytes are cut."""

from __future__ import annotations

import asyncio
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from snellen.kits.mock.http import ConstantProtocol


class Transport:
    """Counts answers."""

    answers = 0

    def write(self, data: bytes) -> None:
        assert data == b"answer"
        self.answers += 1


def request(length: int) -> bytes:
    head = b"POST /chat HTTP/1.1\r\nHost: x\r\n" + (b"Content-Length: %d\r\n" % length if length else b"") + b"\r\n"
    return head + (b"\r\n\r\n" + b"y" * length)[:length]  # what looks like the end of a head is none in a body


@given(
    lengths=st.lists(st.sampled_from([0, 1, 5, 3000, 40_000]), min_size=1, max_size=5),
    cuts=st.lists(st.integers(1, 50_000), max_size=30),
)
def test_one_answer_a_request(lengths: list[int], cuts: list[int]) -> None:
    transport = Transport()
    protocol = ConstantProtocol(b"answer")
    protocol.connection_made(cast("asyncio.Transport", transport))
    stream, sizes = b"".join(map(request, lengths)), iter(cuts)
    while stream:
        piece, stream = stream[: (size := next(sizes, 10**6))], stream[size:]
        protocol.get_buffer(-1)[: len(piece)] = piece
        protocol.buffer_updated(len(piece))
    assert transport.answers == len(lengths)

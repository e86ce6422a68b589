"""Server-sent events: the same data whatever the pieces they come in, and no end of a line is waited for without bound."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ModelError
from snellen.core.types import FailureKind
from snellen.model.served import http_client
from snellen.model.served.http_client import event_data, read_events

STREAM = b': ping\nevent: x\ndata: {"a": 1}\r\n\r\ndata:\n\ndata:{"b": 2}\n\ndata: [DONE]\n\ndata: {"late": 3}\n\n'


def read(pieces: Sequence[bytes]) -> list[bytes]:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def go() -> list[bytes]:
        return [data async for data in read_events(chunks())]

    return asyncio.run(go())


@given(st.lists(st.integers(0, len(STREAM)), max_size=9))
def test_any_split_gives_the_same_events_and_nothing_after_the_end(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[start:end] for start, end in itertools.pairwise(edges)]) == [b'{"a": 1}', b'{"b": 2}']


@pytest.mark.parametrize(("rest", "last"), [(b'data: {"c": 3}', [b'{"c": 3}']), (b"data: [DONE]", []), (b"dat", [])])
def test_a_last_line_without_its_end_counts_if_it_is_data(rest: bytes, last: list[bytes]) -> None:
    assert read([b"data: 1\n\n", rest]) == [b"1", *last]


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "EVENT_LIMIT", 10)
    with pytest.raises(ModelError, match="larger than") as caught:
        read([b"data: 1\n", b"data: ", b"x" * 10])
    assert caught.value.kind is FailureKind.DECODE


def test_only_data_lines_are_data() -> None:
    assert [event_data(line) for line in (b"data: x ", b"data:x", b"database: x", b": data", b"")] == [
        b"x",
        b"x",
        b"",
        b"",
        b"",
    ]

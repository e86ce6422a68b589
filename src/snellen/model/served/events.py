"""Server-sent events: chunks of bytes to the data of each event, without `[DONE]`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from ...core.errors import ModelError
from ...core.types import FailureKind
from .replies import BOM, told_error

EVENT_LIMIT = 16 * 2**20
DONE = b"[DONE]"


class EventLines:
    """Cuts a stream into the data of its events, however it is chunked; an event named `error` is raised as one."""

    __slots__ = ("_begun", "_failed", "rest")

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of a line that has not ended."""
        self._begun = False
        self._failed = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take bytes; yield the data of every line that they end, `[DONE]` too."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        if len(self.rest) > EVENT_LIMIT:
            raise ModelError(FailureKind.DECODE, f"a stream event is larger than {EVENT_LIMIT // 2**20} MB")
        for line in lines:
            if data := self._data_of(line):
                yield data

    def finish(self) -> Iterator[bytes]:
        """The stream has ended; a last line without its end counts as one."""
        line, self.rest = self.rest, b""
        if data := self._data_of(line):
            yield data
        if self._failed:
            raise told_error("it did not say which")

    def _data_of(self, line: bytes) -> bytes:
        if not self._begun:
            line, self._begun = line.removeprefix(BOM), True
        data = event_data(line)
        if self._failed and (data or not line.strip()):
            raise told_error(data.decode("utf-8", "replace") or "it did not say which")
        if line.startswith(b"event:"):
            self._failed = line[6:].strip() == b"error"
        return data


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event. Comments and empty events are skipped; `[DONE]` ends the stream."""
    lines = EventLines()
    async for chunk in chunks:
        for data in lines.feed(chunk):
            if data == DONE:
                return
            yield data
    for data in lines.finish():
        if data != DONE:
            yield data


def event_data(line: bytes) -> bytes:
    """Return what follows `data:` on a line, or nothing."""
    return line[5:].strip() if line.startswith(b"data:") else b""

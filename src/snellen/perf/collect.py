"""Stamped pieces of one response in, a request record and the reply out: stamped at the socket, parsed later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import msgspec

from ..core.clock import SystemClock
from ..core.errors import DataError, ModelError
from ..core.types import FailureKind, Usage
from ..model.served.connection import Response
from ..model.served.dialect import Dialect
from ..model.served.http_client import DONE, EventLines
from ..model.served.replies import (
    Reply,
    check_reply,
    check_streamed,
    decode_body,
    read_event,
    read_safely,
    status_error,
)
from .timeline import CANCELLED, RequestRecord, Timeline

PARTIAL = "timeline.partial"
"""How the files of a level that is not finished begin; one for each process of the generator."""
WRITE_EVERY_S = 0.25
"""A kill loses at most what came since; to write each record at once would disturb the load it times."""


class Journal:
    """Lines of JSON, a request each. Nothing is written when it has no path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._encode = msgspec.json.Encoder().encode
        self._timer: asyncio.TimerHandle | None = None

    def note(self, record: RequestRecord) -> None:
        """Keep one finished request; it is in the file a quarter of a second later."""
        if not self._path:
            return
        self._lines.append(self._encode(record) + b"\n")
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_EVERY_S, self.write)

    def write(self) -> None:
        """Append what is waiting, whole lines at once."""
        self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            with Path(self._path).open("ab", buffering=0) as file:
                file.write(b"".join(lines))


def partial_files(folder: Path) -> list[Path]:
    """Return what processes of a killed load left in a folder."""
    return sorted(folder.glob(f"{PARTIAL}*.jsonl"))


def read_partial(folder: Path) -> Timeline:
    """Return what a killed load had measured; a last line that was cut is left out, what was in flight is missing."""
    decode, records = msgspec.json.Decoder(RequestRecord).decode, []
    for path in partial_files(folder):
        try:
            records += [decode(line) for line in path.read_bytes().rpartition(b"\n")[0].splitlines()]
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path} is damaged: {error}; what stands before it can be kept by cutting the file"
            ) from None
    return Timeline(
        requests=tuple(sorted(records, key=lambda record: record.due)), interrupted=True, load={"killed": True}
    )


PARSE_EVERY = 64
"""Pieces kept before they are parsed: work per socket read stays small, and so does the longest pause."""


class Collector:
    """The sink of one request. `done` is set when the response has ended, well or badly."""

    __slots__ = (
        "_dialect", "_first", "_lines", "_pieces", "_silent_times", "_stopped", "_text_times", "done", "end", "error",
        "reply", "response", "sent", "status",
    )  # fmt: skip

    def __init__(self, dialect: Dialect | None) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sent = 0.0
        self.end = 0.0
        self.error: ModelError | None = None
        self.reply = Reply()
        self.response: Response | None = None
        self.status: int | None = None
        self._dialect = cast("Dialect", dialect)  # None where no server is asked: then nothing is parsed
        self._pieces: list[tuple[bytes, float]] = []
        self._lines = EventLines()
        self._first: dict[str, float] = {}
        self._text_times: list[float] = []
        self._silent_times: list[float] = []
        self._stopped = False

    def on_data(self, data: bytes, moment: float) -> None:
        """Keep a piece of the body with its stamp."""
        self._pieces.append((data, moment))
        if len(self._pieces) >= PARSE_EVERY and self._is_stream():
            self._parse_events()

    def on_end(self, response: Response, moment: float, error: Exception | None) -> None:
        """Note the end and wake whoever waits."""
        self.response, self.end = response, moment
        self.status = response.status or None
        if error is not None:
            self.fail(ModelError(FailureKind.NETWORK, str(error), retryable=True), moment)
        if not self.done.done():
            self.done.set_result(None)

    def fail(self, error: ModelError, moment: float) -> None:
        """Record why there will be no reply; the first reason stays."""
        self.error = self.error or error
        self.end = moment
        if not self.done.done():
            self.done.set_result(None)

    def read(self) -> None:
        """Parse what came into `reply`, or set `error`. A status other than 200 is never an answer."""
        if self.error is None and self.response is not None:
            try:
                self._read(self.response)
            except ModelError as error:
                self.error = error

    def _read(self, response: Response) -> None:
        if response.status != 200:
            raise status_error(response.status, response.headers, self._body(), SystemClock())
        if not self._is_stream():
            self.reply = read_safely(self._dialect.parse, decode_body(self._body()))
            check_reply(self.reply)
            return
        self._parse_events()
        if self.error is not None:
            raise self.error
        if not (self.reply.closed or self.reply.finish or self._stopped):
            raise ModelError(FailureKind.NETWORK, "the stream was cut before its end", retryable=True)
        check_streamed(self.reply)

    def _body(self) -> bytes:
        return b"".join(data for data, _ in self._pieces)

    def _is_stream(self) -> bool:
        """Tell a stream by its first bytes: servers get the content type wrong more often than the body."""
        start = self._pieces[0][0].lstrip()[:1] if self._pieces else b""
        return bool(self._first) or bool(self._lines.rest) or start not in (b"{", b"[", b"<", b"")

    def _parse_events(self) -> None:
        pieces, self._pieces = self._pieces, []
        try:
            for piece, moment in pieces:
                for data in self._lines.feed(piece):
                    self._take_event(data, moment)
            for data in self._lines.finish() if self.response is not None else ():
                self._take_event(data, self.end)
        except ModelError as error:
            self.error = self.error or (None if self._stopped else error)

    def _take_event(self, data: bytes, moment: float) -> None:
        if self._stopped or self.error is not None:
            return
        if data == DONE:
            self._stopped = True
            return
        self._first.setdefault("event", moment)
        brought = read_event(self._dialect.parse_event, decode_body(data), self.reply)
        if brought:
            self._first.setdefault(brought, moment)
            self._text_times.append(moment)
        else:
            self._silent_times.append(moment)

    def record(self, name: str, scheduled: float, **extra: Any) -> RequestRecord:
        """Return what happened, with the moments that are known; a failure keeps them too."""
        usage, failure = (self.reply.usage or Usage()).believed(), self.error
        return RequestRecord(
            id=name,
            sent=self.sent or scheduled,
            done=max(self.end, self.sent),
            scheduled=scheduled,
            first_event=self._first.get("event"),
            first_reasoning=self._first.get("reasoning"),
            first_content=self._first.get("content"),
            chunks=tuple(self._text_times),
            silent=tuple(self._silent_times),
            **msgspec.structs.asdict(usage),
            counted_by="chunks" if usage.output_tokens is None else "server",
            failure=None if failure is None else str(failure.detail.get("outcome", failure.kind.value)),
            status=self.status if self.status != 200 else None,
            message=None if failure is None else str(failure)[:300],
            streamed=bool(self._first),
            **extra,
        )


def cancelled() -> ModelError:
    """Return the reason of a request that was in flight when the run was stopped."""
    return ModelError(FailureKind.NETWORK, "stopped by hand while in flight", detail={"outcome": CANCELLED})


class Outcome(msgspec.Struct):
    """One finished request: its record, and the reply when there is one."""

    item: str
    """Id of the item that was asked."""
    round: int
    """How often the item had been asked before: a load longer than its data goes round."""
    record: RequestRecord
    text: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    model: str | None = None

"""A load job in, stamped outcomes out: closed and open loops on one event loop and one monotonic clock."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import perf_counter
from typing import Any, cast

import msgspec
from msgspec import Struct

from ..core.errors import ModelError
from ..core.secret import secrets_of_header
from ..core.text import clean_text
from ..core.types import FailureKind, ImageSent
from ..model.served.connection import Connection, Pool, Target, parse_url, request_head
from ..model.served.dialect import Dialect
from ..model.served.replies import Reply, scrub_reply
from .collect import Collector, Journal, Outcome, cancelled
from .self_check import Watch, WatchReport
from .timeline import RequestRecord

KEY_HEADERS = frozenset({"authorization", "x-api-key", "x-goog-api-key"})
REPLY_MARK = "@@snellen-reply-%d@@"
"""Stands in a later turn's body where the reply to turn N will be put."""


class Item(Struct, frozen=True, omit_defaults=True):
    """One thing to ask, ready for the wire: a body a turn, pictures already encoded."""

    id: str
    turns: tuple[bytes, ...]
    pictures: tuple[tuple[ImageSent, ...], ...] = ()
    """What was sent of the pictures in each turn's body."""
    think_s: float = 0.0
    """Pause between a reply and the next turn."""


class LoadJob(Struct, frozen=True, omit_defaults=True):
    """All that one process needs to make its part of a load; plain data."""

    provider: str
    urls: tuple[str, ...]
    headers: dict[str, str]
    items: tuple[Item, ...]
    moments: tuple[float, ...] = ()
    """Open loop: when each request is due, in seconds from the start."""
    slots: tuple[float, ...] = ()
    """Closed loop: when each slot opens."""
    count: int | None = None
    """Closed loop: how many items to ask; None = until `duration_s`."""
    duration_s: float | None = None
    cap: int | None = None
    """Open loop: at most this many in flight; the wait shows in the scheduled latencies."""
    timeout_s: float = 600.0
    worker: int = 0
    journal: str = ""
    """File for the finished requests while the load goes on; empty: none is kept."""


class LoadResult(Struct):
    """What one process saw."""

    outcomes: list[Outcome]
    started: float
    watch: WatchReport
    interrupted: bool = False


class Generator:
    """Runs one job. `stop()` may be called at any time: what is in flight is recorded as cancelled."""

    def __init__(self, job: LoadJob, dialect: Dialect | None) -> None:
        self.outcomes: list[Outcome] = []
        self.interrupted = False
        self._job = job
        self._dialect = cast("Dialect", dialect)  # None where a subclass asks no server
        self._pool = Pool()
        self._targets = [parse_url(url) for url in job.urls]
        self._cap = asyncio.Semaphore(job.cap) if job.cap else None
        self._flying: dict[Collector, Connection] = {}
        self._pauses: set[asyncio.Future[None]] = set()
        self._taken = 0
        self._start = 0.0
        self._journal = Journal(job.journal)
        keys = [value for name, value in job.headers.items() if name.lower() in KEY_HEADERS]
        self._secrets = [secret for value in keys for secret in secrets_of_header(value)]

    async def run(self, start_at: float | None = None) -> LoadResult:
        """Make the load, wait for what is in flight, and return everything."""
        with suppress(ModelError):  # each request will say so itself, as a typed failure
            await self._open_ahead()
        self._start = perf_counter() if start_at is None else start_at
        watch = Watch()
        async with watch:
            if self._job.slots:
                await asyncio.gather(*(self._slot(offset) for offset in self._job.slots))
            else:
                await self._dispatch()
        self._journal.write()
        self._pool.close()
        await asyncio.sleep(0)  # lets the sockets go
        report = watch.report(self.outcomes, capped=bool(self._job.slots or self._cap))
        return LoadResult(self.outcomes, self._start, report, self.interrupted)

    def stop(self) -> None:
        """Send nothing more and give up what is in flight."""
        self.interrupted = True
        now = perf_counter()
        for pause in list(self._pauses):
            _wake(pause)
        for collector, connection in list(self._flying.items()):
            connection.abort()
            collector.fail(cancelled(), now)

    async def _open_ahead(self) -> None:
        wanted = min(len(self._job.slots) or 8, 2048)
        for target, _ in dict.fromkeys(self._targets):
            await self._pool.open_ahead(target, -(-wanted // len(self._targets)))

    async def _slot(self, offset: float) -> None:
        await self._pause_until(self._start + offset)
        while (number := self._take()) is not None:
            await self._ask(number, perf_counter())

    def _take(self) -> int | None:
        job = self._job
        late = job.duration_s is not None and perf_counter() >= self._start + job.duration_s
        if self.interrupted or late or (job.count is not None and self._taken >= job.count):
            return None
        self._taken += 1
        return self._taken - 1

    async def _dispatch(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        for number, offset in enumerate(self._job.moments):
            due = self._start + offset
            if due > perf_counter():
                await self._pause_until(due)
            if self.interrupted:
                break
            task = asyncio.create_task(self._ask_capped(number, due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def _ask_capped(self, number: int, due: float) -> None:
        if self._cap is None:
            await self._ask(number, due)
            return
        async with self._cap:
            if not self.interrupted:
                await self._ask(number, due)

    async def _ask(self, number: int, due: float) -> None:
        """Ask one item, turn by turn; the first failing turn ends it."""
        item = self._job.items[number % len(self._job.items)]
        target, path = self._targets[number % len(self._targets)]
        replies: list[str] = []
        for turn, body in enumerate(item.turns):
            if turn:
                due = perf_counter() + item.think_s
                await self._pause_until(due)
            if self.interrupted and turn:
                return
            collector = await self._call(target, path, fill_replies(body, replies))
            name = turn_name(item, number // len(self._job.items), turn)
            self._keep(item, number, collector.record(name, due, **self._about(item, turn, target)), collector.reply)
            if collector.error is not None:
                return
            replies.append(collector.reply.text or "")

    async def _call(self, target: Target, path: str, body: bytes) -> Collector:
        # Compressed replies are not asked for: unpacking them would cost time.
        head = request_head("POST", target, path, {"Accept-Encoding": "identity", **self._job.headers})
        collector = Collector(self._dialect)
        try:
            connection = self._pool.idle(target) or await self._pool.connect(target)
            await self._exchange(connection, head, body, collector)
            if is_stale(connection, collector):
                collector = Collector(self._dialect)
                await self._exchange(await self._pool.connect(target), head, body, collector)
        except ModelError as error:
            collector.fail(error, perf_counter())
        collector.read()
        return collector

    async def _exchange(self, connection: Connection, head: bytes, body: bytes, collector: Collector) -> None:
        if self.interrupted:
            connection.abort()
            collector.fail(cancelled(), perf_counter())
            return
        self._flying[collector] = connection
        timer = asyncio.get_running_loop().call_later(self._job.timeout_s, self._expire, connection, collector)
        collector.sent = perf_counter()
        connection.send(head, (body,), collector)
        await collector.done
        timer.cancel()
        del self._flying[collector]

    def _expire(self, connection: Connection, collector: Collector) -> None:
        connection.abort()
        reason = f"no whole answer within {self._job.timeout_s:g} s"
        collector.fail(ModelError(FailureKind.TIMEOUT, reason, retryable=True), perf_counter())

    def _about(self, item: Item, turn: int, target: Target) -> dict[str, Any]:
        """Return what is known of a request beside its moments."""
        pictures = item.pictures[turn] if item.pictures else ()
        return {
            "images": len(pictures),
            "pixels": sum(picture.width * picture.height for picture in pictures),
            "sent_bytes": len(item.turns[turn]),
            "turn": turn,
            "target": f"{target.host}:{target.port}" if len(self._targets) > 1 else "",
            "worker": self._job.worker,
        }

    def _keep(self, item: Item, number: int, record: RequestRecord, reply: Reply) -> None:
        scrub_reply(reply, self._secrets)
        if record.message:
            record = msgspec.structs.replace(record, message=self._scrub(record.message))
        text = clean_text(reply.text or "") if record.ok else None
        thought = clean_text(reply.reasoning) if record.ok and reply.reasoning else None
        rounds = number // len(self._job.items)
        self._journal.note(record)
        self.outcomes.append(Outcome(item.id, rounds, record, text, thought, reply.finish, reply.model))

    def _scrub(self, message: str) -> str:
        """Mask the key where a server's error quotes it."""
        for secret in self._secrets:
            message = secret.scrub(message)
        return message

    async def _pause_until(self, moment: float) -> None:
        delay = moment - perf_counter()
        if delay <= 0 or self.interrupted:
            return
        loop = asyncio.get_running_loop()
        pause: asyncio.Future[None] = loop.create_future()
        self._pauses.add(pause)
        timer = loop.call_later(delay, _wake, pause)
        await pause
        timer.cancel()
        self._pauses.discard(pause)


def _wake(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)


def turn_name(item: Item, rounds: int, turn: int) -> str:
    """Return the id of a request: the item, which round of the data, which turn."""
    return item.id + (f"#{rounds}" if rounds else "") + (f"/{turn}" if len(item.turns) > 1 else "")


def is_stale(connection: Connection, collector: Collector) -> bool:
    """Tell whether a kept connection was closed under the request before any answer: asking again is safe."""
    error = collector.error
    failed = error is not None and error.kind is FailureKind.NETWORK and "outcome" not in error.detail
    return failed and connection.used > 1 and collector.response is not None and not collector.response.begun


def fill_replies(body: bytes, replies: list[str]) -> bytes:
    """Put the replies so far where their marks stand in a later turn's body."""
    for number, reply in enumerate(replies):
        mark = (REPLY_MARK % number).encode()
        body = body.replace(mark, msgspec.json.encode(clean_text(reply))[1:-1])
    return body

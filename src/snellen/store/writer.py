"""Predictions to run.db: one writer thread, group commit, acknowledged after COMMIT."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import astuple

from ..core.clock import wall_time
from ..core.errors import EnvironmentProblem, ModelError, RunMismatch, SnellenError
from ..core.jobs import Item, Step
from ..core.registry import foreign_code
from ..core.tasks import RunHeader
from ..core.text import clean_text
from ..core.types import Prediction, Request, Sample, TrialKey
from .database import BROKEN, GO_ON, Row, damaged, insert_rows, is_intact, open_for_writing, seal, write_problem
from .difference import Data, describe_difference, describe_rows_changed, growth, rows_appended, without_code
from .owner import RunLock
from .picture_ledger import PictureLedger
from .turns import PUT_TURNS, STORED_TURN, StoredTurn, is_turn, row_of_turn, turn_of_row

CONTINUED = "continued_with"
"""With which versions a run was continued, where these are others than it began with."""
GROUP_ROWS = 64
"""At most so many rows a commit: while one half of 128 workers waits for its commit, the other half is served."""
PATIENCE_S = 0.005
"""So long a commit waits for as many rows as the last one had: replies that came together once do so again, and a
commit of 40 rows takes more than half the CPU of one of 128. A row that comes alone is written at once."""

REMEMBERED_SAMPLES = 1_000
"""Variants and repeats of a sample are asked near each other; to remember more would only fill memory."""

STORED = "SELECT body FROM predictions WHERE task = ? AND sample = ? AND variant = ? AND repeat = ? AND failed = 0"
PUT_SAMPLES = "INSERT OR IGNORE INTO samples (task, id, position, body) VALUES {rows}"
PUT_PREDICTIONS = """
INSERT INTO predictions (task, sample, variant, repeat, failed, digest, request, body) VALUES {rows}
ON CONFLICT (task, sample, variant, repeat) DO UPDATE
SET failed = excluded.failed, digest = excluded.digest, request = excluded.request, body = excluded.body
WHERE predictions.failed = 1
"""
PUT_ATTEMPTS = "INSERT INTO attempts (task, sample, variant, repeat, at, kind, status, message, detail) VALUES {rows}"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """Rows that go in together, and who waits for them."""

    sample: Row | None
    prediction: Row | None
    attempt: Row | None
    committed: asyncio.Future[None] | None
    turn: Row | None = None


_encode = msgspec.json.Encoder().encode


class TrialWriter(ABC):
    """Rows to a store through one thread, in groups. `put` returns when the row is on disk.

    A store has `_insert` for a group of rows, and says what it holds already; it calls `_start` when it is open.
    """

    lost = 0
    """So many stored trials could not be read; they count as failed and are asked again."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.folder = folder
        self.path = path
        """The file that is written."""
        self._samples_seen: set[tuple[str, str]] = set()
        self._waiting: deque[Entry] = deque()
        self._group: list[Entry] = []
        self._something = threading.Event()
        self._company = 1
        """So many rows were written together the last time."""
        self._has_turns = False
        """True once a turn was handed over: most runs have none to look for."""
        self._complete = threading.Event()
        self._closing = False
        self._ended: EnvironmentProblem | None = None
        self._thread = threading.Thread(target=self._write_loop, name="snellen-writer", daemon=True)

    def _start(self) -> None:
        """Begin to write; nothing is taken before."""
        self._thread.start()

    @abstractmethod
    def finished_keys(self, task: str) -> set[tuple[str, str, int]]:
        """Return (sample, variant, repeat) of every trial of a task that has a reply."""

    @abstractmethod
    def stored(self, key: TrialKey) -> Prediction | None:
        """Return the stored reply of a finished trial."""

    @abstractmethod
    def stored_turn(self, key: TrialKey, number: int) -> StoredTurn | None:
        """Return a stored turn of a trial, finished or not; None where it is not there, or damaged."""

    @abstractmethod
    def ledger(self) -> PictureLedger:
        """Return what the pictures of all finished trials were when they were sent."""

    @abstractmethod
    def put_meta(self, key: str, value: Any) -> None:
        """Keep a fact about the run; waits for its commit."""

    @abstractmethod
    def meta(self, key: str) -> Any:
        """Return a fact about the run, or None."""

    @abstractmethod
    def _insert(self, group: list[Entry]) -> None:
        """Write a group of rows so that they outlast a loss of power, or raise."""

    @abstractmethod
    def _let_go(self) -> None:
        """Close the file; nothing waits any more."""

    async def put(self, position: int, sample: Sample, request: Request, prediction: Prediction, digest: str) -> None:
        """Store one trial, and when it came; returns after its commit."""
        prediction = msgspec.structs.replace(prediction, at=wall_time())
        await self._enqueue_trial(position, sample, request, prediction, digest)

    async def put_turn(
        self, item: Item, step: Step, asked: tuple[Request, Prediction, str], final: Prediction | None, digest: str
    ) -> None:
        """Store one turn (with the digest of what was asked) and, if it is the last, its trial, in one transaction."""
        self._has_turns = True
        request, reply, own_digest = asked
        turn = row_of_turn(step.number, request, reply, step.looks, own_digest)
        if final is None:
            sample_row = self._sample_row(item.position, item.sample, request.key.task)
            committed = asyncio.get_running_loop().create_future()
            self._enqueue(Entry(sample_row, None, None, committed, turn))
            if self._ended is not None:
                raise self._ended
            await committed
            return
        final = msgspec.structs.replace(final, at=wall_time())
        await self._enqueue_trial(item.position, item.sample, request, final, digest, turn=turn)

    async def put_all(self, trials: Sequence[tuple[int, Sample, Request, Prediction]], digest: str) -> None:
        """Store trials that are all there already; returns after the commit of the last. Cheaper than one by one."""
        await asyncio.gather(*[self._enqueue_trial(*trial, digest) for trial in trials])

    def _enqueue_trial(
        self,
        position: int,
        sample: Sample,
        request: Request,
        prediction: Prediction,
        digest: str,
        *,
        turn: Row | None = None,
    ) -> asyncio.Future[None]:
        """Hand one trial to the writing thread; the future ends with its commit."""
        key = prediction.key
        sample_row = self._sample_row(position, sample, key.task)
        failed = int(prediction.failure is not None)
        body = seal(_encode(prediction), f"{failed}\0{digest}")
        row = (*astuple(key), failed, digest, seal(_encode(request)), body)
        committed = asyncio.get_running_loop().create_future()
        self._enqueue(Entry(sample_row, row, None, committed, turn))
        if self._ended is not None:
            raise self._ended
        return committed

    def _sample_row(self, position: int, sample: Sample, task: str) -> Row | None:
        """Return the row of a sample; None where it was sent a moment ago."""
        if (task, sample.id) in self._samples_seen:
            return None
        if len(self._samples_seen) >= REMEMBERED_SAMPLES:
            self._samples_seen.clear()  # a row sent twice is ignored; remembering only spares the sending
        self._samples_seen.add((task, sample.id))
        return (task, sample.id, position, seal(_encode(sample), f"{task}\0{sample.id}\0{position}"))

    def put_attempt(self, key: TrialKey, error: ModelError) -> None:
        """Note a failed attempt; not waited for."""
        at = wall_time()
        detail = _encode(error.detail) if error.detail else None
        row = (*astuple(key), at, error.kind.value, error.status, clean_text(str(error)), detail)
        self._enqueue(Entry(None, None, row, None))

    def close(self) -> None:
        """Write what is queued and close the file."""
        self._closing = True
        self._something.set()
        self._complete.set()
        self._thread.join()
        self._let_go()

    def _enqueue(self, entry: Entry) -> None:
        self._waiting.append(entry)
        if not self._something.is_set():  # waking a thread costs more than a row: once a group is enough
            self._something.set()
        if len(self._waiting) == self._company:
            self._complete.set()

    def _write_loop(self) -> None:
        try:
            while not self._closing or self._waiting:
                self._something.wait()
                self._something.clear()
                while self._waiting:
                    self._wait_for_company()
                    self._group = [self._waiting.popleft() for _ in range(min(GROUP_ROWS, len(self._waiting)))]
                    self._company = len(self._group)
                    self._commit(self._group)
        finally:  # whatever ended it: nobody may wait for a thread that is gone
            self._ended = EnvironmentProblem(f"{self.path} is closed: {GO_ON}")
            left = [*self._group, *self._waiting]
            _acknowledge([entry.committed for entry in left if entry.committed], self._ended)

    def _wait_for_company(self) -> None:
        self._complete.clear()
        if len(self._waiting) < self._company and not self._closing:
            self._complete.wait(PATIENCE_S)

    def _commit(self, group: list[Entry]) -> None:
        problem: Exception | None = None
        waiting = [entry.committed for entry in group if entry.committed]
        try:
            # A lack of memory, or whatever else: it must not end the thread, or all would wait for ever.
            with foreign_code(f"cannot write {self.path} ({GO_ON}):", EnvironmentProblem):
                self._insert(group)
        except EnvironmentProblem as error:
            problem = error
        _acknowledge(waiting, problem)


class RunWriter(TrialWriter):
    """The one writer of run.db."""

    def __init__(self, folder: Path, header: RunHeader, data: Data | None = None, *, same_code: bool = False) -> None:
        """Open a run; `same_code` (`--same-model`) takes edited plug-ins for those that began it."""
        super().__init__(folder, folder / "run.db")
        self._same_code = same_code
        self._data: Data = data or {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock(folder)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write to {folder}: {error.strerror}") from None
        is_new = not self.path.exists()
        try:
            self._database = open_for_writing(self.path)
            self._write_header(header)
            if not is_new:
                from .damage import fail_unreadable  # in a new file nothing is damaged

                self.lost = fail_unreadable(self._database)
        except (*BROKEN, SnellenError) as error:
            if hasattr(self, "_database"):
                self._database.close()
            self._lock.release()
            raise write_problem(self.path, error) if isinstance(error, BROKEN) else error from None
        self._start()

    def finished_keys(self, task: str) -> set[tuple[str, str, int]]:
        """Return (sample, variant, repeat) of every trial of a task that has a reply."""
        rows = self._database.execute(
            "SELECT sample, variant, repeat FROM predictions WHERE task = ? AND failed = 0", (task,)
        )
        return set(rows)

    def ledger(self) -> PictureLedger:
        """Return what the pictures of all finished trials were when they were sent."""
        rows = self._database.execute("SELECT request, body FROM predictions WHERE failed = 0")
        return PictureLedger(rows, self._began())

    def _began(self) -> float | None:
        """Return when the run was begun; None where its header does not say it."""
        row = self._database.execute("SELECT value FROM meta WHERE key = 'header'").fetchone()
        try:
            return datetime.fromisoformat(msgspec.json.decode(row[0], type=RunHeader).created).timestamp()
        except (ValueError, TypeError, msgspec.DecodeError):
            return None

    def stored(self, key: TrialKey) -> Prediction | None:
        """Return the stored reply of a finished trial."""
        row = self._database.execute(STORED, astuple(key)).fetchone()
        return msgspec.json.decode(row[0], type=Prediction) if row else None

    def stored_turn(self, key: TrialKey, number: int) -> StoredTurn | None:
        """Return a stored turn of a trial; one that is damaged is asked again."""
        row = self._database.execute(STORED_TURN, (*astuple(key), number)).fetchone()
        return turn_of_row(row) if row is not None and is_turn(row) else None

    def put_meta(self, key: str, value: Any) -> None:
        """Keep a fact about the run; waits for its commit."""
        self._put_meta(key, _encode(value))

    def _put_meta(self, key: str, value: bytes) -> None:
        statement = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._database.execute(statement, (key, value.decode()))

    def meta(self, key: str) -> Any:
        """Return a fact about the run, or None."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return msgspec.json.decode(row[0]) if row else None

    def _let_go(self) -> None:
        """Fold the log into the database and free the lock."""
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk: the log itself is complete and readable
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()
        self._lock.release()

    def _write_header(self, header: RunHeader) -> None:
        row = self._database.execute("SELECT value FROM meta WHERE key = 'header'").fetchone()
        if row is None:
            self._put_header(header)
            return
        try:
            stored = msgspec.json.decode(row[0], type=RunHeader)
        except msgspec.DecodeError as error:
            raise EnvironmentProblem(f"{self.folder} was written by another version of Snellen: {error}") from None
        if not is_intact(row[0]):
            raise damaged(self.folder / "run.db", "its header is not what was written")
        config = msgspec.to_builtins(header.config)
        if stored.id == header.id:
            self._keep_reading(stored, header)
        elif grown := growth(stored.config, config, partial(rows_appended, stored, header, self._data)):
            self._grow(stored, header, grown)
        elif self._same_code and without_code(stored.config) == without_code(config):
            self._grow(stored, header, [describe_difference(stored.config, config)])
        else:
            rows = describe_rows_changed(self._stored_samples, stored, header, self._data)
            difference = "; ".join(filter(None, [rows, describe_difference(stored.config, config)]))
            advice = "choose another --name or -o, or repeat the first command"
            if without_code(stored.config) == without_code(config):
                advice = "choose another -o, or --same-model if the edited plug-in asks and answers the same"
            raise RunMismatch(f"{self.folder} holds another configuration: {difference}; {advice}")

    def _stored_samples(self, task: str) -> Iterator[bytes]:
        rows = self._database.execute("SELECT body FROM samples WHERE task = ? ORDER BY position", (task,))
        return (body for (body,) in rows)

    def _keep_reading(self, stored: RunHeader, header: RunHeader) -> None:
        """Take over how replies are read (scorers, protocols): it may differ from the first command; replies do not."""
        later = self.meta(CONTINUED) or []
        if header.versions not in (stored.versions, *(one["versions"] for one in later[-1:])):
            self.put_meta(CONTINUED, [*later, {"at": header.created, "versions": header.versions}])
        if (stored.tasks, stored.protocols) != (header.tasks, header.protocols):
            self._put_header(msgspec.structs.replace(stored, tasks=header.tasks, protocols=header.protocols))

    def _put_header(self, header: RunHeader) -> None:
        self._put_meta("header", seal(_encode(header)))

    def _grow(self, stored: RunHeader, header: RunHeader, grown: list[str]) -> None:
        """Take over a configuration that only asks more, and keep what it was before."""
        step = {"from": stored.id, "to": header.id, "what": grown, "at": header.created, "command": header.command}
        self.put_meta("grown", [*(self.meta("grown") or []), step])
        self._put_header(msgspec.structs.replace(header, created=stored.created, command=stored.command))

    def _insert(self, group: list[Entry]) -> None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            insert_rows(self._database, PUT_SAMPLES, [entry.sample for entry in group if entry.sample])
            if self._has_turns:
                insert_rows(self._database, PUT_TURNS, [entry.turn for entry in group if entry.turn])
            insert_rows(self._database, PUT_PREDICTIONS, [entry.prediction for entry in group if entry.prediction])
            insert_rows(self._database, PUT_ATTEMPTS, [entry.attempt for entry in group if entry.attempt])
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise write_problem(self.folder / "run.db", error) from None
        finally:
            if self._database.in_transaction:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    self._database.execute("ROLLBACK")


def _acknowledge(waiting: list[asyncio.Future[None]], problem: Exception | None) -> None:
    if waiting:
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            waiting[0].get_loop().call_soon_threadsafe(_resolve, waiting, problem)


def _resolve(futures: list[asyncio.Future[None]], problem: Exception | None) -> None:
    for future in futures:
        if future.done():
            continue
        if problem is None:
            future.set_result(None)
        else:
            future.set_exception(problem)

"""Requests to replies given before: one SQLite file in the user's cache folder, by content; successes only."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ..core.answerer import Answerer, place
from ..core.errors import EnvironmentProblem
from ..core.folders import cache_folder
from ..core.ids import canonical_json, sha256_hex
from ..core.types import Image, Prediction, Request, TrialKey, Turn
from .database import BROKEN, Row, connect, insert_rows, is_intact, is_on_network, seal, set_journal
from .owner import is_left_over, own_name
from .part_log import REPLY, WHO, LogLine, LogReading, Place, encode_line, row_at
from .part_progress import file_system_now

SCHEMA = """
CREATE TABLE IF NOT EXISTS replies
(key TEXT PRIMARY KEY, answerer TEXT NOT NULL, created REAL NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS answerers (key TEXT PRIMARY KEY, model TEXT NOT NULL, body BLOB NOT NULL) STRICT;
"""
OF_02 = "responses"
"""The table of 0.2: its replies do not say who gave them, so they answer nothing; `cache prune` forgets them."""
PUT = "INSERT OR REPLACE INTO replies VALUES {rows}"
NOTE = "INSERT OR IGNORE INTO answerers VALUES (?, ?, ?)"
GROUP_ROWS = 256
KNOWN_KEYS = 4_000_000
"""A cache of more replies is asked for every key; to read all of them first would take too long."""
FILTER_BITS = 2**20
"""Of the keys only a bit each is kept: a miss costs no query, and a long run does not grow with every trial."""
BITS_PER_KEY = 8
"""Of what is stored at the beginning; where there are fewer a bit stands for several, which costs a query."""

NOT_IN_KEY = {
    "key.task": "names the trial: one question is the same wherever it stands",
    "key.sample": "names the trial",
    "key.variant": "names the trial: what a variant changes is in the messages, the pictures or the parameters",
    "params.timeout_s": "how long is waited, not what is asked",
    "params.stream": "how the reply travels, not what it says",
    "messages.images.*": "by the hash of what is sent of them; of frames that go as one video also when they are shown",
}
"""Fields of a request that are no part of its key, and why; whatever else a request has is."""
_NOWHERE = ("", "")
_pictures_of = attrgetter("images")


def request_digest(answerer: str, request: Request, image_hashes: Sequence[str]) -> str:
    """Hash who answers (a hash too) and all of the request but `NOT_IN_KEY`; pictures by what is sent of them.

    The repeat is part of the key even at temperature 0: each inference is its own draw. `image_hashes` are those of
    the messages' pictures, then of the baseline's.
    """
    params, messages, likelihood = request.params, request.messages, request.likelihood
    if params.timeout_s is not None or params.stream is not None:
        params = replace(params, timeout_s=None, stream=None)
    if image_hashes or any(map(_pictures_of, messages)):
        messages = _without_places(messages)
        likelihood = replace(likelihood, baseline=_without_places(likelihood.baseline))
    key = TrialKey(*_NOWHERE, repeat=request.key.repeat)
    asked = replace(request, key=key, params=params, messages=messages, likelihood=likelihood)
    return sha256_hex(canonical_json((answerer, image_hashes, asked)))


def _without_places(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return turns whose pictures do not say where they lie; frames of one video keep their moments, which are sent."""
    bare = [replace(turn, images=tuple(map(_bare, turn.images))) if turn.images else turn for turn in turns]
    return tuple(bare)


def _bare(image: Image) -> Image:
    return Image("", frame=image.frame if image.frame is not None and image.frame.joined else None)


OTHERS = """
SELECT answerers.key, answerers.body, COUNT(*), MAX(replies.created)
FROM answerers JOIN replies ON replies.answerer = answerers.key
WHERE answerers.model = ? AND answerers.key != ? GROUP BY answerers.key ORDER BY MAX(replies.created) DESC
"""
BY_MODEL = """
SELECT COALESCE(answerers.model, ''), COUNT(*) FROM replies LEFT JOIN answerers ON answerers.key = replies.answerer
GROUP BY 1 ORDER BY 1
"""


class OtherReplies(NamedTuple):
    """Replies of one who is not asked now, though he has the same name and address."""

    who: Answerer
    replies: int
    last: float


class ResponseCache:
    """Looks replies up by digest. Writes are gathered; losing the last few on a crash costs only a repeat."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = self._open(path)
            self._known = self._load_known()
        except (OSError, *BROKEN) as error:
            advice = "run with --no-cache, or name another folder with SNELLEN_CACHE_DIR"
            raise EnvironmentProblem(f"the response cache {path} cannot be used: {error}; {advice}") from None
        self.reads = True
        self.oldest: float | None = None
        """When the oldest reply was made that was given out."""
        """False: replies are kept and none is given, as while those of this run's own batches are awaited."""
        self.not_kept, self.why_not_kept = 0, ""
        """Replies that could not be written, to be told: whoever relies on the cache would pay for them again."""
        self._pending: list[Row] = []
        self._writing = ThreadPoolExecutor(1, "snellen-cache")

    def _open(self, path: Path) -> sqlite3.Connection:
        database = connect(path)
        set_journal(database, "DELETE" if is_on_network(path) else "WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.executescript(SCHEMA)
        return database

    def _body(self, stored: bytes) -> bytes:
        """Return a reply by what the table has of it: here all of it."""
        return stored

    def get(self, digest: str, key: TrialKey) -> Prediction | None:
        """Return the cached reply as that of trial `key`, marked as cached."""
        if not self.reads:
            return None
        if self._known is not None and not self._known.may_hold(digest):
            return None
        try:
            row = self._database.execute("SELECT body, created FROM replies WHERE key = ?", (digest,)).fetchone()
            body = b"" if row is None else self._body(row[0])
            if row is None or not is_intact(body, digest):
                return None
            prediction = msgspec.json.decode(body, type=Prediction)
        except (*BROKEN, msgspec.DecodeError):
            return None  # damaged, or of another version: asking again costs less than stopping
        if prediction.failure is not None:
            return None
        self.oldest = row[1] if self.oldest is None else min(row[1], self.oldest)
        return replace(prediction, key=key, cached=True)

    def enter(self, who: Answerer) -> list[OtherReplies]:
        """Note who answers now; return what is kept of others of the same name at the same address, the last first."""
        try:
            self._database.execute(NOTE, (who.key, who.model, seal(msgspec.json.encode(who), who.key)))
            rows = self._database.execute(OTHERS, (who.model, who.key)).fetchall() if self._known is not None else []
        except BROKEN:  # a cache that others write just now, or a full disk: nothing is known of others
            return []
        others = []
        for key, body, count, last in rows:
            if is_intact(body, key):
                others.append(OtherReplies(msgspec.json.decode(body, type=Answerer), count, last))
        return [other for other in others if place(other.who.address) == place(who.address)]

    def put(self, digest: str, answerer: str, prediction: Prediction) -> None:
        """Keep a success; a failure is never kept."""
        if prediction.failure is not None or prediction.cached:
            return
        self._pending.append((digest, answerer, time.time(), seal(msgspec.json.encode(prediction), digest)))
        if len(self._pending) >= GROUP_ROWS:
            self._write_pending()

    def flush(self) -> None:
        """Write what is pending."""
        self._write_pending().result()

    def _write_pending(self) -> Future[None]:
        rows, self._pending = self._pending, []
        return self._writing.submit(self._write, rows)

    def _write(self, rows: list[Row]) -> None:
        try:
            insert_rows(self._database, PUT, rows)
        except BROKEN as error:  # a full disk costs the cache, never the run
            self.not_kept, self.why_not_kept = self.not_kept + len(rows), str(error)
            return
        if self._known is not None:
            self._known.mark(row[0] for row in rows)

    def _load_known(self) -> _Known | None:
        """Return a bit for every key, so that a miss costs no query; None when there are too many to read."""
        bounded = "SELECT COUNT(*) FROM (SELECT 1 FROM replies LIMIT ?)"
        count = self._database.execute(bounded, (KNOWN_KEYS + 1,)).fetchone()[0]
        if count > KNOWN_KEYS:
            return None
        known = _Known(max(FILTER_BITS, BITS_PER_KEY * count))
        known.mark(key for (key,) in self._database.execute("SELECT key FROM replies"))
        return known

    def info(self) -> dict[str, Any]:
        """Return path, count, bytes and count by model."""
        models = dict(self._database.execute(BY_MODEL))
        size = self.path.stat().st_size
        counts = {"replies": sum(models.values()), "of_earlier_versions": self._count_02()}
        return {"path": str(self.path), **counts, "bytes": size, "models": models}

    def _count_02(self) -> int:
        """Return how many replies of 0.2 there are: they answer nothing."""
        there = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
        if not self._database.execute(there, (OF_02,)).fetchone()[0]:
            return 0
        return int(self._database.execute(f"SELECT COUNT(*) FROM {OF_02}").fetchone()[0])  # noqa: S608 - our own name

    def prune(self, older_than_s: float, now: float) -> int:
        """Forget replies older than so many seconds; return how many."""
        tables = ("replies", OF_02) if self._count_02() else ("replies",)
        removed = 0
        for table in tables:
            statement = f"DELETE FROM {table} WHERE created < ?"  # noqa: S608 - our own names
            removed += self._database.execute(statement, (now - older_than_s,)).rowcount
        # Where another run reads it just now the space is used again anyway.
        with contextlib.suppress(sqlite3.OperationalError):
            self._database.execute("VACUUM")
        return removed

    def close(self) -> None:
        """Write what is pending and close."""
        self.flush()
        self._writing.shutdown()
        self._database.close()


class _Known:
    """Which keys there may be: a bit for each, found by a hash of this process alone."""

    __slots__ = ("_bits", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._bits = bytearray(-(-size // 8))

    def may_hold(self, digest: str) -> bool:
        place = hash(digest) % self._size
        return bool(self._bits[place >> 3] >> (place & 7) & 1)

    def mark(self, digests: Iterable[str]) -> None:
        for digest in digests:
            place = hash(digest) % self._size
            self._bits[place >> 3] |= 1 << (place & 7)


FORGOTTEN_S = 86_400.0
"""A log of another machine that did not grow for so long is written by nobody."""
IN_A_LOG = b"@"
"""Begins what the index has of a reply: where it stands. A reply itself is JSON."""


class LoggedCache(ResponseCache):
    """A cache whose replies stand in logs; the table is this process's own and holds where they are."""

    def _open(self, path: Path) -> sqlite3.Connection:
        self.folder = path.with_suffix(".d")
        self.folder.mkdir(exist_ok=True)
        self._log: IO[bytes] | None = None
        database = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # a file of its own, gone with it
        database.executescript(SCHEMA)
        if path.exists():  # of a time when all wrote one table
            with contextlib.suppress(*BROKEN), contextlib.closing(connect(path, read_only=True)) as older:
                insert_rows(database, PUT, older.execute("SELECT * FROM replies").fetchall())
                database.executemany(NOTE, older.execute("SELECT * FROM answerers").fetchall())
        for log in self._logs():
            self._take(database, log)
        return database

    def _logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    def _take(self, database: sqlite3.Connection, log: Path) -> None:
        replies: list[Row] = []
        with contextlib.suppress(FileNotFoundError):  # folded into another just now
            for line in LogReading(log):
                if line.kind == REPLY:
                    key, answerer, created, _ = line.row
                    replies.append((key, answerer, created, _where(log, line.offset)))
                elif line.kind == WHO:
                    database.execute(NOTE, line.row)
        insert_rows(database, PUT, replies)

    def _body(self, stored: bytes) -> bytes:
        if not stored.startswith(IN_A_LOG):
            return stored
        offset, _, name = stored[1:].decode().partition(" ")
        try:
            return bytes(row_at(Place(self.folder / name, int(offset)))[-1])
        except (OSError, EnvironmentProblem):
            return b""  # folded or damaged since: asking again costs less than stopping

    def enter(self, who: Answerer) -> list[OtherReplies]:
        """Note who answers now, for others too."""
        known = self._database.execute("SELECT 1 FROM answerers WHERE key = ?", (who.key,)).fetchone()
        if known is None:
            with contextlib.suppress(OSError):
                self._append([encode_line(WHO, (who.key, who.model, seal(msgspec.json.encode(who), who.key)))])
        return super().enter(who)

    def _append(self, lines: list[bytes]) -> list[int]:
        """Write lines to this process's own log; return where each begins."""
        if self._log is None:
            self._log = (self.folder / f"{own_name()}.log").open("xb")
        places, at = [], self._log.tell()
        for line in lines:
            places.append(at)
            at += len(line)
        self._log.write(b"".join(lines))
        self._log.flush()
        return places

    def _write(self, rows: list[Row]) -> None:
        if not rows:
            return
        try:
            places = self._append([encode_line(REPLY, row) for row in rows])
        except OSError as error:
            self.not_kept, self.why_not_kept = self.not_kept + len(rows), str(error)
            return
        log = Path(self._log.name) if self._log else self.folder
        super()._write([(*row[:3], _where(log, at)) for row, at in zip(rows, places, strict=True)])

    def info(self) -> dict[str, Any]:
        """Return folder, count, bytes and count by model."""
        models, logs = dict(self._database.execute(BY_MODEL)), self._logs()
        size = sum(file.stat().st_size for file in (*logs, self.path) if file.exists())
        counts = {"replies": sum(models.values()), "of_earlier_versions": 0, "logs": len(logs)}
        return {"path": str(self.folder), **counts, "bytes": size, "models": models}

    def prune(self, older_than_s: float, now: float) -> int:
        """Fold the logs that nobody writes into one, without replies older than so many seconds; return how many."""
        for left in self.folder.glob("*.new"):  # of a fold that was killed: its sources are all there
            if is_left_over(left.stem):
                left.unlink(missing_ok=True)
        closed = [log for log in self._logs() if self._is_closed(log)]
        removed, spare = 0, self.folder / f"{own_name()}.new"
        with spare.open("xb") as file:
            for line in _lines(closed):
                if line.kind == REPLY and line.row[2] < now - older_than_s:
                    removed += 1
                else:
                    file.write(encode_line(line.kind, line.row))
        if spare.stat().st_size:
            spare.rename(spare.with_suffix(".log"))
        else:
            spare.unlink()
        for log in closed:
            log.unlink(missing_ok=True)
        return removed

    def _is_closed(self, log: Path) -> bool:
        """Tell whether nobody writes a log any more."""
        left = is_left_over(log.stem)
        if left is not None:
            return left
        now = file_system_now(self.folder)
        return now is not None and now - log.stat().st_mtime > FORGOTTEN_S

    def close(self) -> None:
        """Write what is pending and close."""
        super().close()
        if self._log is not None:
            self._log.close()


def _lines(logs: list[Path]) -> Iterator[LogLine]:
    for log in logs:
        yield from LogReading(log)


def _where(log: Path, offset: int) -> bytes:
    return IN_A_LOG + f"{offset} {log.name}".encode()


def open_cache() -> ResponseCache:
    """Return the response cache that all runs share; where locks may not be kept, as logs of one writer each."""
    path = cache_folder() / "responses.db"
    return LoggedCache(path) if is_on_network(path) else ResponseCache(path)

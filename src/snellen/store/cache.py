"""Requests to replies given before: one SQLite file in the user's cache folder, by content; successes only."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import EnvironmentProblem
from ..core.ids import canonical_json, sha256_hex
from ..core.types import Prediction, Request, TrialKey
from .database import Row, connect, insert_rows, is_on_network, set_journal
from .problems import BROKEN
from .seal import is_intact, seal

SCHEMA = """
CREATE TABLE IF NOT EXISTS responses
(key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL NOT NULL, body BLOB NOT NULL) STRICT;
"""
PUT = "INSERT OR REPLACE INTO responses VALUES {rows}"
GROUP_ROWS = 256
KNOWN_KEYS = 4_000_000
"""A cache of more replies is asked for every key; to read all of them first would take too long."""
FILTER_BITS = 2**20
"""Of the keys only a bit each is kept: a miss costs no query, and a long run does not grow with every trial."""
BITS_PER_KEY = 8
"""Of what is stored at the beginning; where there are fewer a bit stands for several, which costs a query."""
_parts_of = attrgetter("parts")


def request_digest(identity: str, request: Request, image_hashes: Sequence[str]) -> str:
    """Hash all that decides the reply: the model (`identity`, a hash too), messages, images, parameters, repeat."""
    messages: list[tuple[Any, ...]] = [(turn.role, turn.text, len(turn.images)) for turn in request.messages]
    if any(map(_parts_of, request.messages)):  # plain messages keep the keys they always had
        messages = [(*message, turn.parts) for message, turn in zip(messages, request.messages, strict=True)]
    params = request.params
    if params.timeout_s is not None or params.stream is not None:  # how it is asked, not what
        params = msgspec.structs.replace(params, timeout_s=None, stream=None)
    # The repeat is part of the key even at temperature 0: each inference is its own draw.
    parts: tuple[Any, ...] = (identity, messages, image_hashes, params)
    parts += (request.choices, request.prefix, request.key.repeat)
    if image_hashes:
        parts += _joined_frames(request)
    if request.choices:
        parts += (request.likelihood.baseline, request.likelihood.with_prompt)
    return sha256_hex(canonical_json(parts))


def _joined_frames(request: Request) -> tuple[Any, ...]:
    """Return which pictures go out as one video: another question than the same frames as pictures."""
    joined = [image.ref for turn in request.messages for image in turn.images if image.frame and image.frame.joined]
    return ("joined", [joined.index(ref) for ref in joined]) if joined else ()


class ResponseCache:
    """Looks replies up by digest. Writes are gathered; losing the last few on a crash costs only a repeat."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = connect(path)
            set_journal(self._database, "DELETE" if is_on_network(path) else "WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(SCHEMA)
            self._known = self._load_known()
        except (OSError, *BROKEN) as error:
            advice = "run with --no-cache, or name another folder with SNELLEN_CACHE_DIR"
            raise EnvironmentProblem(f"the response cache {path} cannot be used: {error}; {advice}") from None
        self.reads = True
        """False: replies are kept and none is given, as while those of this run's own batches are awaited."""
        self.not_kept, self.why_not_kept = 0, ""
        """Replies that could not be written, to be told: whoever relies on the cache would pay for them again."""
        self._pending: list[Row] = []
        self._writing = ThreadPoolExecutor(1, "snellen-cache")

    def get(self, digest: str, key: TrialKey) -> Prediction | None:
        """Return the cached reply as that of trial `key`, marked as cached."""
        if not self.reads:
            return None
        if self._known is not None and not self._known.may_hold(digest):
            return None
        try:
            row = self._database.execute("SELECT body FROM responses WHERE key = ?", (digest,)).fetchone()
            if row is None or not is_intact(row[0], digest):
                return None
            prediction = msgspec.json.decode(row[0], type=Prediction)
        except (*BROKEN, msgspec.DecodeError):
            return None  # damaged, or of another version: asking again costs less than stopping
        if prediction.failure is not None:
            return None
        return msgspec.structs.replace(prediction, key=key, cached=True)

    def put(self, digest: str, model: str, prediction: Prediction) -> None:
        """Keep a success; a failure is never kept."""
        if prediction.failure is not None or prediction.cached:
            return
        self._pending.append((digest, model, time.time(), seal(msgspec.json.encode(prediction), digest)))
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
        bounded = "SELECT COUNT(*) FROM (SELECT 1 FROM responses LIMIT ?)"
        count = self._database.execute(bounded, (KNOWN_KEYS + 1,)).fetchone()[0]
        if count > KNOWN_KEYS:
            return None
        known = _Known(max(FILTER_BITS, BITS_PER_KEY * count))
        known.mark(key for (key,) in self._database.execute("SELECT key FROM responses"))
        return known

    def info(self) -> dict[str, Any]:
        """Return path, count, bytes and count by model."""
        models = dict(self._database.execute("SELECT model, COUNT(*) FROM responses GROUP BY model ORDER BY model"))
        size = self.path.stat().st_size
        return {"path": str(self.path), "replies": sum(models.values()), "bytes": size, "models": models}

    def prune(self, older_than_s: float, now: float) -> int:
        """Forget replies older than so many seconds; return how many."""
        removed = self._database.execute("DELETE FROM responses WHERE created < ?", (now - older_than_s,)).rowcount
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

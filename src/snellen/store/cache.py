"""The response cache: one content-addressed SQLite file in the user's cache folder; successes only."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import EnvironmentProblem
from ..core.ids import canonical_json, sha256_hex
from ..core.types import Prediction, Request, TrialKey
from .database import connect

SCHEMA = """
CREATE TABLE IF NOT EXISTS responses (key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL NOT NULL, body BLOB NOT NULL) STRICT;
"""
PUT = "INSERT OR REPLACE INTO responses VALUES {rows}"
GROUP_ROWS = 256
KNOWN_KEYS = 200_000


def request_digest(identity: str, request: Request, image_hashes: Sequence[str]) -> str:
    """Hash all that decides the reply: the model (`identity`, itself a hash), messages, images by content, parameters, repeat."""
    messages = [(turn.role, turn.text, len(turn.images)) for turn in request.messages]
    params = request.params
    if params.timeout_s is not None or params.stream is not None:  # how it is asked, not what
        params = msgspec.structs.replace(params, timeout_s=None, stream=None)
    # The repeat is part of the key even at temperature 0: each inference is its own draw.
    parts: tuple[Any, ...] = (
        identity,
        messages,
        image_hashes,
        params,
        request.choices,
        request.prefix,
        request.key.repeat,
    )
    if request.choices:
        parts += (request.likelihood.baseline, request.likelihood.with_prompt)
    return sha256_hex(canonical_json(parts))


class ResponseCache:
    """Looks replies up by digest. Writes are gathered; losing the last few on a crash costs only a repeat."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = connect(path)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(SCHEMA)
            self._known = self._load_known()
        except (OSError, sqlite3.Error) as error:
            raise EnvironmentProblem(
                f"the response cache {path} cannot be used: {error}; delete it, or run with --no-cache"
            ) from None
        self._pending: list[tuple[str, str, float, bytes]] = []
        self._writing = ThreadPoolExecutor(1, "snellen-cache")

    def get(self, digest: str, key: TrialKey) -> Prediction | None:
        """Return the cached reply as that of trial `key`, marked as cached."""
        if self._known is not None and digest not in self._known:
            return None
        try:
            row = self._database.execute("SELECT body FROM responses WHERE key = ?", (digest,)).fetchone()
            found = msgspec.json.decode(row[0], type=Prediction) if row is not None else None
        except (
            sqlite3.Error,
            msgspec.DecodeError,
        ):  # damaged, or of another version: asking again costs less than stopping
            return None
        if found is None or found.failure is not None:
            return None
        return msgspec.structs.replace(found, key=key, cached=True)

    def put(self, digest: str, model: str, prediction: Prediction) -> None:
        """Keep a success; a failure is never kept."""
        if prediction.failure is not None or prediction.cached:
            return
        self._pending.append((digest, model, time.time(), msgspec.json.encode(prediction)))
        if len(self._pending) >= GROUP_ROWS:
            rows, self._pending = self._pending, []
            self._writing.submit(self._write, rows)

    def flush(self) -> None:
        """Write what is pending."""
        rows, self._pending = self._pending, []
        self._writing.submit(self._write, rows).result()

    def _write(self, rows: list[tuple[str, str, float, bytes]]) -> None:
        if not rows:
            return
        marks = ",".join(["(?, ?, ?, ?)"] * len(rows))
        with contextlib.suppress(sqlite3.Error):  # a full disk costs the cache, never the run
            self._database.execute(PUT.format(rows=marks), [value for row in rows for value in row])
            if self._known is not None:
                self._known.update(row[0] for row in rows)

    def _load_known(self) -> set[str] | None:
        """Return all keys, so that a miss costs no query; None when there are too many to hold."""
        count = self._database.execute(
            "SELECT COUNT(*) FROM (SELECT 1 FROM responses LIMIT ?)", (KNOWN_KEYS + 1,)
        ).fetchone()[0]
        if count > KNOWN_KEYS:
            return None
        return {row[0] for row in self._database.execute("SELECT key FROM responses")}

    def info(self) -> dict[str, Any]:
        """Return path, count, bytes and count by model."""
        models = dict(self._database.execute("SELECT model, COUNT(*) FROM responses GROUP BY model ORDER BY model"))
        return {
            "path": str(self.path),
            "replies": sum(models.values()),
            "bytes": self.path.stat().st_size,
            "models": models,
        }

    def prune(self, older_than_s: float, now: float) -> int:
        """Forget replies older than so many seconds; return how many."""
        removed = self._database.execute("DELETE FROM responses WHERE created < ?", (now - older_than_s,)).rowcount
        with contextlib.suppress(
            sqlite3.OperationalError
        ):  # another run reads it just now: the space is used again anyway
            self._database.execute("VACUUM")
        return removed

    def close(self) -> None:
        """Write what is pending and close."""
        self.flush()
        self._writing.shutdown()
        self._database.close()

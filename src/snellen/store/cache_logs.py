"""The response cache on a network file system: a log for each process that writes, all of them read at the beginning.

Nobody writes a file that another process wrote, so no locks are needed: `responses.d/HOST-PID-….log`, lines as those of
the parts of a run. What others write meanwhile is known to the next process. `snellen cache prune` folds logs that
nobody writes any more into one.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from ..core.answerer import Answerer
from ..core.errors import EnvironmentProblem
from .cache import BY_MODEL, NOTE, PUT, SCHEMA, OtherReplies, ResponseCache
from .database import Row, connect, insert_rows
from .owner import is_left_over, own_name
from .part_log import REPLY, WHO, LogLine, LogReading, Place, encode_line, row_at
from .part_progress import file_system_now
from .problems import BROKEN
from .seal import seal

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

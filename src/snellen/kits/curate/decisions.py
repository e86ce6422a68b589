"""What people decide to append-only rows in review.db, and the state that follows: nothing is ever overwritten."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import EnvironmentProblem
from ...stats.agreement import Agreement
from ...store.database import connect

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mode TEXT NOT NULL, item TEXT NOT NULL, reviewer TEXT NOT NULL, at TEXT NOT NULL,
    action TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', body BLOB,
    undoes INTEGER, ticket TEXT NOT NULL UNIQUE
);
{refuse_changes}
{refuse_deletes}
"""
REFUSE = (
    "CREATE TRIGGER IF NOT EXISTS never_{0} BEFORE {1} ON decisions "
    "BEGIN SELECT RAISE(ABORT, 'decisions are never {0}'); END;"
)
SCHEMA = SCHEMA.format(
    refuse_changes=REFUSE.format("changed", "UPDATE"), refuse_deletes=REFUSE.format("deleted", "DELETE")
)
MODES: dict[str, tuple[str, ...]] = {
    "review": ("accept", "edit", "reject", "skip"),
    "settle": ("accept", "edit", "reject"),
    "audit": ("valid", "invalid"),
    "answer": ("answer",),
}
"""Mode -> actions: the review, settling disagreements, the audit of a sample, people answering as a model would."""
UNDO = "undo"
COLUMNS = ("mode", "item", "reviewer", "at", "action", "reason", "body", "undoes", "ticket")
INSERT = f"INSERT INTO decisions ({', '.join(COLUMNS)}) VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608


class Decision(Struct, frozen=True, omit_defaults=True):
    """One row. `ticket` is drawn by the page, so that a save sent twice is one decision."""

    mode: str
    item: str
    reviewer: str
    at: str
    action: str
    ticket: str
    reason: str = ""
    body: Any = None
    undoes: int | None = None
    id: int = 0


class Ledger:
    """The one writer of review.db: every row is on disk before it is acknowledged; readers see the state in memory."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._database = connect(path)
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise EnvironmentProblem(f"{path} was written by a newer Snellen: upgrade with pip install -U snellen")
            self._database.executescript(SCHEMA)
            self._database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.Error as error:
            raise EnvironmentProblem(f"cannot open {path}: {error}") from None
        self.current: dict[tuple[str, str], dict[str, Decision]] = {}
        """(mode, item) -> reviewer -> the decision that holds."""
        self.stacks: dict[tuple[str, str], list[Decision]] = {}
        """(mode, reviewer) -> decisions that can be undone, oldest first."""
        self.agreement = Agreement()
        self.count = 0
        for decision in self.rows():
            self.take(decision)

    def rows(self) -> Iterator[Decision]:
        """Yield every row ever written, in order."""
        for row in self._database.execute(f"SELECT {', '.join(COLUMNS)}, id FROM decisions ORDER BY id"):  # noqa: S608
            fields = dict(zip((*COLUMNS, "id"), row, strict=True))
            yield Decision(**fields | {"body": msgspec.json.decode(fields["body"]) if fields["body"] else None})

    def write(self, decision: Decision) -> tuple[Decision, bool]:
        """Put one row on disk (any thread may) and return it with its number; False if its ticket was there already."""
        body = msgspec.json.encode(decision.body) if decision.body is not None else None
        values = msgspec.structs.asdict(decision) | {"body": body}
        with self._lock:
            try:
                cursor = self._database.execute(INSERT, [values[name] for name in COLUMNS])
            except sqlite3.IntegrityError:
                row = self._database.execute("SELECT id FROM decisions WHERE ticket = ?", (decision.ticket,)).fetchone()
                return msgspec.structs.replace(decision, id=row[0]), False
            except sqlite3.Error as error:
                raise EnvironmentProblem(f"the decision was not saved: {error}") from None
            return msgspec.structs.replace(decision, id=int(cursor.lastrowid or 0)), True

    def undo_of(self, mode: str, reviewer: str, at: str, ticket: str) -> Decision | None:
        """Return the row that would take back this reviewer's last decision, or None."""
        stack = self.stacks.get((mode, reviewer))
        return Decision(mode, stack[-1].item, reviewer, at, UNDO, ticket, undoes=stack[-1].id) if stack else None

    def close(self) -> None:
        """Fold the log into the database."""
        with self._lock:
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()

    def take(self, decision: Decision) -> None:
        """Let one row change the state; always called from one and the same thread."""
        self.count += 1
        held = self.current.setdefault((decision.mode, decision.item), {})
        stack = self.stacks.setdefault((decision.mode, decision.reviewer), [])
        before = self._labels(held)
        if decision.action == UNDO:
            stack[:] = [earlier for earlier in stack if earlier.id != decision.undoes]
            earlier = [other for other in stack if other.item == decision.item]
            held.pop(decision.reviewer, None)
            if earlier:
                held[decision.reviewer] = earlier[-1]
        else:
            stack.append(decision)
            held[decision.reviewer] = decision
        if decision.mode == "review":
            self.agreement.change(before, self._labels(held))

    @staticmethod
    def _labels(held: dict[str, Decision]) -> dict[str, str]:
        """Return accept or reject by reviewer: an edited item is one that may stay."""
        actions = {name: decision.action for name, decision in held.items() if decision.action != "skip"}
        return {name: "reject" if action == "reject" else "accept" for name, action in actions.items()}

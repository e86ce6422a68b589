"""What people decide to append-only rows in review.db, and the state that follows: nothing is ever overwritten."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from ...core.errors import DataError, EnvironmentProblem
from ...core.ids import content_hash
from ...stats.agreement import Agreement
from ...store.database import connect
from .gates import check_schema, check_unique
from .records import Draft, Gated, Question

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


EDIT = "edit"


class Status(StrEnum):
    """Where an item stands."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DISPUTED = "disputed"


class Outcome(NamedTuple):
    """One item's status, its text as it now is, and whose decisions made it so."""

    status: Status
    draft: Draft
    decisions: Sequence[Decision]


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reviewer may change."""

    steps: tuple[Question, ...]
    inference: Question


def apply_edit(draft: Draft, body: Any) -> Draft:
    """Return the draft as edited; an edit that breaks the item's form is refused with the reason."""
    try:
        edit = msgspec.convert(body, Edit)
    except msgspec.ValidationError as error:
        raise DataError(f"the edit does not fit: {error}") from None
    edited = structs.replace(draft, steps=edit.steps, inference=edit.inference)
    for check in (check_schema, check_unique):
        for finding in check(edited):
            raise DataError(f"the edit does not fit: {finding.reason}")
    return edited


def outcome_of(gated: Gated, ledger: Ledger, due: int = 1) -> Outcome:
    """Return what became of one item once its `due` reviews are in; until then it is open, whoever liked it.

    Reviewers who differ make a dispute. Somebody else settles it, or they come to agree: nobody settles their own.
    """
    draft = gated.draft
    reviews = [review for review in _held(ledger, "review", draft.id) if review.action != "skip"]
    if len(reviews) < max(1, due):
        return Outcome(Status.OPEN, _as_shown(draft, reviews), reviews)
    parties = {review.reviewer for review in reviews}
    said = _held(ledger, "settle", draft.id)
    others = [decision for decision in said if decision.reviewer not in parties]
    if others:
        settled = max(others, key=lambda decision: decision.id)
        return Outcome(*_verdict(settled, draft, reviews), [*reviews, settled])
    latest = sorted((*reviews, *said), key=lambda decision: decision.id)
    positions = {decision.reviewer: decision for decision in latest}
    verdicts = [_verdict(decision, draft, reviews) for decision in positions.values()]
    if any(verdict != verdicts[0] for verdict in verdicts):
        return Outcome(Status.DISPUTED, draft, [*reviews, *said])
    return Outcome(*verdicts[0], [*reviews, *said])


def _held(ledger: Ledger, mode: str, item: str) -> list[Decision]:
    return list(ledger.current.get((mode, item), {}).values())


def _verdict(decision: Decision, draft: Draft, reviews: Sequence[Decision]) -> tuple[Status, Draft]:
    """Return what one decision wants: away with the item, or this very text of it."""
    if decision.action == "reject":
        return Status.REJECTED, draft
    if decision.action == EDIT:
        return Status.ACCEPTED, apply_edit(draft, decision.body)
    if decision.mode != "review":
        return Status.ACCEPTED, draft
    return Status.ACCEPTED, _seen(decision, draft, reviews)


def text_mark(draft: Draft) -> str:
    """Return a short name of an item's text: the page sends it back with an acceptance."""
    return content_hash([draft.steps, draft.inference], 16)


def _seen(decision: Decision, draft: Draft, reviews: Sequence[Decision]) -> Draft:
    """Return the text an acceptance was about: the one whose mark it bears, else the last that was edited before it."""
    mark = decision.body.get("seen") if isinstance(decision.body, dict) else None
    edited = (apply_edit(draft, review.body) for review in reviews if review.action == EDIT)
    known = next((text for text in (draft, *edited) if text_mark(text) == mark), None) if mark else None
    return known or _as_shown(draft, [review for review in reviews if review.id < decision.id])


def _as_shown(draft: Draft, reviews: Sequence[Decision]) -> Draft:
    """Return the text that the next reviewer sees: as it was last edited. Who accepts it accepts that."""
    edits = [review for review in reviews if review.action == EDIT]
    return apply_edit(draft, max(edits, key=lambda edit: edit.id).body) if edits else draft

"""Decisions to what becomes of each item: accepted as it stands or as edited, rejected, disputed, or still open."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from ..core.errors import DataError
from .decisions import Decision, Ledger
from .gates_item import check_schema, check_unique
from .records import Draft, Gated, Question

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


def outcome_of(gated: Gated, ledger: Ledger) -> Outcome:
    """Return what became of one item: a settled dispute counts for more than the reviews it settles."""
    draft = gated.draft
    reviews = [review for review in _held(ledger, "review", draft.id) if review.action != "skip"]
    settled = max(_held(ledger, "settle", draft.id), key=lambda decision: decision.id, default=None)
    if settled is not None:
        return Outcome(_status(settled), _text(draft, [settled]), [*reviews, settled])
    if not reviews:
        return Outcome(Status.OPEN, draft, [])
    verdicts = {_status(review) for review in reviews}
    edits = {msgspec.json.encode(review.body) for review in reviews if review.action == EDIT}
    if len(verdicts) > 1 or len(edits) > 1:
        return Outcome(Status.DISPUTED, draft, reviews)
    return Outcome(verdicts.pop(), _text(draft, reviews), reviews)


def _held(ledger: Ledger, mode: str, item: str) -> list[Decision]:
    return list(ledger.current.get((mode, item), {}).values())


def _status(decision: Decision) -> Status:
    return Status.REJECTED if decision.action == "reject" else Status.ACCEPTED


def _text(draft: Draft, decisions: Sequence[Decision]) -> Draft:
    edited = next((decision for decision in decisions if decision.action == EDIT), None)
    return apply_edit(draft, edited.body) if edited is not None else draft

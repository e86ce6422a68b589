"""Decisions to what becomes of each item: accepted as it stands or as edited, rejected, disputed, or still open."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from ...core.errors import DataError
from ...core.ids import content_hash
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

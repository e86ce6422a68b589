"""The reviewers' desk: who gets which item next, in each mode, and what the page may see of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import UsageError, did_you_mean
from ...core.ids import derive_seed, rng
from .decisions import MODES, UNDO, Decision, Ledger, Outcome, Status, apply_edit, outcome_of, text_mark
from .records import Draft, Gated


def assign(items: Sequence[str], reviewers: Sequence[str], overlap: float, seed: int) -> dict[str, list[str]]:
    """Return reviewer -> items in the order to review; `overlap` is the share of items that two people judge.

    Shared items are spread over all pairs and stand first in both lists, so that agreement is known early.
    """
    if not reviewers:
        raise UsageError("name at least one reviewer: --reviewer NAME")
    if not 0.0 <= overlap <= 1.0:
        raise UsageError(f"--overlap {overlap} must lie between 0 and 1")
    shuffled = sorted(items)
    rng(seed, "assignment").shuffle(shuffled)
    people = sorted(set(reviewers))
    shared = round(overlap * len(shuffled)) if len(people) > 1 else 0
    lists: dict[str, list[str]] = {name: [] for name in people}
    for place, item in enumerate(shuffled):
        first = place % len(people)
        lists[people[first]].append(item)
        if place < shared:
            step = 1 + (place // len(people)) % (len(people) - 1)
            lists[people[(first + step) % len(people)]].append(item)
    return lists


REASONS = (
    "more than one right answer",
    "the right answer is wrong",
    "not to be seen in the picture",
    "the chain does not lead there",
    "answerable without the picture",
    "offensive or private",
)


class ReviewSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How the review is organised; kept in review.json so that a restart goes on as before."""

    reviewers: tuple[str, ...]
    overlap: float = 0.2
    seed: int = 0
    audit: int = 100
    """Accepted items looked at once more, to say how many are valid."""
    ceiling: int = 50
    """Accepted items that people answer as a model would."""


class Desk:
    """Hands out items and takes decisions. Reads are from memory; every decision is on disk before `decide` returns."""

    def __init__(self, items: Sequence[Gated], ledger: Ledger, settings: ReviewSettings) -> None:
        self.items = {gated.draft.id: gated for gated in items}
        self.ledger = ledger
        self.settings = settings
        self.queues = assign(list(self.items), settings.reviewers, settings.overlap, settings.seed)
        self._places = {name: {item: place for place, item in enumerate(queue)} for name, queue in self.queues.items()}
        self._due = Counter(item for queue in self.queues.values() for item in queue)
        """Item -> how many reviews it awaits."""
        self._cursor = dict.fromkeys(self.queues, 0)
        self._orders: dict[str, list[str]] = {}
        """Mode -> all items in the order in which they would be drawn as its sample."""
        self._status: dict[str, Status] = {}
        self._by_status: dict[Status, dict[str, None]] = {status: {} for status in Status}
        for gated in self.items.values():
            self._note(gated)

    def decide(self, decision: Decision) -> Decision:
        """Check, store and take in one decision; returns it with its number."""
        self.check(decision)
        stored, fresh = self.ledger.write(decision)
        if fresh:
            self.take(stored)
        return stored

    def check(self, decision: Decision) -> None:
        """Refuse a decision that does not fit, by name."""
        gated = self._item(decision.item)
        if decision.action not in MODES.get(decision.mode, ()):
            hint = did_you_mean(decision.mode, MODES)
            raise UsageError(f"no action {decision.action!r} in mode {decision.mode!r}{hint}")
        if decision.action == "reject" and not decision.reason.strip():
            raise UsageError("a rejection needs a reason")
        if decision.action == "edit":
            apply_edit(gated.draft, decision.body)
        if decision.action == "answer":
            check_answer(self.outcome(decision.item).draft, decision.body)

    def take(self, stored: Decision) -> None:
        """Let a stored decision change the state and the queues."""
        self.ledger.take(stored)
        self._note(self._item(stored.item))
        if stored.action == UNDO:
            place = self._places.get(stored.reviewer, {}).get(stored.item, 0)
            self._cursor[stored.reviewer] = min(self._cursor.get(stored.reviewer, 0), place)

    def outcome(self, item: str) -> Outcome:
        """Return where an item stands."""
        return outcome_of(self._item(item), self.ledger, self._due[item])

    def next_item(self, mode: str, reviewer: str, after: str = "") -> str | None:
        """Return the next item for a reviewer, or None when the queue is done; skipped ones come back at the end."""
        if mode == "review":
            return self._next_review(reviewer, after)
        if mode == "settle":
            return next((item for item in self.queue(mode) if self._awaited(item, reviewer) and item != after), None)
        open_items = (item for item in self.queue(mode) if not self._has(mode, item, reviewer) and item != after)
        return next((item for item in open_items if not self._knows(item, reviewer)), None)

    def queue(self, mode: str) -> list[str]:
        """Return the items of a mode other than the review itself."""
        if mode == "settle":
            return list(self._by_status[Status.DISPUTED])
        size = self.settings.audit if mode == "audit" else self.settings.ceiling
        if mode not in self._orders:
            self._orders[mode] = sorted(self.items, key=lambda item: derive_seed(self.settings.seed, mode, item))
        return list(islice((item for item in self._orders[mode] if self._status[item] is Status.ACCEPTED), size))

    def show(self, item: str, mode: str, reviewer: str) -> dict[str, Any]:
        """Return what the page may know: in the mode `answer` neither the right candidates nor the annotation."""
        gated, (status, draft, decisions) = self._item(item), self.outcome(item)
        hidden = {"right": None} if mode == "answer" else {}
        own = self.ledger.current.get((mode, item), {}).get(reviewer)
        questions = [{"name": name, **msgspec.to_builtins(question)} | hidden for name, question in draft.questions()]
        shown: dict[str, Any] = {"id": item, "status": status.value, "questions": questions, "mark": text_mark(draft)}
        shown["own"] = own.action if own else None
        if not hidden:
            shown |= {"clue": draft.source.clue, "inference": draft.source.inference, "provenance": draft.provenance}
            shown["findings"] = [msgspec.to_builtins(finding) for finding in gated.findings]
        if mode in ("settle", "audit"):
            names = ("mode", "reviewer", "action", "reason", "body")
            shown["decisions"] = [{name: getattr(decision, name) for name in names} for decision in decisions]
            shown["party"] = self._has("review", item, reviewer)
        return shown

    def state(self, reviewer: str) -> dict[str, Any]:
        """Return progress and agreement as they are now."""
        agreement = self.ledger.agreement
        queue = self.queues.get(reviewer, [])
        return {
            "reviewer": reviewer,
            "items": len(self.items),
            "assigned": len(queue),
            "decided": sum(1 for _ in self._decided(reviewer)),
            "counts": {status.value: len(self._by_status[status]) for status in Status},
            "alpha": agreement.alpha(),
            "observed": agreement.observed,
            "shared": agreement.items,
            "kappas": [{"pair": pair, "kappa": kappa, "n": n} for pair, (kappa, n) in agreement.kappas().items()],
        }

    def _decided(self, reviewer: str) -> Iterable[Decision]:
        held = {decision.item: decision for decision in self.ledger.stacks.get(("review", reviewer), [])}
        return (decision for decision in held.values() if decision.action != "skip")

    def _next_review(self, reviewer: str, after: str) -> str | None:
        queue = self.queues.get(reviewer, [])
        place = self._cursor.get(reviewer, 0)
        while place < len(queue) and self._has("review", queue[place], reviewer):
            place += 1
        if reviewer in self._cursor:
            self._cursor[reviewer] = place
        if place < len(queue):
            return queue[place] if queue[place] != after or place + 1 == len(queue) else queue[place + 1]
        return self._next_skipped(reviewer, after)

    def _next_skipped(self, reviewer: str, after: str) -> str | None:
        """Return what was put off, once the queue is empty."""
        decided = [decision.item for decision in self.ledger.stacks.get(("review", reviewer), [])]
        skipped = [item for item in decided if self._skipped(item, reviewer)]
        return next((item for item in skipped if item != after), skipped[0] if skipped else None)

    def _skipped(self, item: str, reviewer: str) -> bool:
        held = self.ledger.current.get(("review", item), {}).get(reviewer)
        return held is not None and held.action == "skip"

    def _awaited(self, item: str, reviewer: str) -> bool:
        """Tell whether a dispute waits for this person: not while the others have not answered what was said last."""
        said = self.ledger.current.get(("settle", item), {})
        own = said.get(reviewer)
        held = (*said.values(), *self.ledger.current.get(("review", item), {}).values())
        return own is None or any(decision.id > own.id for decision in held)

    def _knows(self, item: str, reviewer: str) -> bool:
        """Tell whether somebody else should audit or answer an item: who reviewed it knows it already."""
        return len(self.queues) > 1 and self._has("review", item, reviewer)

    def _has(self, mode: str, item: str, reviewer: str) -> bool:
        return reviewer in self.ledger.current.get((mode, item), {})

    def _note(self, gated: Gated) -> None:
        """Keep the lists by status right after a decision."""
        name = gated.draft.id
        status = self.outcome(name).status
        before = self._status.get(name)
        if before is not status:
            if before is not None:
                self._by_status[before].pop(name, None)
            self._by_status[status][name] = None
            self._status[name] = status

    def _item(self, item: str) -> Gated:
        if item not in self.items:
            raise UsageError(f"no item {item!r}")
        return self.items[item]


def check_answer(draft: Draft, body: Any) -> None:
    """Refuse an answer that does not name one candidate for every question."""
    places = body.get("places") if isinstance(body, dict) else None
    sizes = [len(question.candidates) for _, question in draft.questions()]
    if not isinstance(places, list) or len(places) != len(sizes):
        raise UsageError(f"an answer names one candidate for each of {len(sizes)} questions")
    if not all(isinstance(place, int) and 0 <= place < size for place, size in zip(places, sizes, strict=True)):
        raise UsageError("an answer names a candidate that is not there")

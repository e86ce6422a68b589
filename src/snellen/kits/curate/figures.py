"""A finished review to the figures of its data card: outcomes, agreement, the audit, the human ceiling."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from ...core.types import Estimate
from ...scoring.aggregates.consistency import chains_from_items, consistency
from ...stats.intervals import wilson
from .decisions import Ledger
from .desk import Desk
from .outcome import Status
from .records import Draft


def agreement_figures(ledger: Ledger) -> dict[str, Any]:
    """Return how much reviewers agree on items that several of them judged."""
    agreement = ledger.agreement
    kappas = agreement.kappas().items()
    return {
        "items_with_several_reviewers": agreement.items,
        "unanimous_share": agreement.observed,
        "krippendorff_alpha": agreement.alpha(),
        "cohen_kappa": [{"reviewers": list(pair), "kappa": kappa, "items": count} for pair, (kappa, count) in kappas],
    }


def people_figures(ledger: Ledger) -> dict[str, dict[str, int]]:
    """Return mode -> who decided -> on how many items; who only skipped, or took everything back, decided nothing."""
    counts: dict[str, Counter[str]] = {}
    for (mode, _), held in sorted(ledger.current.items()):
        named = (name for name, decision in held.items() if decision.action != "skip")
        counts.setdefault(mode, Counter()).update(named)
    return {mode: dict(sorted(people.items())) for mode, people in counts.items() if people}


def audit_figures(desk: Desk) -> dict[str, Any] | None:
    """Return the share of audited items that are valid, with its 95 % Wilson interval.

    An item counts once, invalid if anybody says so.
    """
    audited = (desk.ledger.current.get(("audit", item), {}) for item in desk.queue("audit"))
    verdicts = [all(decision.action == "valid" for decision in held.values()) for held in audited if held]
    if not verdicts:
        return None
    share = sum(verdicts) / len(verdicts)
    low, high = wilson(share, len(verdicts))
    return {"audited": len(verdicts), "valid": sum(verdicts), "share": share, "ci95": [low, high]}


def ceiling_figures(desk: Desk) -> dict[str, Any] | None:
    """Return what people score who answer the questions as a model would: Rh, Rcot, Ro, Cf, Cb."""
    truth, given, people = [], [], set()
    for item in desk.queue("answer"):
        for name, decision in desk.ledger.current.get(("answer", item), {}).items():
            places = decision.body["places"]
            truth.append(_right(desk.outcome(item).draft))
            given.append({"inference": places[-1], "chain": places[:-1]})
            people.add(name)
    if not truth:
        return None
    metrics: dict[str, Estimate] = consistency(chains_from_items(truth, given))
    return {"answers": len(truth), "people": len(people), "metrics": msgspec.to_builtins(metrics)}


def _right(draft: Draft) -> dict[str, Any]:
    return {"inference": draft.inference.right, "chain": [step.right for step in draft.steps]}


def audit_sentence(figures: dict[str, Any] | None) -> str:
    """Return the audit as one reads it: 97 % valid, 95 % CI 91 % to 99 %."""
    if figures is None:
        return "not audited"
    low, high = figures["ci95"]
    return f"{figures['share']:.0%} valid, 95 % CI {low:.0%} to {high:.0%} ({figures['valid']} of {figures['audited']})"


def outcome_counts(desk: Desk) -> dict[str, int]:
    """Return how many items stand where."""
    counts = Counter(desk.outcome(item).status for item in desk.items)
    return {status.value: counts[status] for status in Status}

"""Gates that judge a set of items together: duplicates, and whether looks or blind judges beat chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from ..scoring.aggregates.blind_learned import Choice, learned_credit
from ..scoring.aggregates.blind_rules import RULES, credit
from ..stats.intervals import estimate_mean
from .records import INFERENCE, Draft, Finding, Question
from .replies import alike

SURFACE_RULES = ("no-period", "period", "capital", "odd-one-out", "shortest", "longest")
BLIND_RULES = ("no-period", "shortest", "longest", "majority")
"""What a text-only solver would try first; the looks are tested again after they were levelled."""
LEARNED = "learned"
ROLES = (INFERENCE, "step")

Credits = dict[str, list[NDArray[np.float64]]]
"""Per role, for every item the chances of its questions."""


class BlindTest(Struct, frozen=True):
    """One way to answer without the picture, on one kind of question."""

    judge: str
    role: str
    accuracy: float
    chance: float
    low: float
    """Lower end of the 95 % interval, clustered by item."""
    questions: int
    passed: bool


def find_duplicates(drafts: Sequence[Draft]) -> dict[str, list[Finding]]:
    """Name every item that repeats an earlier one: the same region and inference, or the same texts throughout."""
    seen: dict[tuple[str, ...], str] = {}
    findings: dict[str, list[Finding]] = {}
    for draft in drafts:
        region = (draft.source.url or draft.source.image, str(draft.source.box), alike(draft.inference.answer))
        asked = ((question.question, *sorted(question.candidates)) for _, question in draft.questions())
        texts = ("texts", *(alike(text) for group in asked for text in group))
        for key in (region, texts):
            first = seen.setdefault(key, draft.id)
            if first != draft.id:
                findings[draft.id] = [Finding("duplicates", "fail", f"repeats item {first}")]
    return findings


def rule_credits(drafts: Sequence[Draft], rule: str) -> Credits:
    """Return what a rule of the surface would score on every question."""
    preference = RULES[rule]
    asked: dict[str, list[tuple[Question, ...]]] = {"step": [draft.steps for draft in drafts]}
    asked[INFERENCE] = [(draft.inference,) for draft in drafts]
    return {
        role: [np.array([credit(one.candidates, one.right, preference) for one in group]) for group in groups]
        for role, groups in asked.items()
    }


def learned_credits(drafts: Sequence[Draft]) -> Credits:
    """Return what a judge that learns from the other items would score on every question."""
    if len(drafts) < 2:
        return {INFERENCE: [], "step": []}
    places = range(len(drafts))
    inference = learned_credit([Choice(*structs.astuple(draft.inference)) for draft in drafts], places)
    steps = [(Choice(*structs.astuple(step)), place) for place, draft in enumerate(drafts) for step in draft.steps]
    found = learned_credit([step for step, _ in steps], [place for _, place in steps])
    cuts = np.cumsum([len(draft.steps) for draft in drafts])[:-1]
    return {INFERENCE: [inference[i : i + 1] for i in places], "step": np.split(found, cuts)}


def compare_to_chance(judge: str, drafts: Sequence[Draft], chances: Credits, margin: float) -> Iterator[BlindTest]:
    """Yield one test a role: it fails when the judge is surely above chance by more than the margin."""
    for role in ROLES:
        groups = chances.get(role) or []
        if not groups:
            continue
        values = np.concatenate(groups)
        clusters = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        chance = chance_of(drafts, role)
        estimate = estimate_mean(values, clusters)
        low = estimate.ci95[0] if estimate.ci95 else 0.0
        yield BlindTest(judge, role, float(values.mean()), chance, low, len(values), low <= chance + margin)


def chance_of(drafts: Sequence[Draft], role: str) -> float:
    """Return the mean chance of a blind guess."""
    asked = ((draft.inference,) if role == INFERENCE else draft.steps for draft in drafts)
    sizes = [len(question.candidates) for questions in asked for question in questions]
    return float(np.mean([1.0 / size for size in sizes])) if sizes else 0.0


def reply_credits(replies: Mapping[str, Mapping[str, Sequence[float]]], drafts: Sequence[Draft]) -> Credits:
    """Return the replies of a text-only model (item -> role -> right or wrong); an item not asked counts as chance."""
    scored: Credits = {role: [] for role in ROLES}
    for draft in drafts:
        known = replies.get(draft.id, {})
        scored[INFERENCE].append(np.array(known.get(INFERENCE) or [1.0 / len(draft.inference.candidates)]))
        scored["step"].append(np.array(known.get("step") or [1.0 / len(step.candidates) for step in draft.steps]))
    return scored


def trim(drafts: Sequence[Draft], chances: Credits, margin: float, most: float) -> set[str]:
    """Return the items to set aside so that a judge falls to chance plus margin; none if that is a share above `most`.

    Items go by how surely the judge answers them, those it answers best first.
    """
    gone: set[int] = set()
    for role in ROLES:
        groups = chances.get(role) or []
        sums, sizes = np.array([group.sum() for group in groups]), np.array([len(group) for group in groups])
        bar = chance_of(drafts, role) + margin
        excess = sums - bar * sizes
        total = float(excess.sum())
        for place in np.argsort(-excess, kind="stable"):
            if total <= 0.0:
                break
            gone.add(int(place))
            total -= float(excess[place])
    return {drafts[place].id for place in gone} if len(gone) <= most * len(drafts) else set()

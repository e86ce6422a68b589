"""Judged replies of one question to a preference: the best against the worst, or why there is none. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...core.ids import rng
from ...core.types import Request, Sample
from .chains import Chain

TIED, CLOSE, CONTRADICTORY = "tied", "too close", "contradictory"
FEW, SAME = "fewer than two judged replies", "all replies are the same"


class JudgedReply(Struct, frozen=True):
    """One sampled reply with its points, or why it has none."""

    text: str
    points: float | None = None
    reason: str = ""


class JudgedSample(Struct, frozen=True):
    """All sampled replies to one question."""

    sample: Sample
    request: Request
    replies: tuple[JudgedReply, ...]
    dropped: str = ""
    """Why the judge's verdicts on the whole say nothing, where they do not (a ranking in a circle)."""

    @property
    def judged(self) -> list[JudgedReply]:
        """Return the replies that have points."""
        return [reply for reply in self.replies if reply.points is not None]

    @property
    def facts(self) -> tuple[str, ...]:
        """Return what a right rationale states, where the data says so."""
        return tuple(self.sample.meta.get("facts") or ())


class PreferenceCounts(Struct, frozen=True):
    """What became of the sampled questions; the parts add up to the whole."""

    questions: int
    pairs: int
    anchors: int
    dropped: dict[str, int]
    replies: int
    replies_failed: int
    replies_unjudged: int


def choose_pair(judged: JudgedSample, least_gap: float) -> Chain | str:
    """Return the best reply against the worst, or why there is no such pair."""
    reason = _no_pair(judged, least_gap)
    if reason:
        return reason
    order = sorted(judged.judged, key=lambda reply: reply.points or 0.0)
    return _pair(judged, order[-1].text, order[0].text)


def _no_pair(judged: JudgedSample, least_gap: float) -> str:
    if judged.dropped:
        return judged.dropped
    replies = judged.judged
    if len(replies) < 2:
        return FEW
    if len({reply.text for reply in replies}) == 1:
        return SAME
    points = [reply.points or 0.0 for reply in replies]
    gap = max(points) - min(points)
    if gap == 0:
        return TIED
    return CLOSE if gap < least_gap else ""


def control_chains(judged: JudgedSample, least_gap: float) -> Iterator[Chain]:
    """Yield every reply of a question that has good and bad ones, marked as above or below their mean."""
    if _no_pair(judged, least_gap):
        return
    points = [reply.points or 0.0 for reply in judged.judged]
    mean = sum(points) / len(points)
    for number, reply in enumerate(judged.judged):
        value = reply.points or 0.0
        if value != mean:
            name = f"{judged.sample.id}.{number}"
            yield Chain(name, judged.request.messages, reply.text, good=value > mean)


def anchor_pair(judged: JudgedSample, seed: int) -> Chain | None:
    """Return a right short answer against another option, for questions that are answered without a rationale.

    Preferences on rationales alone unlearn short answers; these hold them in place.
    """
    sample, request = judged.sample, judged.request
    shown = request.shown or sample.options
    if judged.facts or not sample.answers or len(shown) < 2:
        return None
    right = next((reply.text for reply in judged.judged if reply.points), None)
    others = [text for text in shown if text not in sample.answers]
    if right is None or not others:
        return None
    other = rng(seed, sample.id, "anchor").choice(others)
    wrong = _with_option(right, request, sample.answers[0], other)
    return None if wrong == right else _pair(judged, right, wrong)


def _with_option(reply: str, request: Request, right: str, other: str) -> str:
    """Return the reply with another option in place of the right one, its mark too."""
    changed = re.sub(re.escape(right), lambda _: other, reply, flags=re.IGNORECASE)
    if request.marks:
        marks = {request.marks[request.shown.index(text)] for text in (right,)}
        new = request.marks[request.shown.index(other)]
        for mark in marks:
            changed = re.sub(rf"(?<!\w){re.escape(mark)}(?=[.):]|$)", lambda _: new, changed)
    return changed


def _pair(judged: JudgedSample, better: str, worse: str) -> Chain:
    sample, request = judged.sample, judged.request
    shown = request.shown or sample.options
    return Chain(sample.id, request.messages, better, worse, sample.answers, shown, judged.facts)


def rank_pairs(count: int, verdicts: Sequence[tuple[int, int, int | None]]) -> tuple[list[float | None], str]:
    """Return net wins of each reply by (first, second, winner or None), and why they give no ranking, if they do not.

    The best must have beaten the worst themselves: a ranking that goes in a circle says nothing.
    """
    wins = [0.0] * count
    beaten: set[tuple[int, int]] = set()
    for first, second, winner in verdicts:
        if winner is None:
            continue
        loser = second if winner == first else first
        wins[winner] += 1
        wins[loser] -= 1
        beaten.add((winner, loser))
    if not beaten:
        return [None] * count, TIED
    best, worst = max(range(count), key=wins.__getitem__), min(range(count), key=wins.__getitem__)
    reason = "" if (best, worst) in beaten and not _circle(count, beaten) else CONTRADICTORY
    return list(wins), reason


def _circle(count: int, beaten: set[tuple[int, int]]) -> bool:
    """Tell whether some replies beat each other in a circle: no order of all of them holds every verdict."""
    left = set(range(count))
    while left:
        free = {one for one in left if not any((other, one) in beaten for other in left)}
        if not free:
            return True
        left -= free
    return False

"""A question that names two alternatives ("is it red or blue?") to the one that is not the answer."""

from __future__ import annotations

import re

from .answer_kinds import opposite_of
from .distractors import normalise

MAX_WORDS = 4
_OR = re.compile(r",?\s+or\s+", re.IGNORECASE)
_END = re.compile(r"[?.!]+\s*$")
_ARTICLES = ("a", "an", "the", "to", "on", "in", "at")


def other_alternative(question: str, answer: str) -> str | None:
    """Return the alternative that a question offers beside the answer, as it words it; None if it offers no two."""
    parts = _OR.split(_END.sub("", question.strip()))
    if len(parts) != 2:
        return None
    left, right = parts[0].split(), parts[1].split()
    said = answer.split()
    place = _find(said, right[: MAX_WORDS + 2])
    if place is not None:
        return _as_said(_mirrored(left, right[:place], len(said)), answer)
    place = _find(said, left[-MAX_WORDS - 2 :])
    if place is not None and _ends_with(left, said):
        lead = left[: len(left) - len(said)]
        return _as_said(_following(right, lead, len(said)), answer)
    return None


def _find(said: list[str], words: list[str]) -> int | None:
    """Return where `said` stands in `words`, whatever its case."""
    wanted = [normalise(word) for word in said]
    forms = [normalise(word) for word in words]
    return next((at for at in range(len(forms) - len(wanted) + 1) if forms[at : at + len(wanted)] == wanted), None)


def _ends_with(words: list[str], said: list[str]) -> bool:
    """Tell whether the answer ends the first alternative, a few words of which may follow ("on the left of …")."""
    return _find(said, words[-len(said) :]) is not None


def _mirrored(left: list[str], lead: list[str], length: int) -> list[str]:
    """Return the first alternative where the second is the answer after `lead` ("the", "to the")."""
    forms, wanted = [word.casefold() for word in left], [word.casefold() for word in lead]
    if wanted:
        for at in range(len(forms) - len(wanted) - 1, -1, -1):
            if forms[at : at + len(wanted)] == wanted and len(forms) - at - len(wanted) <= MAX_WORDS:
                return left[at + len(wanted) :]
    return left[-length:]


def _following(right: list[str], lead: list[str], length: int) -> list[str]:
    """Return the second alternative: without the words that led the first, and no longer than it where more follows."""
    start = 0
    while start < len(right) - 1 and right[start].casefold() in _ARTICLES:
        start += 1
    rest = right[start:]
    return rest if len(rest) <= max(length, 2) else rest[:length]


def _as_said(words: list[str], answer: str) -> str | None:
    """Return the alternative, if it is another thing than the answer; opposites are the surest."""
    while len(words) > 1 and words[0].casefold() in _ARTICLES:
        words = words[1:]
    text = " ".join(words).strip(" ,;")
    known = opposite_of(answer)
    if known and normalise(known) in normalise(text):
        return known
    return text if text and normalise(text) != normalise(answer) else None

"""What a reply says beside an answer: that it sees no picture, and how sure it is."""

from __future__ import annotations

from .word_lists import LazyPattern

EDGE = 600
"""Characters at the beginning of a reply in which it says so."""
_UNSEEN = LazyPattern(r"<unseen.says>")
_STEMS = ("confid", "certain", "sure", "probab", "sicher", "confian", "fidu", "信", "увер", "확신", "신뢰", "把握")
_STATED = LazyPattern(
    r"(?:confidence|confident|certainty|certain|sure|probability|sicherheit|konfidenz|confiance|confianza|confiança|"
    r"fiducia|置信度|信心|确信度|確信度|自信度|把握|уверенность|확신도|신뢰도)"
    r"(?:\s(?:level|score|in (?:my|this) answer|of (?:my|this) answer|is))?[\s:：=*_\"'（(是为為は約约~≈-]{0,8}"
    r"(?:(?P<percent>\d{1,3}(?:[.,]\d{1,2})?)\s?[%％]|(?P<ten>\d{1,2}(?:\.\d)?)\s?/\s?10(?!\d)|(?P<share>[01](?:[.,]\d{1,4})?)(?![\d%/]))"
    r"|(?P<before>\d{1,3}(?:[.,]\d{1,2})?)\s?[%％]\s(?:confident|certain|sure|confidence|sicher)"
)


def says_unseen(reply: str) -> bool:
    """Tell whether a reply says that it has or sees no picture; for replies from which no answer was read.

    Example:
        >>> from snellen.extract.said_beside import says_unseen
        >>> says_unseen("I'm sorry, but no image was provided."), says_unseen("There is no dog.")
        (True, False)
    """
    return _UNSEEN.search(reply[:EDGE].lower().replace("’", "'")) is not None


def stated_confidence(reply: str) -> float | None:
    """Return how sure a reply says it is, from 0 to 1, the last time it says so; None where it does not.

    Example:
        >>> from snellen.extract.said_beside import stated_confidence
        >>> stated_confidence("Answer: B. Confidence: 85%")
        0.85
    """
    low = reply.lower()
    for stem in _STEMS:  # a generator costs more, and every reply comes by here
        if stem in low:
            break
    else:
        return None
    found = None
    for match in _STATED.finditer(low):
        found = match
    if found is None:
        return None
    told = found.groupdict()
    percent = told["percent"] or told["before"]
    if percent is not None:
        value = float(percent.replace(",", ".")) / 100.0
    else:
        value = float(told["ten"]) / 10.0 if told["ten"] is not None else float(told["share"].replace(",", "."))
    return value if 0.0 <= value <= 1.0 else None

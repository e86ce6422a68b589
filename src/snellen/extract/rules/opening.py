"""Option texts that a reply names to the one with which it opens, if what follows takes nothing back."""

from __future__ import annotations

from collections.abc import Sequence

from ..cue_words import CORRECTION
from ..polarity import Mention
from ..word_lists import END, START, LazyPattern

_STATES = LazyPattern(
    rf"{START}(?:is|are|was|were)(?: (?:clearly|actually|indeed|located|found|situated|painted|made|called))?"
    r"(?: (?:by|in|at|as))?(?: an?| the)?\s[*_\"'(]*\Z"
)
EARLIER = LazyPattern(r"(?<!\w)(?:<conclusions.first_impression>)(?!\w)")
_SENTENCE = LazyPattern(r"[.!](?=\s)|\n|[。।]")
_FEW = 12
"""So little may follow an option in its sentence for it to be what the sentence ends with."""
_MARK = 3
"""No more than a label stands before an option that its sentence begins with."""
_DASHED = LazyPattern(r"[*_\"']*\s[–—]\s")
_OPENED_BY = LazyPattern(
    rf"{START}(?:<options.takes_back>){END}|n't|\?|(?<!\w)(?:step|first|given|question|compare|option|choice)(?!\w)"
)
_CLAUSE_HEAD = LazyPattern(
    rf"(?:[.,;:!。，；、।]|\n|{START}(?:<conclusions.clause_lead>){END}|[a-z]\)|[-–—•])[\s*_\"'(]*"
    rf"(?:(?:<conclusions.subject_lead>){END}\s?)*[*_\"'(]*\Z"
)
_CLAUSE = LazyPattern(r"[.;!](?=\s)|\n|。")
_AS_SHOWN = LazyPattern(
    r"[*_\"']*(?:\s[a-z]{3,12})?\s(?:is|are|was) (?:clearly )?(?:the (?!opposite|reverse)[^.;,\n]{1,60}|being )"
    r"(?:<conclusions.shown>)(?!\w)"
)
"""After an option that opens the reply: it is called what the picture shows."""
TURNED = LazyPattern(r"(?<!\w)(?:<doubt.contrast>|though)(?!\w)")
FULL_STOPS = frozenset(".!。")
HEADS = LazyPattern(r"(?:[.;!]\s|\n)[\s*_>-]*\Z")


def is_plain(mention: Mention) -> bool:
    """Whether an option stands alone, and is neither asked for nor tried."""
    return mention.alone and not mention.asked and not mention.tentative


def stated_first(low: str, pool: list[Mention]) -> Mention | None:
    """Return the option that the first clause states, if what follows takes nothing back and states no other."""
    first = pool[0] if pool else None
    if first is None or not is_plain(first):
        return None
    others = [mention for mention in pool if mention.index != first.index]
    if not others or not _fills_first_clause(low, first, others) or _taken_back(low):
        return None
    ways = (_is_stated, _is_bare, _answers_first, _is_shown)
    return first if any(way(low, first, others) for way in ways) else None


def _is_stated(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether it is said right before it that something is it."""
    return _STATES.search(low, 0, first.start) is not None


def _is_shown(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether the reply opens with it and calls it what is shown; each other one then heads its clause."""
    if low[: first.start].strip(" *_\"'\n") or _AS_SHOWN.match(low, first.end) is None:
        return False
    return all(_heads_clause(low, mention, first.end) for mention in others)


def alone_first(low: str, pool: list[Mention]) -> Mention | None:
    """Return the option that is the first sentence, if the next one names none and later ones head their clauses.

    `Deposition. Frost forms from vapour. Sublimation is the reverse, condensation gives droplets.`
    """
    first = pool[0] if pool else None
    if first is None or not is_plain(first) or not _is_first_sentence(low, first):
        return None
    others = [mention for mention in pool if mention.index != first.index]
    return first if others and not _taken_back(low) and _told_later(low, first, others) else None


def _told_later(low: str, first: Mention, others: Sequence[Mention]) -> bool:
    """Whether a sentence without options follows, and each other option then heads its clause and is not affirmed."""
    following = _SENTENCE.search(low, first.end + 4)
    if following is None or others[0].start < following.start():
        return False
    return all(not mention.affirmed and _heads_clause(low, mention, first.end) for mention in others)


def _is_first_sentence(low: str, first: Mention) -> bool:
    """Whether nothing stands before an option, and a full stop right after it."""
    return not low[: first.start].strip(" *_\"'\n") and low[first.end :].lstrip("*_\"'")[:1] in FULL_STOPS


def _answers_first(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether the first sentence ends with an option or begins with it and a dash, and later ones head their clauses.

    `The rash looks like psoriasis. Eczema would …, tinea has …` answers first and then goes through the others.
    """
    stop, lead = _SENTENCE.search(low, first.end), low[: first.start].strip(" *_\"'#>-\n")
    if (stop is None and not low.startswith(";", first.end)) or _OPENED_BY.search(lead):
        return False
    dashed = _DASHED.match(low, first.end) is not None
    if len(lead.encode()) > _MARK:
        ends = stop is not None and stop.start() - first.end <= _FEW
        said = ends or low.startswith((",", ":", ";"), first.end) or dashed
    else:
        said = dashed and not _is_listed(low, first, others)
    return said and all(_heads_clause(low, mention, first.end) for mention in others)


def _is_listed(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether something stands before the first option, or another one begins a line."""
    if low[: first.start].strip(" *_\"'"):
        return True
    return any("\n" in low[other.start - 6 : other.start] for other in others)


def _heads_clause(low: str, mention: Mention, begin: int) -> bool:
    """Whether an option is what its clause speaks of, or one of several that are."""
    before = low[max(begin, mention.start - 24) : mention.start]
    return mention.joined or mention.denied or _CLAUSE_HEAD.search(before) is not None


def _fills_first_clause(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether an option stands in the first clause, no other one with it, and no other one is affirmed later."""
    stop = _CLAUSE.search(low, first.end)
    if stop is None or _CLAUSE.search(low, 0, first.start):
        return False
    return not any(mention.start < stop.start() or mention.affirmed for mention in others)


def _taken_back(low: str) -> bool:
    return any(pattern.search(low) for pattern in (TURNED, EARLIER, CORRECTION))


def _is_bare(low: str, first: Mention, others: list[Mention]) -> bool:
    """Whether the first sentence is the option alone.

    `Blue. The red part …` says blue; `Solar: 20. Wind: 35.` goes through all of them.
    """
    if low[first.end :].lstrip("*_\"'")[:1] not in FULL_STOPS or low[: first.start].strip(" *_\"'"):
        return False
    return not any(HEADS.search(low, max(0, other.start - 6), other.start) for other in others)

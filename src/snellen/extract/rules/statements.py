"""Options that call each of two statements true or false, and a reply that judges both, to the option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..cue_words import CORRECTION, UNDECIDED
from ..extraction import Extraction
from ..label_mentions import label_mentions
from ..option_set import OptionSet, Reply
from ..word_lists import END, START, LazyPattern

_VERDICT = re.compile(r"(?<!\w)(true|false)(?!\w)")
_BOTH = LazyPattern(
    rf"{START}both (?:(?:of )?(?:the |these |them )?(?:<verdicts.claim>)s? )?are (?:<verdicts.surely>)*"
    rf"(?:(?P<good>true|<verdicts.holds>)|(?P<bad>false|<verdicts.fails>)){END}"
)
_ONE = LazyPattern(
    rf"{START}(?:<verdicts.claim>) (?P<which>1|2|i|ii|one|two)[*_]*,? (?:is|must be) (?:<verdicts.surely>)*"
    rf"(?:(?P<good>true|<verdicts.holds>)|(?P<bad>false|<verdicts.fails>)){END}"
)
_FARTHEST = 4000
_FIRST = frozenset({"1", "i", "one"})
Pair = tuple[bool, bool]


def statement_pairs(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply says of two statements whether they hold, together or one by one, and one option says the same."""
    pairs = _pairs(options)
    if not pairs or UNDECIDED.search(reply.low) or CORRECTION.search(reply.low):
        return None
    begin = max(0, len(reply.low) - _FARTHEST)
    both = list(_BOTH.finditer(reply.low, begin))
    found = both or list(_ONE.finditer(reply.low, begin))
    verdict = _together(both) if both else _one_by_one(found)
    if verdict not in pairs or any(label.sure for label in label_mentions(options, reply)):
        return None
    return options.pick_at(reply, pairs.index(verdict), "statement_pairs", found[0].start(), found[-1].end())


@lru_cache(maxsize=1024)
def _pairs(options: OptionSet) -> Sequence[Pair]:
    """Return what each text says of two statements; nothing unless each says something else of both."""
    texts = options.texts.plain
    found = [_VERDICT.findall(text) for text in texts]
    if any(len(verdicts) != 2 for verdicts in found) or not all(
        re.search(r"statement|assertion|\bi\b|1", t) for t in texts
    ):
        return ()
    pairs = [(first == "true", second == "true") for first, second in found]
    return pairs if len(set(pairs)) == len(pairs) else ()


def _together(found: Sequence[re.Match[str]]) -> Pair | None:
    said = {match.group("good") is not None for match in found}
    return (said.pop(),) * 2 if len(said) == 1 else None


def _one_by_one(found: Sequence[re.Match[str]]) -> Pair | None:
    """Return what is said of the first and of the second; None unless each is judged, and always alike."""
    first = {match.group("good") is not None for match in found if match.group("which") in _FIRST}
    second = {match.group("good") is not None for match in found if match.group("which") not in _FIRST}
    return (first.pop(), second.pop()) if len(first) == len(second) == 1 else None

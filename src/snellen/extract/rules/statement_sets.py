"""Options that are sets of counted statements (`I only`, `II and III`), and a reply that judges them, to the option."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ..cue_words import CORRECTION, UNDECIDED
from ..extraction import NOT_OFFERED, Extraction
from ..label_mentions import label_mentions
from ..option_set import OptionSet, Reply
from ..word_lists import END, START, LazyPattern

_COUNTED = re.compile(r"iv|v|i{1,3}|[1-5]|[①-⑤]")
_SET = re.compile(r"(?:iv|v|i{1,3}|[1-5]|[①-⑤]|and|only|both|statements?|just|&|和|[\s,、.])+")
_NAME = r"(?:iv|v|i{1,3}|[1-5]|[①-⑤])"
_LISTED = rf"{_NAME}(?:(?:\s?[,&]\s?(?:and\s)?|\sand\s){_NAME}){{0,4}}+"
_JUDGED = LazyPattern(
    rf"{START}(?P<named>{_LISTED})[*_)]*"
    r"(?:\s(?:is|are|was|were|must be|seems?)\s(?:both\s|all\s)?(?:<verdicts.surely>)*|\s?[:–—(-]\s?)[*_]*"
    rf"(?:(?P<bad>not (?:true|correct|right)|false|<verdicts.fails>)|(?P<good>true|<verdicts.holds>)){END}"
    rf"|{START}only (?:<verdicts.claim>)?s?\s?(?P<only>{_LISTED})[*_)]*"
    rf"\s(?:is|are|holds?)(?!\s(?:not|false|wrong)){END}"
    rf"|(?<!not ){START}all (?:two |three |four |five |of the |the )?(?:<verdicts.claim>)s (?:are|hold){END}"
    r"(?!\s(?:not|false|wrong|incorrect))"
)
_FARTHEST = 4000


def statement_sets(options: OptionSet, reply: Reply) -> Extraction | None:
    """The reply judges each of the statements that the options count, or says which alone hold: one option says so."""
    sets = _sets(options)
    if not sets or UNDECIDED.search(reply.low) or CORRECTION.search(reply.low):
        return None
    found = list(_JUDGED.finditer(reply.low, max(0, len(reply.low) - _FARTHEST)))
    holding = _holding(found, frozenset().union(*sets)) if found else None
    if holding is None or any(label.sure for label in label_mentions(options, reply)):
        return None
    if holding not in sets:
        return Extraction(None, "statement_sets", NOT_OFFERED)
    return options.pick_at(reply, sets.index(holding), "statement_sets", found[0].start(), found[-1].end())


@lru_cache(maxsize=1024)
def _sets(options: OptionSet) -> Sequence[frozenset[str]]:
    """Return the statements that each text names; nothing unless each names other ones, and one names several."""
    texts = options.texts.plain
    if not all(map(_SET.fullmatch, texts)):
        return ()
    sets = [frozenset(_COUNTED.findall(text)) for text in texts]
    apart = len(set(sets)) == len(sets) and all(sets) and max(map(len, sets), default=0) > 1
    # Numbers alone may be anything else; two of them each, or `only`, or Roman ones are statements.
    counted = any("i" in text or "only" in text for text in texts) or min(map(len, sets), default=0) > 1
    return sets if apart and counted else ()


def _holding(found: Sequence[re.Match[str]], known: frozenset[str]) -> frozenset[str] | None:
    """Return the statements that are said to hold; None unless each is judged, and none in two ways."""
    whole = {said for match in found for said in _said_whole(match, known)}
    if whole:
        return whole.pop() if len(whole) == 1 else None
    judged = [
        (name, match.group("good") is not None) for match in found for name in _COUNTED.findall(match.group("named"))
    ]
    verdicts = dict(judged)
    if len(set(judged)) > len(verdicts) or verdicts.keys() != known:
        return None
    return frozenset(name for name, holds in verdicts.items() if holds)


def _said_whole(match: re.Match[str], known: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield the set that a sentence says at once: `only II holds`, `all three statements are true`."""
    if match.group("only"):
        yield frozenset(_COUNTED.findall(match.group("only")))
    elif match.group("named") is None:
        yield known

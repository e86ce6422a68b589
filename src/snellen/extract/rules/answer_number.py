"""The numbers of a reply to the one it answers with, and the rule by which it is that one; LAST is no commitment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..cue_words import CORRECTION
from ..numbers import Number
from ..word_lists import LazyPattern
from .structured import answer_field

LAST = "last"
"""The rule by which one of several numbers is returned with nothing that says it is the answer."""
_TAIL_MARKER = LazyPattern(
    r"(?:<conclusions.open_cue>)\s?(?:<conclusions.open_copula>|:|=|：)\s{0,3}[:*\s]*", re.IGNORECASE
)
_REFERENCE = LazyPattern(r"(?<!\w)(?:<numbers.reference>)\s?(?:no\.?\s|#)?[(\[]?\Z", re.IGNORECASE)
"""Before a number that only says which figure, step or question is meant."""
_DIRECT = LazyPattern(r"[\s*_`\"'($\\{:=~≈-]*(?:(?:<numbers.about>)\s)*[*_$\"'(\\{]*", re.IGNORECASE)
"""Between a cue and a number that it announces."""
_GOES_ON = LazyPattern(
    r"[\s*_$\"')]*(?:(?:<numbers.goes_on>)(?!\w)|[–~+×·÷*-]\s?\d|\?|[或到至～、十百千万萬亿億兆만억천백])",
    re.IGNORECASE,
)
"""After a number that is not the whole answer: `5 or 6`, `5-7`, `5?`, `one half`."""
_MOST = 60
_MULTIPLIES = frozenset("十百千万萬亿億兆만억천백")
_STOP = re.compile(r"[.!?;](?=\s|\Z)|\n(?=\s*\S)|[。；！？]")
_EQUALS = re.compile(r"[\d)%]\s?\}?\s?[=≈]\s?[*_$\\{(]*\Z")
"""Before the result of a sum."""
_SUM = re.compile(r"(?:[\s\d.,+*/×·÷%()=≈$²³^{}-]|\\[a-z]+|(?<![A-Za-z])[A-Za-z]{1,3}(?![A-Za-z])){1,80}")
"""Figures, signs, LaTeX and units of up to three letters."""


def answering(body: str, numbers: Sequence[Number]) -> tuple[Number, str]:
    """Choose among the numbers of a reply, and say by which rule."""
    field = answer_field(body)
    inside = [number for number in numbers if field and field[0] <= number.start and number.end <= field[1]]
    if len(inside) == 1:
        return inside[0], "structured"
    told = _without_references(body, numbers) if len(numbers) <= _MOST else numbers
    after = max((match.end() for match in _TAIL_MARKER.finditer(body)), default=-1)
    cued = [number for number in told if number.start >= after >= 0]
    if cued:
        return _announced(body, after, cued)
    if len(told) == 1:
        return told[0], LAST if body[told[0].end : told[0].end + 1] in _MULTIPLIES else "only"
    return told[-1], "result" if _is_result(body, told[-1]) and not body[told[-1].end :].strip(" .!*_$\n}\\]") else LAST


def _without_references(body: str, numbers: Sequence[Number]) -> Sequence[Number]:
    return [one for one in numbers if not _REFERENCE.search(body, max(0, one.start - 16), one.start)] or numbers


def _is_result(body: str, number: Number) -> bool:
    return _EQUALS.search(body, max(0, number.start - 8), number.start) is not None


def _announced(body: str, after: int, cued: Sequence[Number]) -> tuple[Number, str]:
    """Return the number that a cue announces: the result of its sum, the one right after it, or the only one there."""
    stop = _STOP.search(body, cued[0].end)
    there = [number for number in cued if number.start < (stop.start() if stop else len(body))]
    results = [number for number in there if _is_result(body, number)]
    direct = _DIRECT.fullmatch(body, after, there[0].start) is not None
    if results and direct and _leads_to(body, there[0], results[-1]):
        chosen = results[-1]
    elif direct or len(there) == 1:
        chosen = there[0]
    else:
        return there[0], LAST
    return chosen, LAST if _GOES_ON.match(body, chosen.end) or _is_taken_back(body, chosen, cued) else "cue"


def _leads_to(body: str, first: Number, last: Number) -> bool:
    """Whether nothing but a sum stands between two numbers (`3 + 4 = 7`)."""
    return _SUM.fullmatch(body, first.end, last.start) is not None


def _is_taken_back(body: str, chosen: Number, cued: Sequence[Number]) -> bool:
    """Whether the speaker turns to another number after it (`5. Actually, 7.`)."""
    turn = CORRECTION.search(body.lower(), chosen.end)
    return turn is not None and any(one.start > turn.start() and one.value != chosen.value for one in cued)

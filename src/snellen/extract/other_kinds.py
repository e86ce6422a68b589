"""Replies to answers that are not one option: yes or no, a number, several options, a short text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from .answer_number import LAST, answering, candidates
from .choice import read
from .cue_words import ANNOUNCES, NEEDS_MORE, REFUSAL
from .extraction import AMBIGUOUS, EMPTY, REFUSED, TRUNCATED, UNPARSED, Extraction
from .label_mentions import label_mentions, text_mentions
from .normalise import normalise
from .numbers import Number, find_numbers, groups_by_point, regrouped, unit_after
from .option_set import OptionSet, Reply, compile_options, option_set
from .set_of_marks import read_mark_set
from .structured import answer_field
from .thinking import answer_start
from .word_lists import LazyPattern, read_lists
from .yes_or_no import read_yes_or_no

_FARTHEST = 20_000
"""A number is looked for in so many characters at the end of a reply: a bound on time."""
_COMMITTED = frozenset(("structured", "cue", "self_correction"))
"""Rules by which a number is read even in a reply that declines elsewhere."""
_GLUED = LazyPattern(r"(?<![A-Za-z])[A-Z]{2,26}(?![A-Za-z])")
_COPULA = LazyPattern(
    r"(?:it is|it's|this is|that is|they are|there (?:is|are)|it says|it reads"
    r"|the (?:text|sign|word|label) (?:is|says|reads))\s+",
    re.IGNORECASE,
)


LABELS = tuple("ABCDEFGH")
"""What options are called where they are not known."""


class NumberRead(Struct, frozen=True, omit_defaults=True):
    """A number read from a reply, or None with a reason; a percentage keeps its figure (`5 %` is 5.0, percent true)."""

    value: float | None
    rule: str
    reason: str | None = None
    span: tuple[int, int] | None = None
    percent: bool = False
    unit: str = ""
    """As written, where it is one that is known (`km`, `$`); not of a percentage."""
    other: float | None = None
    """What it may be too, where it is written so that nobody can tell (`1.234`, `8 below`)."""


class ChoicesRead(Struct, frozen=True, omit_defaults=True):
    """The set of letters read from a multi-select reply; empty with a reason if none could be read."""

    letters: frozenset[str]
    rule: str
    reason: str | None = None


def _answer_part(response: str) -> tuple[str, int] | None:
    start = answer_start(response)
    return None if start is None else (normalise(response[start:], lookalikes=False), start)


def extract_yesno(response: str, *, finish: str | None = None) -> Extraction:
    """Read `yes` or `no` (the result's `letter`) from a reply in a dozen languages; true and correct mean yes."""
    part = _answer_part(response)
    if part is None:
        return Extraction(None, "thinking", TRUNCATED)
    body, offset = part
    said, any_word = read_yes_or_no(body.lower())
    if said is not None:
        return Extraction("yes" if said.yes else "no", "yes_no", None, (said.start + offset, said.end + offset))
    reason = _why_none(body, finish)
    return Extraction(None, "abstain", AMBIGUOUS if any_word and reason == UNPARSED else reason)


def extract_number(response: str, *, finish: str | None = None) -> NumberRead:
    """Read the number a reply answers with: in the last box or field, after the last cue, the only or the last one.

    Rule `last` says that there are several, and none is marked as the answer.
    """
    part = _answer_part(response)
    if part is None:
        return NumberRead(None, "thinking", TRUNCATED)
    cut = max(0, len(part[0]) - _FARTHEST)
    body, offset = part[0][cut:], part[1] + cut
    numbers = candidates(body, find_numbers(body))
    if not numbers:
        return _counted_in_words(body) or NumberRead(None, "abstain", _why_none(body, finish))
    chosen, rule = answering(body, numbers)
    if chosen is None:
        return NumberRead(None, rule, UNPARSED)
    if rule not in _COMMITTED and _declines(body):
        return NumberRead(None, "refusal", REFUSED)
    if rule == LAST and finish == "length":
        return NumberRead(None, "cut_off", TRUNCATED)
    value, other = _either(chosen, body)
    span = (chosen.start + offset, chosen.end + offset)
    unit = "" if chosen.percent else unit_after(body, chosen.start, chosen.end)
    return NumberRead(value, rule, None, span, chosen.percent, unit, other)


def _declines(body: str) -> bool:
    """Whether a reply declines or asks for more: a number in it is one of the question's, not an answer."""
    low = body.lower()
    return REFUSAL.search(low) is not None or NEEDS_MORE.search(low) is not None


def _either(number: Number, body: str) -> tuple[float, float | None]:
    """Return a number and what it may be too; where the reply groups other numbers by points, `12.000` is 12000."""
    swapped = regrouped(number, body)
    if swapped is not None and groups_by_point(body):
        return swapped, None
    return number.value, swapped if number.other is None else number.other


def _counted_in_words(body: str) -> NumberRead | None:
    """Return the number of a reply that is nothing but a word for zero to ten in one of several languages."""
    word = body.strip(" \n.!*。").lower()
    listed = (words for language, words in read_lists("numbers")["counted"].items() if len(language) == 2)
    found = {words.index(word) for words in listed if word in words}
    return NumberRead(float(found.pop()), "word") if len(found) == 1 else None


def _why_none(body: str, finish: str | None) -> str:
    if finish == "length":
        return TRUNCATED
    if not body.strip():
        return EMPTY
    return REFUSED if REFUSAL.search(body.lower()) else UNPARSED


def extract_labels(response: str, *, finish: str | None = None) -> ChoicesRead:
    """Read the set of labels (A to H) a reply names where nobody knows the options: `A, C`, `B) Germany`, `(C) 50%`.

    A set that says nothing else comes first; else the one label that the reply chooses.
    """
    texts = ("",) * len(LABELS)
    several = read_mark_set(response, LABELS, texts, finish)
    if several.marks:
        return ChoicesRead(frozenset(several.marks), several.rule)
    single = read(compile_options(LABELS, texts), response, finish)
    if single.letter is not None:
        return ChoicesRead(frozenset((single.letter,)), single.rule)
    return ChoicesRead(frozenset(), single.rule, single.reason)


def extract_choices(
    response: str, options: Mapping[str, str] | Sequence[str], *, finish: str | None = None
) -> ChoicesRead:
    """Read the set of options a multi-select reply chooses."""
    offered = option_set(options)
    part = _answer_part(response)
    if part is None:
        return ChoicesRead(frozenset(), "thinking", TRUNCATED)
    body = part[0]
    single = read(offered, response, finish)
    if single.letter is not None:
        return ChoicesRead(frozenset((single.letter,)), single.rule)
    if single.reason not in {AMBIGUOUS, UNPARSED}:
        return ChoicesRead(frozenset(), single.rule, single.reason)
    letters = _listed(offered, body)
    if letters:
        return ChoicesRead(frozenset(letters), "list")
    return ChoicesRead(frozenset(), "abstain", single.reason)


def _listed(options: OptionSet, body: str) -> set[str]:
    """The letters of the answer part: glued capitals (`ACD`), else labels not denied, else option texts not denied."""
    tail = _answer_tail(body)
    glued = _GLUED.search(tail)
    together = set(glued.group()) if glued else set()
    if glued and together <= options.label_set and len(together) == len(glued.group()):
        return {options.marks[options.by_mark[char.lower()]] for char in together}
    reply = Reply(tail)
    labels = {options.marks[mention.index] for mention in label_mentions(options, reply) if not mention.denied}
    return labels or {options.marks[mention.index] for mention in text_mentions(options, reply) if not mention.denied}


def _answer_tail(body: str) -> str:
    """Return the part of a reply that holds its answer: the last field, else what follows the last cue, else all."""
    field = answer_field(body)
    marker = max((match.end() for match in ANNOUNCES.finditer(body)), default=0)
    return body[field[0] : field[1]] if field else body[marker:]


def extract_short(response: str) -> str:
    """Read a short open answer: the structured field, what follows the last cue, or the reply without its thinking."""
    part = _answer_part(response)
    if part is None:
        return ""
    body = part[0]
    field = answer_field(body)
    if field is not None:
        return _tidy(body[field[0] : field[1]])
    marker = max((match.end() for match in ANNOUNCES.finditer(body)), default=-1)
    if marker >= 0 and body[marker:].strip():
        return _tidy(body[marker:].strip().split("\n", 1)[0])
    copula = _COPULA.match(body.strip())
    return _tidy(body.strip()[copula.end() :] if copula else body)


def _tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" *_`\"'{}<>$\\").rstrip(".,;:!。").strip(" *_`\"'")

"""Replies to answers that are not one option: yes or no, a number, several options, a short text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from .choice import read
from .cue_words import CORRECTION, REFUSAL
from .extraction import AMBIGUOUS, EMPTY, REFUSED, TRUNCATED, UNPARSED, Extraction
from .label_mentions import label_mentions, text_mentions
from .measures import unit_after
from .normalise import normalise
from .numbers import Number, find_numbers, groups_by_point, regrouped
from .option_set import OptionSet, Reply, option_set
from .rules.structured import answer_field
from .thinking import answer_start
from .word_lists import LazyPattern, read_lists

_WORD = LazyPattern(
    r"(?<![\w-])(?:(?P<yes><yes_no.yes>)|(?P<no><yes_no.no>))(?![\w'-])"
    r"|(?P<hyes>^(?:<yes_no.yes_glued>))|(?P<hno>^(?:<yes_no.no_glued>))"
)
_NOT_YES = LazyPattern(r"(?:(?<!\w)not|n't)\s+(?:true|correct|right)(?!\w)")
_DENIED = LazyPattern(r"(?:(?<!\w)(?:not|never|cannot|neither|nor)|n't)(?:\s[a-z]{1,8}){0,2}\s[\"'*]{0,3}\Z")
"""Before a word that is not said but denied: `I would not say yes`."""
_AFTER_TURN = 24
_IDIOM = LazyPattern(r"\s+(?:<yes_no.idiom>)\b")
_CUE = LazyPattern(r"(?<!\w)(?:<yes_no.cue>)[\s:*,\"'(]*(?:is|would be|:|是)?[\s:*\"'(]*\Z")
_TAIL_MARKER = LazyPattern(
    r"(?:<conclusions.open_cue>)\s?(?:(?:<conclusions.open_copula>)(?![a-z'])|:|=|：)\s{0,3}[:*\s]*", re.IGNORECASE
)
_SENTENCE_END = LazyPattern(r"[.!?;](?=\s|\Z)|\n|[。；！？]")
_EQUALS = LazyPattern(r"[^\n]{0,40}[=≈→⇒][\s*$\\({\[]{0,8}(?:<numbers.approximately>)?[\s$]{0,3}\Z", re.IGNORECASE)
_LEAD = LazyPattern(r"(?:[^\w\n]|\n{1,3}|_|(?:<numbers.approximately>)(?!\w)|[a-z]\s?=)*", re.IGNORECASE)
"""What may stand between an announcement and the number it announces."""
_JOINED = LazyPattern(
    r"\s?(?:[^\W\d]{1,12}[.,]?|°\s?[cf]?|%)?\s?"
    r"(?:[-–—~:/+*×÷x,&^]|(?<![a-z])(?:<numbers.joins>)(?![a-z]))\s?(?:[^\W\d]{1,12}\s)?[*$]{0,2}",
    re.IGNORECASE,
)
"""What stands between two numbers of a range, a list or a term."""
_NOT_IT = LazyPattern(
    r"(?:(?<!\w)(?:not|never|rather than|instead of)|n't)\s(?:exactly\s|just\s|a\s)?[*$]{0,2}\Z", re.IGNORECASE
)
"""Before a number that is denied: `5, not 6`."""
_FARTHEST = 20_000
"""A number is looked for in so many characters at the end of a reply: a bound on time."""
_EDGE = 4_000
_GLUED = LazyPattern(r"(?<![A-Za-z])[A-Z]{2,26}(?![A-Za-z])")
_COPULA = LazyPattern(
    r"(?:it is|it's|this is|that is|they are|there (?:is|are)|it says|it reads"
    r"|the (?:text|sign|word|label) (?:is|says|reads))\s+",
    re.IGNORECASE,
)


LAST = "last"
"""The rule by which the last of several numbers is read, with nothing that says it is the answer."""


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
    low = body.lower()
    words = [match for match in _edge_words(low) if not _IDIOM.match(low, match.end())]
    chosen = _within_field(body, words) or _turned(low, words, _yesno_word(low, words))
    if chosen is not None:
        yes = chosen.lastgroup in {"yes", "hyes"} and not _is_not_so(low, chosen)
        return Extraction("yes" if yes else "no", "yes_no", None, (chosen.start() + offset, chosen.end() + offset))
    reason = _why_none(body, finish)
    return Extraction(None, "abstain", AMBIGUOUS if words and reason == UNPARSED else reason)


def _edge_words(low: str) -> list[re.Match[str]]:
    """Return yes and no words; of a very long reply only those near its beginning and end."""
    if len(low) <= 2 * _EDGE:
        return list(_WORD.finditer(low))
    return [*_WORD.finditer(low, 0, _EDGE), *_WORD.finditer(low, len(low) - _EDGE)]


def _within_field(body: str, words: list[re.Match[str]]) -> re.Match[str] | None:
    """Return the word in the last box, tag or field, if that says one thing alone."""
    field = answer_field(body) if words and not body.isalpha() else None
    inside = [word for word in words if field and field[0] <= word.start() and word.end() <= field[1]]
    return inside[0] if len(inside) == 1 else None


def _turned(low: str, words: list[re.Match[str]], chosen: re.Match[str] | None) -> re.Match[str] | None:
    """Return the word that a speaker turns to after the chosen one (`Yes. Wait, no.`), else the chosen one."""
    if chosen is None or chosen is words[-1]:
        return chosen
    ends = [turn.end() for turn in CORRECTION.matches(low, chosen.end())]
    later = [word for word in words if any(0 <= word.start() - end <= _AFTER_TURN for end in ends)]
    return later[-1] if later else chosen


def _yesno_word(low: str, words: list[re.Match[str]]) -> re.Match[str] | None:
    """The word after the last answer cue, else the one that opens the reply, else one that ends it unopposed."""
    cued = [match for match in words if _CUE.search(low, max(0, match.start() - 40), match.start())]
    if cued:
        return cued[-1]
    if not words:
        return None
    kinds = {match.lastgroup for match in words}
    if not low[: words[0].start()].strip(" \n*_`\"'(.<>-#"):
        rest = low[words[0].end() : words[0].end() + 12]
        return None if re.match(r"\s*(?:and|or|/)\s*(?:yes|no)\b", rest) else words[0]
    last = words[-1]
    ends = not low[last.end() :].strip(" \n*_`\"').!")
    denied = _DENIED.search(low, max(0, last.start() - 30), last.start()) and not _is_not_so(low, last)
    return last if ends and len(kinds) == 1 and not denied else None


def _is_not_so(low: str, word: re.Match[str]) -> bool:
    return _NOT_YES.match(low, max(0, word.start() - 4)) is not None


def extract_number(response: str, *, finish: str | None = None) -> NumberRead:
    """Read the number a reply answers with: in the last box or field, after the last cue, the only or the last one.

    Rule `last` says that there are several, and none is marked as the answer.
    """
    part = _answer_part(response)
    if part is None:
        return NumberRead(None, "thinking", TRUNCATED)
    cut = max(0, len(part[0]) - _FARTHEST)
    body, offset = part[0][cut:], part[1] + cut
    numbers = [one for one in find_numbers(body) if not _NOT_IT.search(body, max(0, one.start - 24), one.start)]
    if not numbers:
        return _counted_in_words(body) or NumberRead(None, "abstain", _why_none(body, finish))
    chosen, rule = _corrected(body, numbers, *_answering(body, numbers))
    if chosen is None:
        return NumberRead(None, rule, UNPARSED)
    if rule == LAST and finish == "length":
        return NumberRead(None, "cut_off", TRUNCATED)
    value, other = _either(chosen, body)
    span = (chosen.start + offset, chosen.end + offset)
    unit = "" if chosen.percent else unit_after(body, chosen.start, chosen.end)
    return NumberRead(value, rule, None, span, chosen.percent, unit, other)


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


def _answering(body: str, numbers: list[Number]) -> tuple[Number | None, str]:
    """Choose among the numbers of a reply, and say by which rule; none where a field says something else."""
    field = answer_field(body)
    if field:
        inside = [number for number in numbers if field[0] <= number.start and number.end <= field[1]]
        if not inside and any(sign.isalnum() for sign in body[field[0] : field[1]]):
            return None, "structured"
        if inside:
            return _stated(body, inside, field[0], "structured")
    after = max((match.end() for match in _TAIL_MARKER.finditer(body)), default=-1)
    told = [number for number in numbers if number.start >= after >= 0]
    if told:
        end = _SENTENCE_END.search(body, told[0].end)
        sentence = [number for number in told if end is None or number.start < end.start()]
        return _stated(body, sentence, after, "cue")
    if len({number.value for number in numbers}) == 1:
        return numbers[-1], "only"
    return numbers[-1], LAST


def _corrected(body: str, numbers: list[Number], chosen: Number | None, rule: str) -> tuple[Number | None, str]:
    """Return the number that a speaker turns to after the chosen one (`5. Wait, it's 6`), else the chosen one."""
    if chosen is None or chosen is numbers[-1]:
        return chosen, rule
    ends = [turn.end() for turn in CORRECTION.matches(body.lower(), chosen.end)]
    later = [number for number in numbers if any(0 <= number.start - end <= _AFTER_TURN for end in ends)]
    return (later[-1], "self_correction") if later else (chosen, rule)


def _stated(body: str, numbers: list[Number], start: int, rule: str) -> tuple[Number, str]:
    """Choose in one statement: the result of an equation, else the first number unless others belong to it."""
    first, last = numbers[0], numbers[-1]
    if len({number.value for number in numbers}) == 1:
        return first, rule
    if _EQUALS.search(body, numbers[-2].end, last.start):
        return last, rule
    goes_on = _JOINED.fullmatch(body, first.end, numbers[1].start) or _in_two_units(body, first, numbers[1])
    return (first, rule) if _LEAD.fullmatch(body, start, first.start) and not goes_on else (last, LAST)


def _in_two_units(body: str, first: Number, second: Number) -> bool:
    """Whether two numbers are one quantity, as those of `5 ft 3 in` are, or stand at each other (`4 + 5`)."""
    return body[first.end : second.start].strip() in {"", unit_after(body, first.start, first.end)}


def _why_none(body: str, finish: str | None) -> str:
    if finish == "length":
        return TRUNCATED
    if not body.strip():
        return EMPTY
    return REFUSED if REFUSAL.search(body.lower()) else UNPARSED


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
    marker = max((match.end() for match in _TAIL_MARKER.finditer(body)), default=0)
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
    marker = max((match.end() for match in _TAIL_MARKER.finditer(body)), default=-1)
    if marker >= 0 and body[marker:].strip():
        return _tidy(body[marker:].strip().split("\n", 1)[0])
    copula = _COPULA.match(body.strip())
    return _tidy(body.strip()[copula.end() :] if copula else body)


def _tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" *_`\"'{}<>$\\").rstrip(".,;:!。").strip(" *_`\"'")

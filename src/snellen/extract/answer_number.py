"""The numbers of a reply to the one it answers with, and the rule by which it is that one; LAST is no commitment."""

from __future__ import annotations

import re

from .cue_words import ANNOUNCES, CORRECTION
from .numbers import Number, unit_after
from .structured import answer_field
from .word_lists import LazyPattern

LAST = "last"
"""The rule by which one of several numbers is returned with nothing that says it is the answer."""
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
_REFERENCE = LazyPattern(r"(?<!\w)(?:<numbers.reference>)\s?(?:no\.?\s|#)?[(\[]?\Z", re.IGNORECASE)
"""Before a number that only says which figure, step or question is meant."""
_OF_THINGS = LazyPattern(
    r"(?<!\w)(?:<numbers.determiner>|\w{2,12}est|correct|right|wrong|next|other|first|last)\s[*_]{0,2}\Z",
    re.IGNORECASE,
)
_ONE_OF = LazyPattern(r"\s(?:of|that|who|which|can|must|would|could|should|needs|has to)(?!\w)", re.IGNORECASE)
"""Around a number word that points at things already known, or at anybody."""
_ARGUMENT = re.compile(r"[A-Za-z]\(\Z|[A-Za-z]-\Z")
"""Before the argument of a function, and the number of a name (`under-5`)."""
_PART = LazyPattern(r"[\s*_$\"'-]{0,4}(?:<numbers.parts>)(?!\w)", re.IGNORECASE)
"""After a number that is a part of another one: `one half`, `2 dozen`."""
_BOUND = LazyPattern(r"(?<!\w)(?:<numbers.bounds>)\s[*$]{0,2}\Z", re.IGNORECASE)
_OPEN = LazyPattern(r"\+(?!\s?\d)|[*_$]{0,2}\s(?:<numbers.open_end>)(?!\w)", re.IGNORECASE)
"""Before and after a number that only bounds the one that is meant: `more than 7`, `7 or more`."""
_RESULT = LazyPattern(r"[\d)%]\s?\}?\s?[=≈]\s?[*_$\\{(]*\Z")
"""Before the result of a sum with which a reply ends."""
_STATES = LazyPattern(
    r"(?:(?<!\w)(?:<numbers.states>):?|[=≈])[\s*$\\(]{0,6}(?:(?:<numbers.approximately>)\s)?[*$€£]{0,3}\Z",
    re.IGNORECASE,
)
_HYPOTHESIS = LazyPattern(
    r"(?<!\w)(?:if|suppose|assum\w{1,4}|for example|let's say|would be|e\.g\.)(?!\w)", re.IGNORECASE
)
"""In a statement that only shows how one would answer."""
_BOLD = LazyPattern(r"\*\*[$€£(]{0,2}\Z")
_THINGS = LazyPattern(r"\*{0,2}\s?(?!(?:in|of|on|at|from|to|by|for)(?!\w))[^\W\d]", re.IGNORECASE)
"""After the number of things that are counted; `There were 500 in 2020` leaves open what is."""
_SEVERAL = LazyPattern(r"(?<!\w)(?:and|because|since|while|plus)(?!\w)|[=+,]\s?\d|\d\s?[-+]\s?\d", re.IGNORECASE)
"""In a sentence that counts several things, or gives a reason: which count is the answer is not said."""
_COUNTS = LazyPattern(r"(?<!\w)(?:<numbers.counts>)\s?[*]{0,2}\Z", re.IGNORECASE)
"""Before the number of a last statement: with which it ends, or of how many things it tells."""
_QUANTITY = LazyPattern(
    r"[*_)\s]{0,3}(?:[^\W\d]{1,16}[²³]?|°\s?[cf]?|%|[€$£]|/|\^\d)?(?:[\s/]?[^\W\d]{1,12}){0,2}[\s*_)$}\\]*\Z"
)
"""What may follow a number that ends a statement: its unit, or the thing that is counted."""
_CLOSES = " .!*_$\n}\\]"
_MOST = 60
"""In a reply of more numbers, what each refers to is not looked for: a bound on time."""
_AFTER_TURN = 24


def candidates(body: str, numbers: list[Number]) -> list[Number]:
    """Return the numbers of a reply that may be its answer: not those that are denied or only say which thing."""
    said = [one for one in numbers if not _NOT_IT.search(body, max(0, one.start - 24), one.start)]
    said = said if len(said) > _MOST else [one for one in said if not _names_thing(body, one)]
    return said if len(said) > _MOST else [one for one in said if not _refers(body, one)] or said


def _names_thing(body: str, number: Number) -> bool:
    """Whether a number only says of which things the reply speaks: `the two people`, `f(0)`, `the smallest one`."""
    if body[number.start].isalpha():
        return _OF_THINGS.search(body, max(0, number.start - 24), number.start) is not None or (
            body[number.start : number.end].lower() == "one"
            and not body[: number.start].lower().endswith("only ")
            and _ONE_OF.match(body, number.end) is not None
        )
    return _ARGUMENT.search(body, max(0, number.start - 3), number.start) is not None


def _refers(body: str, number: Number) -> bool:
    return _REFERENCE.search(body, max(0, number.start - 16), number.start) is not None


def answering(body: str, numbers: list[Number]) -> tuple[Number | None, str]:
    """Choose among the numbers of a reply, and say by which rule; none where a field says something else."""
    chosen, rule = _committed(body, numbers)
    if chosen is not None and chosen is not numbers[-1]:
        # What a speaker turns to after it: `5. Wait, it's 6`.
        ends = [turn.end() for turn in CORRECTION.matches(body.lower(), chosen.end)]
        later = [number for number in numbers if any(0 <= number.start - end <= _AFTER_TURN for end in ends)]
        chosen, rule = (later[-1], "self_correction") if later else (chosen, rule)
    return chosen, LAST if chosen is not None and _is_another(body, chosen) else rule


def _is_another(body: str, number: Number) -> bool:
    """Whether a number is only a part or a bound of the one that is meant."""
    if _PART.match(body, number.end) or _OPEN.match(body, number.end):
        return True
    return _BOUND.search(body, max(0, number.start - 24), number.start) is not None


def _committed(body: str, numbers: list[Number]) -> tuple[Number | None, str]:
    told = _in_field(body, numbers) or _announced(body, numbers)
    if told is not None:
        return told
    last = numbers[-1]
    if len({number.value for number in numbers}) == 1:
        # `Step 3` may be the answer, `Figure 3 shows …` is none.
        return last, LAST if _refers(body, last) and any(map(str.isalpha, body[last.end :])) else "only"
    ends = not body[last.end :].strip(_CLOSES) and _RESULT.search(body, max(0, last.start - 8), last.start)
    if ends:
        return last, "result"
    marked = [one for one in numbers if _BOLD.search(body, max(0, one.start - 4), one.start)]
    if len({one.value for one in marked}) == 1 and not _HYPOTHESIS.search(body):
        return marked[-1], "marked"
    stated = None if marked else _in_last_statement(body, numbers)
    return (last, LAST) if stated is None else (stated, "statement")


def _in_last_statement(body: str, numbers: list[Number]) -> Number | None:
    """Choose in the last sentence that holds a number: the one it ends with, or that of the things it counts."""
    last = numbers[-1]
    stops = [0, *(stop.end() for stop in _SENTENCE_END.finditer(body))]
    start = max(stop for stop in stops if stop <= last.start)
    end = next((stop for stop in stops if stop >= last.end), len(body))
    if "?" in body[start:end] or _HYPOTHESIS.search(body, start, end):
        return None
    own = [number for number in numbers if number.start >= start]
    if _COUNTS.search(body, max(start, own[0].start - 40), own[0].start):
        return own[0] if _THINGS.match(body, own[0].end) and not _SEVERAL.search(body, start, end) else None
    stated = [one for one in own if _STATES.search(body, max(start, one.start - 24), one.start)]
    after = body[last.end : end].rstrip(".!;。！；\n ")
    return last if stated == [last] and not _goes_on(body, own) and _QUANTITY.match(after) else None


def _goes_on(body: str, numbers: list[Number]) -> bool:
    """Whether the last of some numbers belongs to the one before it: a range, a list or a term."""
    return len(numbers) > 1 and _JOINED.fullmatch(body, numbers[-2].end, numbers[-1].start) is not None


def _in_field(body: str, numbers: list[Number]) -> tuple[Number | None, str] | None:
    """Choose in the last box, tag or field, if there is one that says something."""
    field = answer_field(body)
    if field is None:
        return None
    inside = [number for number in numbers if field[0] <= number.start and number.end <= field[1]]
    if inside:
        return _stated(body, inside, field[0], "structured")
    return (None, "structured") if any(map(str.isalnum, body[field[0] : field[1]])) else None


def _announced(body: str, numbers: list[Number]) -> tuple[Number, str] | None:
    """Choose in the sentence after the last cue, if there is one."""
    after = max((match.end() for match in ANNOUNCES.finditer(body)), default=-1)
    told = [number for number in numbers if number.start >= after >= 0]
    if not told:
        return None
    end = _SENTENCE_END.search(body, told[0].end)
    return _stated(body, [one for one in told if end is None or one.start < end.start()], after, "cue")


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

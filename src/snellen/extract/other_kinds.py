"""Replies to answers that are not one option: yes or no, a number, a set, a short text; and what is said beside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from .choice import read
from .extraction import AMBIGUOUS, EMPTY, REFUSED, TRUNCATED, UNPARSED, Extraction
from .mentions import label_mentions, text_mentions
from .numbers import Number, find_numbers, groups_by_point, regrouped, unit_after
from .option_set import OptionSet, Reply, compile_options, option_set
from .phrases import ANNOUNCES, CORRECTION, NEEDS_MORE, REFUSAL
from .reply_text import answer_start, normalise
from .structured import answer_field
from .word_lists import After, Before, LazyPattern, read_lists
from .yes_or_no import read_yes_or_no

LAST = "last"
"""The rule by which one of several numbers is returned with nothing that says it is the answer."""
_SENTENCE_END = LazyPattern(r"[.!?;](?=\s|\Z)|\n|[。；！？]", finds="5. so", passes="5.5")
_EQUALS = Before(
    r"[^\n]{0,40}[=≈→⇒][\s*$\\({\[]{0,8}(?:<numbers.approximately>)?[\s$]{0,3}",
    re.IGNORECASE,
    finds=" m, so n = ",
    passes=" wheels and ",
)
_LEAD = LazyPattern(r"(?:[^\w\n]|\n{1,3}|_|(?:<numbers.approximately>)(?!\w)|[a-z]\s?=)*", re.IGNORECASE, finds="y = ")
"""What may stand between an announcement and the number it announces."""
_JOINED = LazyPattern(
    r"\s?(?:[^\W\d]{1,12}[.,]?|°\s?[cf]?|%)?\s?"
    r"(?:[-–—~:/+*×÷x,&^]|(?<![a-z])(?:<numbers.joins>)(?![a-z]))\s?(?:[^\W\d]{1,12}\s)?[*$]{0,2}",
    re.IGNORECASE,
    finds=" hours and ",
)
"""What stands between two numbers of a range, a list or a term."""
_NOT_IT = Before(
    r"(?:(?<!\w)(?:not|never|rather than|instead of)|n't)\s(?:exactly\s|just\s|a\s)?[*$]{0,2}",
    re.IGNORECASE,
    reach=24,
    finds="it is 5, not ",
    passes="it is ",
)
"""Before a number that is denied: `5, not 6`."""
_REFERENCE = Before(
    r"(?<!\w)(?:<numbers.reference>)\s?(?:no\.?\s|#)?[(\[]?",
    re.IGNORECASE,
    reach=16,
    finds="as in Figure ",
    passes="there are ",
)
"""Before a number that only says which figure, step or question is meant."""
_OF_THINGS = Before(
    r"(?<!\w)(?:<numbers.determiner>|\w{2,12}est|correct|right|wrong|next|other|first|last)\s[*_]{0,2}",
    re.IGNORECASE,
    reach=24,
    finds="the smallest ",
    passes="there are ",
)
_ONE_OF = After(
    r"\s(?:of|that|who|which|can|must|would|could|should|needs|has to)(?!\w)",
    re.IGNORECASE,
    finds=" of them",
    passes=" dog",
)
"""Around a number word that points at things already known, or at anybody."""
_ARGUMENT = Before(r"[A-Za-z][(-]", reach=3, finds="f(", passes="Step ")
"""Before the argument of a function, and the number of a name (`under-5`)."""
_PART = After(r"[\s*_$\"'-]{0,4}(?:<numbers.parts>)(?!\w)", re.IGNORECASE, finds=" dozen eggs", passes=" eggs")
"""After a number that is a part of another one: `one half`, `2 dozen`."""
_BOUND = Before(
    r"(?<!\w)(?:<numbers.bounds>)\s[*$]{0,2}", re.IGNORECASE, reach=24, finds="more than ", passes="there are "
)
_OPEN = After(r"\+(?!\s?\d)|[*_$]{0,2}\s(?:<numbers.open_end>)(?!\w)", re.IGNORECASE, finds=" or more", passes=" + 2")
"""Before and after a number that only bounds the one that is meant: `more than 7`, `7 or more`."""
_RESULT = Before(r"[\d)%]\s?\}?\s?[=≈]\s?[*_$\\{(]*", reach=8, finds="3 + 4 = ", passes="3 or ")
"""Before the result of a sum with which a reply ends."""
_STATES = Before(
    r"(?:(?<!\w)(?:<numbers.states>):?|[=≈])[\s*$\\(]{0,6}(?:(?:<numbers.approximately>)\s)?[*$€£]{0,3}",
    re.IGNORECASE,
    reach=24,
    finds="it costs ",
    passes="kept by ",
)
_HYPOTHESIS = LazyPattern(
    r"(?<!\w)(?:if|suppose|assum\w{1,4}|for example|let's say|would be|e\.g\.)(?!\w)",
    re.IGNORECASE,
    finds="for example 3",
    passes="it is 3",
)
"""In a statement that only shows how one would answer."""
_BOLD = Before(r"\*\*[$€£(]{0,2}", reach=4, finds="it is **", passes="Step ")
_THINGS = After(
    r"\*{0,2}\s?(?!(?:in|of|on|at|from|to|by|for)(?!\w))[^\W\d]", re.IGNORECASE, finds=" dogs", passes=" in 2020"
)
"""After the number of things that are counted; `There were 500 in 2020` leaves open what is."""
_SEVERAL = LazyPattern(
    r"(?<!\w)(?:and|because|since|while|plus)(?!\w)|[=+,]\s?\d|\d\s?[-+]\s?\d",
    re.IGNORECASE,
    finds="3 cats and 4 dogs",
    passes="3 cats",
)
"""In a sentence that counts several things, or gives a reason: which count is the answer is not said."""
_COUNTS = Before(
    r"(?<!\w)(?:<numbers.counts>)\s?[*]{0,2}", re.IGNORECASE, reach=40, finds="there are only ", passes="we look at "
)
"""Before the number of a last statement: with which it ends, or of how many things it tells."""
_QUANTITY = After(
    r"[*_)\s]{0,3}(?:[^\W\d]{1,16}[²³]?|°\s?[cf]?|%|[€$£]|/|\^\d)?(?:[\s/]?[^\W\d]{1,12}){0,2}[\s*_)$}\\]*\Z",
    finds=" m/s",
    passes=": the sum of 3",
)
"""What may follow a number that ends a statement: its unit, or the thing that is counted."""
_CLOSES = " .!*_$\n}\\]"
_MOST = 60
"""In a reply of more numbers, what each refers to is not looked for: a bound on time."""
_AFTER_TURN = 24


def candidates(body: str, numbers: list[Number]) -> list[Number]:
    """Return the numbers of a reply that may be its answer: not those that are denied or only say which thing."""
    said = [one for one in numbers if not _NOT_IT.before(body, one.start)]
    said = said if len(said) > _MOST else [one for one in said if not _names_thing(body, one)]
    return said if len(said) > _MOST else [one for one in said if not _refers(body, one)] or said


def _names_thing(body: str, number: Number) -> bool:
    """Whether a number only says of which things the reply speaks: `the two people`, `f(0)`, `the smallest one`."""
    if body[number.start].isalpha():
        return _OF_THINGS.before(body, number.start) is not None or (
            body[number.start : number.end].lower() == "one"
            and not body[: number.start].lower().endswith("only ")
            and _ONE_OF.match(body, number.end) is not None
        )
    return _ARGUMENT.before(body, number.start) is not None


def _refers(body: str, number: Number) -> bool:
    return _REFERENCE.before(body, number.start) is not None


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
    return _BOUND.before(body, number.start) is not None


def _committed(body: str, numbers: list[Number]) -> tuple[Number | None, str]:
    told = _in_field(body, numbers) or _announced(body, numbers)
    if told is not None:
        return told
    last = numbers[-1]
    if len({number.value for number in numbers}) == 1:
        # `Step 3` may be the answer, `Figure 3 shows …` is none.
        return last, LAST if _refers(body, last) and any(map(str.isalpha, body[last.end :])) else "only"
    ends = not body[last.end :].strip(_CLOSES) and _RESULT.before(body, last.start)
    if ends:
        return last, "result"
    marked = [one for one in numbers if _BOLD.before(body, one.start)]
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
    if _COUNTS.before(body, own[0].start, start):
        return own[0] if _THINGS.match(body, own[0].end) and not _SEVERAL.search(body, start, end) else None
    stated = [one for one in own if _STATES.before(body, one.start, start)]
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
    if _EQUALS.before(body, last.start, numbers[-2].end):
        return last, rule
    goes_on = _JOINED.fullmatch(body, first.end, numbers[1].start) or _in_two_units(body, first, numbers[1])
    return (first, rule) if _LEAD.fullmatch(body, start, first.start) and not goes_on else (last, LAST)


def _in_two_units(body: str, first: Number, second: Number) -> bool:
    """Whether two numbers are one quantity, as those of `5 ft 3 in` are, or stand at each other (`4 + 5`)."""
    return body[first.end : second.start].strip() in {"", unit_after(body, first.start, first.end)}


_FARTHEST = 20_000
"""A number is looked for in so many characters at the end of a reply: a bound on time."""
_COMMITTED = frozenset(("structured", "cue", "self_correction"))
"""Rules by which a number is read even in a reply that declines elsewhere."""
_GLUED = LazyPattern(r"(?<![A-Za-z])[A-Z]{2,26}(?![A-Za-z])", finds="so ACD", passes="so Acd")
_COPULA = After(
    r"(?:it is|it's|this is|that is|they are|there (?:is|are)|it says|it reads"
    r"|the (?:text|sign|word|label) (?:is|says|reads))\s+",
    re.IGNORECASE,
    finds="It says STOP",
    passes="STOP",
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


_BOXED = re.compile(r"\\boxed\s?\{((?:[^{}]|\{[^{}]*\}){1,400})\}")
_ANSWERS_ARE = re.compile(
    r"(?:\b(?:answers?|(?:correct|right) (?:options?|choices?|ones|statements?|letters?)|selections?)\b|答案|选项|選項)"
    r"[\s*_\"'`]{0,4}(?:(?:is|are)\b\s?:?|[:=：]|是|为|為|应为|應為|应该是)",
    re.IGNORECASE,
)
"""What announces the answers."""
_MOST_BOXES = 26
_RANGE = re.compile(r"(?<![^\W_])([A-Za-z])[ \t]?[-–—~][ \t]?([A-Za-z])(?![^\W_])")
"""`A-C` may be two options or three."""
_LONGEST_SET = 2_000
"""Characters of a part that is looked at; a list of options is not longer."""
_BETWEEN_MARKS = re.compile(
    r"(?:[\s,;、，；。/&+|\"'`\[\](){}（）【】<>.:：*_$\\~-]"
    r"|(?:and|und|et|options?|choices?|letters?|both|(?:is|are) (?:correct|right|true))(?![^\W\d_])"
    r"|和|与|與|及|以及|选项|選項)++",
    re.IGNORECASE,
)
"""What joins marks and says nothing. `or` is not among it: who says `A or C` has not decided."""
_WORD = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7af]+")
"""Letters and digits; ideographs are not written apart from the marks beside them."""
_AFTER_MARK = re.compile(r"[\s.):：,、\]}*_）-]{0,6}")


class MarkSet(Struct, frozen=True, gc=False):
    """The marks that were read, in the order of the options; none with a reason."""

    marks: tuple[str, ...]
    rule: str
    reason: str | None = None
    span: tuple[int, int] | None = None


def read_mark_set(text: str, marks: Sequence[str], shown: Sequence[str], finish: str | None = None) -> MarkSet:
    """Return the set of marks that a reply names. A reply that was cut is not read: its set may have been longer."""
    start = answer_start(text)
    if start is None or finish == "length":
        return MarkSet((), "cut", TRUNCATED)
    if not text[start:].strip():
        return MarkSet((), "empty", EMPTY)
    read = list(_sets(text, start, marks, shown))
    if not read:
        return MarkSet((), "none", UNPARSED)
    found = read[0]
    if found.rule != "whole" and any(other.marks != found.marks for other in read):
        return MarkSet((), "several", AMBIGUOUS)
    return found


def _sets(text: str, start: int, marks: Sequence[str], shown: Sequence[str]) -> Iterator[MarkSet]:
    for rule, first, last in _parts(text, start):
        names = _only_marks(text[first:last], marks, shown)
        if names:
            yield MarkSet(tuple(mark for mark in marks if mark in names), rule, None, (first, last))


def _parts(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the parts of a reply that may be its answer: all of it, what is boxed, what is announced, its last line."""
    end = len(text.rstrip())
    if end - start <= _LONGEST_SET:
        yield "whole", start, end
    boxed = list(_BOXED.finditer(text, start))[-_MOST_BOXES:]  # each may hold one of the marks
    yield from (("boxed", match.start(1), match.end(1)) for match in boxed)
    cues = list(_ANSWERS_ARE.finditer(text, start))[-1:]
    yield from (("cue", match.end(), _list_end(text, match.end())) for match in cues)
    line = text.rfind("\n", start, end) + 1
    if line > start and not boxed and not cues and end - line <= _LONGEST_SET:
        yield "last_line", line, end


def _list_end(text: str, start: int) -> int:
    """Return where the line ends that begins here; an announced list may begin on the next one and go on to the end."""
    newline = text.find("\n", start, start + _LONGEST_SET)
    if newline < 0 or not text[start:newline].strip(" *_`"):
        return min(len(text.rstrip()), start + _LONGEST_SET)
    return newline


def _only_marks(part: str, marks: Sequence[str], shown: Sequence[str]) -> frozenset[str]:
    """Return the marks of a part that says nothing else; none if it does."""
    texts = {option.casefold(): mark for mark, option in zip(marks, shown, strict=True) if option.strip()}
    folded = {mark.casefold(): mark for mark in marks}
    found: set[str] = set()
    if any(abs(ord(match[1].lower()) - ord(match[2].lower())) > 1 for match in _RANGE.finditer(part)):
        return frozenset()
    place = _skip(_BETWEEN_MARKS, part, 0)
    while place < len(part):
        names, after = _marks_at(part, place, folded, texts)
        if not names or found & names:  # a mark twice: not a list, but talk about it
            return frozenset()
        found |= names
        place = _skip(_BETWEEN_MARKS, part, after)
    return frozenset(found)


def _marks_at(part: str, place: int, marks: dict[str, str], texts: dict[str, str]) -> tuple[set[str], int]:
    """Return the marks named at a place, and where what names them ends: a mark with or without its text, or a text."""
    word = _WORD.match(part, place)
    mark = marks.get(word[0].casefold()) if word else None
    if word and mark is not None:
        after = _skip(_AFTER_MARK, part, word.end())
        own = next((text for text, owner in texts.items() if owner == mark and _stands(part, after, text)), None)
        return {mark}, after + len(own) if own else word.end()
    own = next((text for text in sorted(texts, key=len, reverse=True) if _stands(part, place, text)), None)
    if own is not None:
        return {texts[own]}, place + len(own)
    return _run_of_marks(word, marks) if word else (set(), place)


def _run_of_marks(word: re.Match[str], marks: dict[str, str]) -> tuple[set[str], int]:
    """Return the marks of `ACD`: capitals in order, each once; a word made of them by chance is in no order."""
    letters = word[0]
    names = [marks.get(letter.casefold()) for letter in letters]
    in_order = len(letters) > 1 and letters.isupper() and list(letters) == sorted(set(letters))
    return ({name for name in names if name} if in_order and None not in names else set()), word.end()


def _stands(part: str, place: int, text: str) -> bool:
    end = place + len(text)
    bounded = end >= len(part) or not (part[end].isalnum() and text[-1:].isalnum())
    return bool(text) and bounded and part[place:end].casefold() == text


def _skip(pattern: re.Pattern[str], part: str, place: int) -> int:
    match = pattern.match(part, place)
    return match.end() if match else place


EDGE = 600
"""Characters at the beginning of a reply in which it says so."""
_UNSEEN = LazyPattern(r"<unseen.says>", finds="i can't see the image", passes="there is no dog")
_STEMS = ("confid", "certain", "sure", "probab", "sicher", "confian", "fidu", "信", "увер", "확신", "신뢰", "把握")
_STATED = LazyPattern(
    r"(?:confidence|confident|certainty|certain|sure|probability|sicherheit|konfidenz|confiance|confianza|confiança|"
    r"fiducia|置信度|信心|确信度|確信度|自信度|把握|уверенность|확신도|신뢰도)"
    r"(?:\s(?:level|score|in (?:my|this) answer|of (?:my|this) answer|is))?[\s:：=*_\"'（(是为為は約约~≈-]{0,8}"
    r"(?:(?P<percent>\d{1,3}(?:[.,]\d{1,2})?)\s?[%％]|(?P<ten>\d{1,2}(?:\.\d)?)\s?/\s?10(?!\d)|(?P<share>[01](?:[.,]\d{1,4})?)(?![\d%/]))"
    r"|(?P<before>\d{1,3}(?:[.,]\d{1,2})?)\s?[%％]\s(?:confident|certain|sure|confidence|sicher)",
    finds="confidence: 85 %",
    passes="i am confident",
)


def says_unseen(reply: str) -> bool:
    """Tell whether a reply says that it has or sees no picture; for replies from which no answer was read.

    Example:
        >>> from snellen.extract.other_kinds import says_unseen
        >>> says_unseen("I'm sorry, but no image was provided."), says_unseen("There is no dog.")
        (True, False)
    """
    return _UNSEEN.search(reply[:EDGE].lower().replace("’", "'")) is not None


def stated_confidence(reply: str) -> float | None:
    """Return how sure a reply says it is, from 0 to 1, the last time it says so; None where it does not.

    Example:
        >>> from snellen.extract.other_kinds import stated_confidence
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

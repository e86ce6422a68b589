"""A reply to the set of options it names, where all right ones are asked for: only what says nothing else is read.

A set is easily half read, and half a set is a wrong answer that looks like any other. So a part of the reply counts
only if it is marks, their own options' texts and what joins them, from its beginning to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from .extraction import AMBIGUOUS, EMPTY, TRUNCATED, UNPARSED
from .thinking import answer_start

BOXED = re.compile(r"\\boxed\s?\{((?:[^{}]|\{[^{}]*\}){1,400})\}")
CUE = re.compile(
    r"(?:\b(?:answers?|(?:correct|right) (?:options?|choices?|ones|statements?|letters?)|selections?)\b|答案|选项|選項)"
    r"[\s*_\"'`]{0,4}(?:(?:is|are)\b\s?:?|[:=：]|是|为|為|应为|應為|应该是)",
    re.IGNORECASE,
)
"""What announces the answers."""
MOST_BOXES = 26
RANGE = re.compile(r"(?<![^\W_])([A-Za-z])[ \t]?[-–—~][ \t]?([A-Za-z])(?![^\W_])")
"""`A-C` may be two options or three."""
LONGEST = 2_000
"""Characters of a part that is looked at; a list of options is not longer."""
BETWEEN = re.compile(
    r"(?:[\s,;、，；。/&+|\"'`\[\](){}（）【】<>.:：*_$\\~-]"
    r"|(?:and|und|et|options?|choices?|letters?|both|(?:is|are) (?:correct|right|true))(?![^\W\d_])"
    r"|和|与|與|及|以及|选项|選項)++",
    re.IGNORECASE,
)
"""What joins marks and says nothing. `or` is not among it: who says `A or C` has not decided."""
WORD = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7af]+")
"""Letters and digits; ideographs are not written apart from the marks beside them."""
AFTER_MARK = re.compile(r"[\s.):：,、\]}*_）-]{0,6}")


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
    if end - start <= LONGEST:
        yield "whole", start, end
    boxed = list(BOXED.finditer(text, start))[-MOST_BOXES:]  # each may hold one of the marks
    yield from (("boxed", match.start(1), match.end(1)) for match in boxed)
    cues = list(CUE.finditer(text, start))[-1:]
    yield from (("cue", match.end(), _line_end(text, match.end())) for match in cues)
    line = text.rfind("\n", start, end) + 1
    if line > start and not boxed and not cues and end - line <= LONGEST:
        yield "last_line", line, end


def _line_end(text: str, start: int) -> int:
    """Return where the line ends that begins here; an announced list may begin on the next one and go on to the end."""
    newline = text.find("\n", start, start + LONGEST)
    if newline < 0 or not text[start:newline].strip(" *_`"):
        return min(len(text.rstrip()), start + LONGEST)
    return newline


def _only_marks(part: str, marks: Sequence[str], shown: Sequence[str]) -> frozenset[str]:
    """Return the marks of a part that says nothing else; none if it does."""
    texts = {option.casefold(): mark for mark, option in zip(marks, shown, strict=True) if option.strip()}
    folded = {mark.casefold(): mark for mark in marks}
    found: set[str] = set()
    if any(abs(ord(match[1].lower()) - ord(match[2].lower())) > 1 for match in RANGE.finditer(part)):
        return frozenset()
    place = _skip(BETWEEN, part, 0)
    while place < len(part):
        names, after = _named(part, place, folded, texts)
        if not names or found & names:  # a mark twice: not a list, but talk about it
            return frozenset()
        found |= names
        place = _skip(BETWEEN, part, after)
    return frozenset(found)


def _named(part: str, place: int, marks: dict[str, str], texts: dict[str, str]) -> tuple[set[str], int]:
    """Return the marks named at a place, and where what names them ends: a mark with or without its text, or a text."""
    word = WORD.match(part, place)
    mark = marks.get(word[0].casefold()) if word else None
    if word and mark is not None:
        after = _skip(AFTER_MARK, part, word.end())
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

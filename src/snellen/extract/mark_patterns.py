"""Option marks (A B C D, a b, 1 2 3) to the patterns that find them, compiled once per set of marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from .extraction import Extraction
from .word_lists import WORD_AFTER, WORD_BEFORE, assemble, word_set

_NOT_AFTER = (
    r"(?!['’][a-zA-Z])(?!-[A-Za-z0-9]|–[A-Z](?![a-z])|[♯♭])(?!\.[A-Za-z](?![A-Za-z]))(?![+#&](?!\s?[A-Z](?![A-Za-z])))"
)
_NOT_BEFORE = r"(?<![0-9a-zA-Z_\u00aa-\u024f\u0370-\u06ff\u0900-\u0dff\u1e00-\u1eff&°-][\s\S])(?<![A-Za-z]\.[\s\S])"
_BULLET = r"[\s*_#>•|-]{0,6}(?:[Oo]ption |[Cc]hoice |选项)?[(*]{0,3}"
_COLON = r"(?:\s\([^()\n]{1,40}\))?[*_]{0,2}\s?[.):|]"
"""How an item of a list of options begins: `- **A.**`, `Option A:`, `| A |`."""
_CIRCLES = frozenset(map(chr, range(0x2460, 0x2474)))
# The commonest replies of all, verbatim, under the rule that would read them: a look-up instead of twenty rules.
_SHAPES = {
    "whole": (
        *("{}", "{}.", "{})", "({})", "{}:", "[{}]", "**{}**", "({}).", "Option {}"),
        *("Answer: {}", "Answer: ({})", "ANSWER: {}", "answer: {}"),
    ),
    "cue": (
        *("The answer is {}", "The answer is {}.", "The answer is ({})."),
        *("The correct answer is {}", "The correct answer is {}.", "The correct answer is ({})."),
    ),
}


class MarkPatterns:
    """How one set of marks looks in replies; comparison ignores case."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self.marks = marks
        self.by_mark = {mark.lower(): i for i, mark in enumerate(marks)}
        self.label_set = {mark.upper() for mark in marks}
        self.letters = "".join(marks).isalpha() and max(map(len, marks), default=0) == 1
        self.circled = bool(marks) and all(mark in _CIRCLES for mark in marks)
        self.lookalikes = "".join(marks).isascii()
        upper = _alternatives(map(str.upper, marks))
        either = _alternatives([*marks, *map(str.upper, marks), *map(str.lower, marks)])
        lower = _alternatives(set(map(str.lower, marks)) - set("aioeyst") if self.letters else ())
        self.label = re.compile(f"({either}){WORD_AFTER}{_NOT_AFTER}")
        # One-letter marks begin with a character set, which the engine searches for fastest.
        self.mention = re.compile(
            f"({upper}){WORD_AFTER}{_NOT_AFTER}{_NOT_BEFORE}" if self.letters else f"{WORD_BEFORE}({upper}){WORD_AFTER}"
        )
        self.wrapped = re.compile(rf"[(\[](?<![A-Za-z0-9].)\s?({either})\s?[)\]]")
        self.lower = re.compile(f"{WORD_BEFORE}({lower}){WORD_AFTER}{_NOT_AFTER}")
        self.head = re.compile(rf"{_BULLET}({either}){_COLON}")
        self.item = re.compile(rf"\n{_BULLET}({either}){_COLON}")
        # As shown or as a capital: a small letter before a full stop ends a word more often than it labels.
        shown = _alternatives([*marks, *map(str.upper, marks)])
        start = (
            rf"({shown})(?<![0-9a-zA-Z_\u00aa-\u024f\u0370-\u06ff\\\\][\s\S])"
            if self.letters
            else rf"{WORD_BEFORE}({shown})"
        )
        self.labelled = re.compile(start + r"(?:[\s*_`)\]}\"'$\\]*[.):\-–—=、：*\]}][\s*_`(\[{\"'$\\:-]*|\s?\(|の)")
        self.later = re.compile(rf"[.;,\n]\s+(?:[Oo]ption |[Cc]hoice )?\(?{either}[.):]\s")
        self.next_item = re.compile(rf"\s[(*]{{0,3}}({upper})[.):]")
        self.line = re.compile(
            assemble(r"\W{0,8}(?:(?:<cues.mark_noun>)\s?:?\s?)?\W{0,6}") + rf"({either}){WORD_AFTER}(\W*)(.*)",
            re.IGNORECASE,
        )
        self.far = re.compile(
            r"(?:(?<![a-zA-Z])(?:is|are|be|es|est|ist)|[:=])[\s*_`\"'(\[]{1,6}(?:[Oo]ption |[Cc]hoice )?[(\[*\"']{0,3}"
            rf"({upper}){WORD_AFTER}{_NOT_AFTER}"
        )
        self.joined = re.compile(
            assemble(r"[)\]}\"'*_`.\s]{0,6},?\s?(?P<join><polarity.cue_joins>|[,/&|、+→]|->)\s?")
            + assemble(r"(?:also |maybe |perhaps |possibly |even |(?:<polarity.join_filler>)\s)*+")
            + rf"(?:(?P<second>{upper})|[(\[\"'*]{{1,3}}(?P<wrapped>{either})){WORD_AFTER}"
        )
        self.whole = dict(pair for mark in marks for pair in _whole_replies(mark))


def _whole_replies(mark: str) -> Iterable[tuple[str, Extraction]]:
    """Yield the commonest replies that name a mark, verbatim, with what the rules say of them."""
    for rule, shapes in _SHAPES.items():
        for shape in shapes:
            at = shape.index("{}")
            yield shape.replace("{}", mark, 1), Extraction(mark, rule, None, (at, at + len(mark)))


def _alternatives(forms: Iterable[str]) -> str:
    unique = sorted(set(forms), key=lambda form: (-len(form), form))
    if not unique:
        return "(?!)"
    if all(len(form) == 1 for form in unique):
        return "[" + "".join(re.escape(form) for form in unique) + "]"
    return "(?:" + "|".join(re.escape(form) for form in unique) + ")"


@lru_cache(maxsize=256)
def mark_patterns(marks: tuple[str, ...]) -> MarkPatterns:
    """Return the (cached) patterns of one set of marks."""
    return MarkPatterns(marks)


def derive_marks(count: int) -> tuple[str, ...]:
    """Return A, B, … Z, AA, AB, … for `count` options."""
    letters = [chr(65 + i) for i in range(26)]
    return tuple((letters + [a + b for a in letters for b in letters])[:count])


_LONE = re.compile(r"(?<![^\W_])([a-z])(?![^\W_'])")
_WORD_BEFORE = re.compile(r"([^\W\d_]{3,20})[\s-]+\Z")
_WORD_AFTER = re.compile(r"[\s-]+([^\W\d_]{3,20})(?![^\W_])")
_BESIDE_LABELS = ("labels.before", "labels.after", "labels.after_capital", "labels.joined", "cues.mark_noun")
"""Words that stand beside labels as well: they make no term."""
_GAP = r"[\s*_\"'-]{1,3}"


def term_pattern(texts: Sequence[str], by_mark: Mapping[str, int]) -> re.Pattern[str] | None:
    """Return what finds marks within terms of other options: in `C major`, the text of option A, C is no label.

    `texts` are in lower case. A term that the option of its own letter holds as well (`Cell B` as B) is none.
    """
    holders: dict[str, set[int]] = {}
    letters: dict[str, str] = {}
    for index, text in enumerate(texts):
        for form, letter in _terms(text, by_mark):
            holders.setdefault(form, set()).add(index)
            letters[form] = letter
    crossed = [form for form, held_by in holders.items() if by_mark[letters[form]] not in held_by]
    return re.compile("|".join(crossed)) if crossed else None


def _terms(text: str, by_mark: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the pairs of a word and a mark that stand in a text, each as a pattern, with the mark."""
    found = []
    for match in _LONE.finditer(text) if len(text) > 1 else ():
        letter = match.group(1)
        if letter not in by_mark:
            continue
        before, after = _WORD_BEFORE.search(text, 0, match.start()), _WORD_AFTER.match(text, match.end())
        if before and _is_telling(before.group(1)):
            found.append((rf"(?<!\w){before.group(1)}(?:\s(?:is|was|must be))?{_GAP}(?={letter}(?!\w))", letter))
        if after and _is_telling(after.group(1)):
            found.append((rf"(?<![\w'])(?={letter}{_GAP}{after.group(1)}(?!\w))", letter))
    return found


def _is_telling(word: str) -> bool:
    return not any(word in word_set(group) for group in _BESIDE_LABELS)

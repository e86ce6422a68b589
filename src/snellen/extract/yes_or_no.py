"""A reply to the yes or no it says: in a field, after a cue, at an edge or set off; the last after a change of mind."""

from __future__ import annotations

import re
from typing import NamedTuple

from .phrases import CORRECTION, REFUSAL
from .structured import answer_field
from .word_lists import After, Before, LazyPattern, one_of, word_set

_WORD = LazyPattern(
    one_of(
        r"(?<![\w-])(?:(?P<yes><yes_no.yes>)|(?P<no><yes_no.no>))(?![\w'-])",
        r"(?P<hyes>^(?:<yes_no.yes_glued>))|(?P<hno>^(?:<yes_no.no_glued>))",  # 是的, at the beginning
        r"(?<=答案[是为：:])[\s\"'“]?(?:(?P<cyes>是的?|对|有|正确)|(?P<cno>否|不是|不对|没有|错误?))(?=[\s。，,.!！*\"'”]|\Z)",
    ),
    finds="yes, it is",
    passes="yesterday",
)
_DENIED = Before(r"(?<!\w)not\s|n't\s", reach=5, finds="it is not ", passes="it is ")
_NOT_IT = Before(
    r"(?:(?<!\w)not|n't)\s\W{0,3}(?:[a-z][\s).:]{1,2})?"
    r"|(?:(?<!\w)(?:not|never|cannot|neither|nor)|n't)(?:\s[a-z]{1,8}){1,2}\s[\"'*]{0,3}",
    reach=30,
    finds="i cannot say ",
    passes="i say ",
)
_IDIOM = After(
    r"\s+(?:<yes_no.idiom>)\b|\.\s?\d|[*_\"')]*\?|\s(?:if|unless)\s", finds=" doubt about it", passes=", it is"
)
"""After a word that answers nothing: `no doubt`, `No. 5`, `Yes?`, `yes if …`."""
_PAIR = LazyPattern(
    r"(?<!\w)(?:<yes_no.yes>|<yes_no.no>)[\"']?\s?(?:/|or|and|nor)\s?[\"']?(?:<yes_no.yes>|<yes_no.no>)(?!\w)",
    finds="yes or no",
    passes="yes, or so",
)
"""Both in one breath: the choice that is left open, or the question said again."""
_CUE = Before(
    r"(?<!\w)(?:<yes_no.cue>)[\s:*,\"'(]*(?:is|would be|should be|must be|:|是)?[\s:*\"'(]*",
    reach=40,
    finds="the answer is: ",
    passes="you see the ",
)
_PHRASE = After(
    r"[\s*_`\"'(#>-]*(?:(?P<no><yes_no.dissents>)|(?P<yes><yes_no.assents>))[*_\"')]*\s?"
    r"(?:[.,;:!—–。，、；！-](?!\s*(?:<yes_no.offers>))|\Z|\n)",
    finds="that's right, it is",
    passes="the picture shows it",
)
_SAID = Before(
    r"(?:\A|[.,;:!?\n—–。，]|(?<!\w)(?:<yes_no.said>))[\s*_`\"'(“]*", reach=40, finds="i would say ", passes="see the "
)
_JUDGED = Before(
    r"(?:\A|[.!?\n。]|(?<!\w)(?:<verdicts.claim>|this|that|it)(?:'s|\sis(?:n't)?|\sseems)\s(?:<verdicts.surely>)*)[\s*_\"'(]*(?:not\s)?[*_]*",
    reach=40,
    finds="the statement is ",
    passes="option a is ",
)
"""Before `correct` and its like, which answer only where they are said of the statement: a sign may be correct."""
_LEFT = After(
    r"[*_`\"')”]*\s?(?:[.,;:!\n—–。，]|\Z|(?:because|since|as|the|there|it|they|he|she|i)\s)",
    finds=" because it is",
    passes=" o–h band",
)
_OPENS = LazyPattern(r"[\s*_`\"'(.<>#:,…-]*(?:(?:<yes_no.opening_adverb>)\W{1,3})?", finds="definitely yes")
"""What may stand before the word with which a reply opens."""
_DECORATION = " \n*_`\"'(.<>-#:,…{}\\$"
_EDGE = 4_000
"""Of a very long reply the words near its beginning and end are looked at."""


class YesOrNo(NamedTuple):
    """One of the two words: whether it says yes, and where it stands."""

    yes: bool
    start: int
    end: int


def read_yes_or_no(low: str) -> tuple[YesOrNo | None, bool]:
    """Return the yes or no that a reply (in lower case) says, if any, and whether any such word stands in it."""
    field = answer_field(low)
    if field is not None:
        inside = _plainly(low[: field[1]], field[0])
        if inside is not None:
            return inside, True
    words = _words(low)
    for turn in reversed(CORRECTION.matches(low)[-4:]) if len(words) > 1 else ():
        if turn.group().strip(" ,") not in word_set("yes_no.no"):
            later = _among(low, [word for word in words if word.start >= turn.end()], turn.end())
            if later is not None:
                return later, True
    return _among(low, words, 0), bool(words)


def opens_with_yes_or_no(low: str) -> bool:
    """Tell whether a reply (in lower case) opens with a yes or a no that is set off (`No, the girl …`)."""
    opened = _OPENS.match(low)
    word = _WORD.match(low, opened.end()) if opened else None
    return (
        word is not None and low[word.end() : word.end() + 1] in {",", ".", "!"} and not _IDIOM.match(low, word.end())
    )


def _plainly(low: str, begin: int) -> YesOrNo | None:
    """Return the word with which a field opens."""
    words = [word for word in _words(low, begin) if word.start >= begin]
    return words[0] if words and not low[begin : words[0].start].strip(_DECORATION) else None


def _words(low: str, begin: int = 0) -> list[YesOrNo]:
    """Return yes and no words, those left out that are idioms or stand in pairs."""
    edges = [(begin, len(low))] if len(low) <= 2 * _EDGE else [(begin, _EDGE), (len(low) - _EDGE, len(low))]
    found = [match for first, last in edges for match in _WORD.finditer(low, first, last)]
    if not found:
        return []
    pairs = [match.span() for match in _PAIR.finditer(low, found[0].start())] if len(found) > 1 else []
    return [
        YesOrNo(_says_yes(low, match.lastgroup in {"yes", "hyes", "cyes"}, match.start()), *match.span())
        for match in found
        if not _IDIOM.match(low, match.end())
        and not any(first <= match.start() < last for first, last in pairs)
        and not _is_taken_back(low, match)
    ]


def _says_yes(low: str, yes: bool, start: int) -> bool:
    return yes and _DENIED.before(low, start) is None


def _is_taken_back(low: str, word: re.Match[str]) -> bool:
    """Whether it reads `not (B) no`, `It's not a yes`, `I would not say yes`; `not true` judges."""
    if word.group() in word_set("yes_no.judges"):
        return word.lastgroup == "no" and _DENIED.before(low, word.start()) is not None
    return _NOT_IT.before(low, word.start()) is not None


def _among(low: str, words: list[YesOrNo], begin: int) -> YesOrNo | None:
    """Return the word after the last cue, the one that opens, the phrase that opens, one set off, one that ends."""
    cued = [word for word in words if _CUE.before(low, word.start, begin)]
    if cued:
        return cued[-1]
    if words and _OPENS.fullmatch(low, begin, words[0].start):
        return words[0] if _is_answer(low, words[0]) else None
    said = [word for word in words if _is_set_off(low, word) or _ends(low, word)]
    if not said:
        return _in_other_words(low, begin)
    later = [word for word in words if word.start >= said[0].start]
    return said[-1] if len({word.yes for word in later}) == 1 else None


def _in_other_words(low: str, begin: int) -> YesOrNo | None:
    """Return what a phrase says that opens the reply (`Not really, …`), if nothing after it declines."""
    phrase = _PHRASE.match(low, begin)
    if phrase is None or phrase.lastgroup is None or REFUSAL.search(low) is not None:
        return None
    return YesOrNo(phrase.lastgroup == "yes", *phrase.span(phrase.lastgroup))


def _is_answer(low: str, word: YesOrNo) -> bool:
    """Whether a word that opens a reply answers: `No image was given` declines, `Si la imagen …` is a condition."""
    if _LEFT.match(low, word.end) is not None:
        return True
    said = low[word.start : word.end]
    if said in word_set("yes_no.judges") or said in word_set("yes_no.otherwise_used"):
        return False
    return REFUSAL.search(low) is None


def _ends(low: str, word: YesOrNo) -> bool:
    """Whether a reply ends with a yes or a no (`It's a clear no.`)."""
    return not low[word.end :].strip(" \n*_`\"').!") and low[word.start : word.end] not in word_set("yes_no.judges")


def _is_set_off(low: str, word: YesOrNo) -> bool:
    """Whether a word within a reply stands alone between stops, or after `say` and its like."""
    lead = _JUDGED if low[word.start : word.end] in word_set("yes_no.judges") else _SAID
    return lead.before(low, word.start) is not None and _LEFT.match(low, word.end) is not None

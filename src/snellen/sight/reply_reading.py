"""Replies to answers: one of some words, a number, a row of glyphs; or none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ..scoring.scorers.chart_rows import Shape, line_glyphs, read_rows
from .plate import Reading, credit
from .written_row import STRANGE, written_row

MARKUP = re.compile(r"[*_`#>\"“”‘’$\\{}\[\]()]|</?\w+>")
CUE = re.compile(r"\b(?:final answer|answer is|answer|so it is|therefore)\b[\s:=-]*", re.IGNORECASE)
SUM = re.compile(
    CUE.pattern
    + r"|\btotal(?: number| count)?(?: of (?:discs|dots|circles))?\s*(?:is|of|are|:|=)|=|\btotal (?=\d+\D*$)"
    + r"|\bso,? (?:there are |that makes |that is )?(?=\d)"
)
"""What announces a number: also a sum, but not the `total` that what it is made of may follow."""
ALSO = {"upper": "top", "lower": "bottom", "centre": "center"}
AGAIN = re.compile(r"\b(?:wait|actually|correction|second thoughts?|rather|instead|hmm|sorry|but)\b")
"""Who says this after an answer may take it back."""
JOINED = re.compile(r"\b(top|bottom)(left|right)\b")
NUMBER = re.compile(r"(?<![a-z0-9_.])-?\d{1,3}(?:,\d{3})+(?![\w.]*\d)|(?<![a-z0-9_.])-?\d+(?:\.\d+)?")
"""Not within a name (`x1`); after a sign of a script without spaces it is one."""
UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SPELT = re.compile(
    rf"\b(?:(?P<ten>{'|'.join(TENS)})(?: (?P<one>{'|'.join(UNITS[1:10])}))?|(?P<unit>{'|'.join(UNITS)}))\b"
)
MANY = re.compile(r"\b(?:hundreds?|thousands?|dozens?|score)\b")
"""Numbers in words that are not read: `two dozen` is no two."""
ALONE = re.compile(r"\W*(-?\d+(?:\.\d+)?)(?: (?:discs?|disks?|dots?|circles?))?\W*")
TWINS = {"0": "O", "O": "0", "I": "1", "L": "1"}
"""Signs of one shape: a reader that was told its alphabet means the one that is in it."""


def plain_text(reply: str) -> str:
    """Return a reply without markup, in one case, with the usual other words for top and bottom."""
    text = MARKUP.sub(" ", reply.replace("-", " ")).casefold()
    for word, ours in ALSO.items():
        text = re.sub(rf"\b{word}\b", ours, text)
    text = JOINED.sub(r"\1 \2", text)
    return re.sub(r"\s+", " ", text).strip()


def read_word(reply: str, words: Sequence[str]) -> str | None:
    """Return the one answer a reply gives; None where it names none, or several without saying which is final."""
    pattern = _pattern(tuple(words))
    for text in _final_parts(reply, CUE):
        found = set(pattern.findall(text))
        if len(found) == 1:
            return str(found.pop())
    for line in (_last_line(reply), _first_line(reply)):
        bare = line.strip(" .,:;!?")
        if pattern.fullmatch(bare):
            return bare
    return None


def _final_parts(reply: str, cue: re.Pattern[str]) -> Iterator[str]:
    """Yield a reply as plain text, and what follows the last word that announces an answer."""
    text = plain_text(reply)
    yield text
    cues = list(cue.finditer(text))
    if cues:
        yield text[cues[-1].end() :]


def answering_parts(reply: str) -> Iterator[str]:
    """Yield a reply as plain text, what follows the last word that announces an answer, and a last line of one word."""
    yield from _final_parts(reply, CUE)
    last = _last_line(reply)
    if last and " " not in last:
        yield last


def _last_line(reply: str) -> str:
    return _lines(reply)[-1]


def _first_line(reply: str) -> str:
    """Return the first line of a reply that does not think again after it."""
    first, *more = _lines(reply)
    return "" if any(map(AGAIN.search, more)) else first


def _lines(reply: str) -> list[str]:
    return [line for line in map(plain_text, reply.splitlines()) if line] or [""]


@lru_cache(maxsize=64)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted((word.casefold() for word in words), key=len, reverse=True)
    return re.compile(r"\b(?:" + "|".join(map(re.escape, longest)) + r")\b")


def read_choice(reply: str, truth: str, words: Sequence[str]) -> Reading:
    """Read one of some words; none gets the credit of chance."""
    guess = 1.0 / len(words)
    answer = read_word(reply, words)
    return credit(1, guess) if answer is None else Reading(float(answer == truth.casefold()), 1, guess, answer)


def read_number(reply: str) -> float | None:
    """Return the one number of a reply, in digits or words; of several the one of a cue, or of a line of its own."""
    text = in_digits(reply)
    if text is None:
        return None
    for part in _final_parts(text, SUM):
        found = set(NUMBER.findall(part))
        if len(found) == 1:
            return float(found.pop().replace(",", ""))
    alone = ALONE.fullmatch(_last_line(text)) or ALONE.fullmatch(_first_line(text))
    return float(alone[1]) if alone else None


def in_digits(reply: str) -> str | None:
    """Return a reply as plain lines with the numbers below a hundred in digits; None where larger ones are spelt."""
    lines = [plain_text(line) for line in reply.splitlines()]
    if any(MANY.search(line) for line in lines):
        return None
    return "\n".join(SPELT.sub(_digits, line) for line in lines)


def _digits(spelt: re.Match[str]) -> str:
    if spelt["unit"]:
        return str(UNITS.index(spelt["unit"]))
    return str(20 + 10 * TENS.index(spelt["ten"]) + (UNITS.index(spelt["one"]) if spelt["one"] else 0))


def _with_twins(line: str, glyphs: int, alphabet: str) -> str:
    """Return a row of the right length with the signs it can only mean: `0` for O where no zero occurs, and so on."""
    told = line_glyphs(line)
    if len(told) != glyphs:
        return line
    known = {ord(sign): twin for sign, twin in TWINS.items() if sign not in alphabet and twin in alphabet}
    return told.translate(known) if known else line


def read_row(reply: str, truth: str, alphabet: str) -> Reading:
    """Read a row of glyphs by place; another length by edit distance with its own chance; talk is no answer."""
    guess = 1.0 / len(alphabet)
    line = _with_twins(written_row(reply, len(truth), alphabet), len(truth), alphabet)
    rows, rule = read_rows([truth], line, Shape(alphabet, guess))
    row = rows[0]
    if not row.written or row.outside > STRANGE * row.written:
        return credit(len(truth), guess)
    unseen = len(truth) - row.written if row.by_place else 0
    right = min(len(truth), row.right + max(0, unseen) * row.chance)
    detail = {"rule": rule, "by_place": row.by_place, "outside": row.outside, "unseen": max(0, unseen)}
    return Reading(right, len(truth), row.chance, line_glyphs(line)[:60], detail)

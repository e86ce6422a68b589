"""Replies to answers: one of some words, a number, a pair of coordinates, a row of glyphs; or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..scoring.scorers.chart_rows import Shape, line_glyphs, read_rows
from .plate import Reading, credit

MARKUP = re.compile(r"[*_`#>\"“”‘’$\\{}\[\]()]|</?\w+>")
CUE = re.compile(r"\b(?:final answer|answer is|answer|so it is|therefore)\b[\s:=-]*", re.IGNORECASE)
ALSO = {"upper": "top", "lower": "bottom", "centre": "center"}
NUMBER = re.compile(r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?![\w.]*\d)|(?<![\w.])-?\d+(?:\.\d+)?")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
"""Numbers that are more often written out than in digits."""
STRANGE = 0.4
"""A reply with this share of glyphs from outside the alphabet is talk, not a reading."""


def plain_text(reply: str) -> str:
    """Return a reply without markup, in one case, with the usual other words for top and bottom."""
    text = MARKUP.sub(" ", reply.replace("-", " ")).casefold()
    for word, ours in ALSO.items():
        text = re.sub(rf"\b{word}\b", ours, text)
    return re.sub(r"\s+", " ", text).strip()


def read_word(reply: str, words: Sequence[str]) -> str | None:
    """Return the one answer a reply gives; None where it names none, or several without saying which is final."""
    text = plain_text(reply)
    found = _pattern(tuple(words)).findall(text)
    if len(set(found)) == 1:
        return str(found[0])
    cues = list(CUE.finditer(text))
    if cues:
        last = _pattern(tuple(words)).findall(text[cues[-1].end() :])
        if len(set(last)) == 1:
            return str(last[0])
    return None


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
    """Return the one number of a reply, in digits or words; several only where a cue says which."""
    text = plain_text(reply)
    for word, value in zip(WORDS, range(len(WORDS)), strict=True):
        text = re.sub(rf"\b{word}\b", str(value), text)
    found = set(NUMBER.findall(text))
    if len(found) > 1:
        cues = list(CUE.finditer(text))
        found = set(NUMBER.findall(text[cues[-1].end() :])) if cues else set()
    return float(found.pop().replace(",", "")) if len(found) == 1 else None


def read_pair(reply: str) -> tuple[float, float] | None:
    """Return the last two numbers of a reply as coordinates, where it has two (or a box of four: its centre)."""
    numbers = [float(number.replace(",", "")) for number in re.findall(r"-?\d+(?:\.\d+)?", reply)]
    if len(numbers) == 4:
        return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def read_row(reply: str, truth: str, alphabet: str) -> Reading:
    """Read a row of glyphs by place; another length by edit distance with its own chance; talk is no answer."""
    guess = 1.0 / len(alphabet)
    line = _row_of(reply, len(truth))
    rows, rule = read_rows([truth], line, Shape(alphabet, guess))
    row = rows[0]
    if not row.written or row.outside > STRANGE * row.written:
        return credit(len(truth), guess)
    unseen = len(truth) - row.written if row.by_place else 0
    right = min(len(truth), row.right + max(0, unseen) * row.chance)
    detail = {"rule": rule, "by_place": row.by_place, "outside": row.outside, "unseen": max(0, unseen)}
    return Reading(right, len(truth), row.chance, line_glyphs(line)[:60], detail)


def _row_of(reply: str, glyphs: int) -> str:
    """Return the last line of the length that was asked for, or the whole reply."""
    lines = [line for line in reply.splitlines() if line_glyphs(line)]
    fitting = [line for line in lines if len(line_glyphs(line)) == glyphs]
    return fitting[-1] if fitting else reply

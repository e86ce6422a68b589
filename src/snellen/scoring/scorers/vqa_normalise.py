"""Turns answers into the plain form that VQA metrics compare: punctuation, number words, articles, contractions."""

from __future__ import annotations

import re
from functools import lru_cache

ARTICLES = frozenset({"a", "an", "the"})

NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
} | {"none": "0"}

# Canonical forms. A word that lacks exactly one of the apostrophes is mended to the canonical form. This gives the
# table of the VQA evaluation (its entries with capitals never match: words are lower-cased first; they are left out).
_CONTRACTED = [
    "ain't", "aren't", "can't", "could've", "couldn't", "couldn't've", "didn't", "doesn't", "don't", "hadn't",
    "hadn't've", "hasn't", "haven't", "he'd", "he'd've", "he's", "how'd", "how'll", "how's", "isn't", "it'd",
    "it'd've", "it'll", "ma'am", "mightn't", "mightn't've", "might've", "mustn't", "must've", "needn't", "not've",
    "o'clock", "oughtn't", "'ow's'at", "shan't", "she'd've", "should've", "shouldn't", "shouldn't've",
    "somebody'd've", "somebody'll", "somebody's", "someone'd", "someone'd've", "someone'll", "someone's",
    "something'd", "something'd've", "something'll", "that's", "there'd", "there'd've", "there're", "there's",
    "they'd", "they'd've", "they'll", "they're", "they've", "'twas", "wasn't", "we'd've", "we've", "weren't",
    "what'll", "what're", "what's", "what've", "when's", "where'd", "where's", "where've", "who'd", "who'd've",
    "who'll", "who's", "who've", "why'll", "why're", "why's", "won't", "would've", "wouldn't", "wouldn't've",
    "y'all", "y'all'll", "y'all'd've", "you'd", "you'd've", "you'll", "you're", "you've",
]  # fmt: skip

CONTRACTIONS = {
    word[:position] + word[position + 1 :]: word
    for word in _CONTRACTED
    for position, character in enumerate(word)
    if character == "'"
} | {"somebody'd": "somebodyd"}
"""Misspelt -> canonical. The last entry is reversed in the original table and kept so, for equal numbers."""

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_DIGIT_COMMA_DIGIT = re.compile(r"\d,\d")
_LOOSE_PERIOD = re.compile(r"\.(?!\d)")
_SHORT = 100
_OFFICIAL_PERIOD_LIMIT = 32
"""The original passes a flag where a count belongs, so at most this many periods are dropped."""


def normalise_vqa(text: str) -> str:
    """Return the form of the official VQA evaluation (which ReForm-Eval's KIE metric copies), quirks included."""
    # References are short and come back for every repeat: worth remembering. Long replies are neither.
    return _remembered(text) if len(text) <= _SHORT else _normalise(text)


def _normalise(text: str) -> str:
    spaced = text.replace("\n", " ").replace("\t", " ").strip()
    return " ".join(_mend_words(_drop_punctuation(spaced)))


_remembered = lru_cache(maxsize=4096)(_normalise)


def _drop_punctuation(text: str) -> str:
    has_number_comma = _DIGIT_COMMA_DIGIT.search(text) is not None
    result = text
    for mark in PUNCTUATION:
        touches_space = f"{mark} " in text or f" {mark}" in text
        result = result.replace(mark, "" if touches_space or has_number_comma else " ")
    return _LOOSE_PERIOD.sub("", result, count=_OFFICIAL_PERIOD_LIMIT)


def _mend_words(text: str) -> list[str]:
    numbered = (NUMBER_WORDS.get(word, word) for word in text.lower().split())
    return [CONTRACTIONS.get(word, word) for word in numbered if word not in ARTICLES]


def contains_word(text: str, word: str) -> bool:
    r"""Whether `word` stands in `text` between two word boundaries of regular expressions (`\b`), as in ReForm-Eval."""
    return re.search(rf"\b{re.escape(word)}\b", text) is not None

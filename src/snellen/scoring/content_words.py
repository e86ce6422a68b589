"""Texts to the words that carry meaning, for everything that compares by overlap."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+", re.UNICODE)
_FUNCTION = """
    a an the this that these those it its he she they them his her their there here i you we and or but if so of to in
    on at by for from with without into over under as is are was were be been being am do does did has have had will
    would can could may might must should not no nor what which who whom whose when where why how s t
    """
FUNCTION_WORDS = frozenset(_FUNCTION.split())


@lru_cache(maxsize=200_000)
def content_words(text: str) -> frozenset[str]:
    """Return the words of a text, lower case, without function words and with plain plurals folded."""
    words = (word for word in _WORD.findall(text.casefold()) if word not in FUNCTION_WORDS)
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words
    )


def overlap(words: frozenset[str], others: frozenset[str]) -> float:
    """Return which share of `words` is among the others; 0 for no words."""
    return len(words & others) / len(words) if words else 0.0

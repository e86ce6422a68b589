"""Option texts that name a letter (`C major`, `Vitamin D`) to the places where a capital is part of such a term."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .word_lists import word_set

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

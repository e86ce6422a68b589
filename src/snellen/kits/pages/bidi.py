"""Logical text into levels and visual order: Unicode's bidirectional rules (UAX 9), without explicit embeddings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import bidirectional

_RTL = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_OPENING, _CLOSING = (
    "([{⁅⁽₍⌈⌊〈❨❪❬❮❰❲❴⟦⟨⟪⟬⟮⦃⦅〈《「『【〔〖〘〚（［｛｟｢",
    ")]}⁆⁾₎⌉⌋〉❩❫❭❯❱❳❵⟧⟩⟫⟭⟯⦄⦆〉》」』】〕〗〙〛）］｝｠｣",
)
_STRONG = {"L": "L", "R": "R", "EN": "R", "AN": "R"}
"""What a type counts as where neutrals look for their neighbours."""


_INSIDE_NUMBERS = {("ES", "EN"), ("CS", "EN"), ("CS", "AN")}
"""A separator of the first type between two numbers of the second is one of them."""
_FIRST, _LEFT_OVER = {"AL": "R"}, dict.fromkeys(("ES", "ET", "CS"), "ON")


def is_right_to_left(text: str) -> bool:
    """Tell whether any of a text runs from right to left."""
    return not text.isascii() and _RTL.search(text) is not None


def base_level(text: str) -> int:
    """Return a paragraph's level by its first strong letter: 0 left to right, 1 right to left."""
    for character in text:
        kind = bidirectional(character)
        if kind in ("L", "R", "AL"):
            return int(kind != "L")
    return 0


def bidi_levels(text: str, base: int) -> list[int]:
    """Return the level of every character: odd runs right to left."""
    edge = "R" if base else "L"
    kinds = [bidirectional(character) or "L" for character in text]
    _resolve_marks(kinds, edge)
    _resolve_numbers(kinds, edge)
    _resolve_brackets(text, kinds, edge)
    _resolve_neutrals(kinds, edge)
    up = {"L": 1, "R": 0, "EN": 1, "AN": 1} if base else {"L": 0, "R": 1, "EN": 2, "AN": 2}
    return [base + up[kind] for kind in kinds]


def visual_order(levels: Sequence[int]) -> list[int]:
    """Return the places of pieces from left to right: from the highest level down, runs are turned around (rule L2)."""
    order = list(range(len(levels)))
    for level in range(max(levels, default=0), 0, -1):
        start = 0
        while start < len(order):
            end = start
            while end < len(order) and levels[order[end]] >= level:
                end += 1
            order[start:end] = order[start:end][::-1]
            start = end + 1
    return order


def _resolve_marks(kinds: list[str], edge: str) -> None:
    """W1: a mark is as its letter is. Invisible signs of formatting count as neutral."""
    before = edge
    for place, kind in enumerate(kinds):
        if kind == "NSM":
            kinds[place] = before
        elif kind in ("BN", "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"):
            kinds[place] = "ON"
        before = kinds[place]


def _resolve_numbers(kinds: list[str], edge: str) -> None:
    """W2–W7: what kind of number it is, and which signs belong to it."""
    _by_last_strong(kinds, edge, "AL", "AN")
    kinds[:] = [_FIRST.get(kind, kind) for kind in kinds]
    for place in range(1, len(kinds) - 1):
        before, kind, after = kinds[place - 1 : place + 2]
        if before == after and (kind, before) in _INSIDE_NUMBERS:
            kinds[place] = before
    for start, end in _stretches(kinds, ("ET",)):
        if "EN" in (*kinds[start - 1 : start], *kinds[end : end + 1]):
            kinds[start:end] = ["EN"] * (end - start)
    kinds[:] = [_LEFT_OVER.get(kind, kind) for kind in kinds]
    _by_last_strong(kinds, edge, "L", "L")


def _by_last_strong(kinds: list[str], edge: str, strong: str, becomes: str) -> None:
    last = edge
    for place, kind in enumerate(kinds):
        if kind in ("L", "R", "AL"):
            last = kind
        elif kind == "EN" and last == strong:
            kinds[place] = becomes


def _resolve_brackets(text: str, kinds: list[str], edge: str) -> None:
    """N0: both brackets of a pair run the same way, as what is in them and before them says."""
    for opening, closing in _pairs(text, kinds):
        inside = {_STRONG[kind] for kind in kinds[opening + 1 : closing] if kind in _STRONG}
        if not inside:
            continue
        before = next((_STRONG[kind] for kind in reversed(kinds[:opening]) if kind in _STRONG), edge)
        kinds[opening] = kinds[closing] = edge if edge in inside or before == edge else before


def _pairs(text: str, kinds: Sequence[str]) -> list[tuple[int, int]]:
    waiting: list[tuple[int, str]] = []
    found = []
    for place, character in enumerate(text):
        if kinds[place] != "ON":
            continue
        if character in _OPENING:
            waiting.append((place, _CLOSING[_OPENING.index(character)]))
        elif any(character == closing for _, closing in waiting):
            while waiting[-1][1] != character:
                waiting.pop()
            found.append((waiting.pop()[0], place))
    return sorted(found)


def _resolve_neutrals(kinds: list[str], edge: str) -> None:
    """N1, N2: what stands between two that run the same way runs so too; else as the paragraph does."""
    for start, end in _stretches(kinds, ("B", "S", "WS", "ON")):
        before = _STRONG[kinds[start - 1]] if start else edge
        after = _STRONG[kinds[end]] if end < len(kinds) else edge
        kinds[start:end] = [before if before == after else edge] * (end - start)


def _stretches(kinds: list[str], wanted: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(kinds):
        end = start
        while end < len(kinds) and kinds[end] in wanted:
            end += 1
        if end > start:
            yield start, end
        start = end + 1

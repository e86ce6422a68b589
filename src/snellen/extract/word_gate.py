"""Patterns behind a gate of plain words: most replies hold none of the words, and finding that out is many times faster than a search."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BEFORE, _AFTER, _MOST = 32, 96, 24


class Gated:
    """A pattern tried only around the places where one of its stems occurs.

    Stems must cover every match of the pattern; a match begins at most 32 characters before its stem and ends within 96 after.
    """

    __slots__ = ("all", "pattern", "plain")

    def __init__(self, pattern: str, stems: str) -> None:
        self.pattern = re.compile(pattern)
        self.all = tuple(stems.split("|"))
        self.plain = tuple(word for word in self.all if word.isascii())

    def search(self, low: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Return the first match within `low[start:end]`."""
        found = self.matches(low, start, end)
        return found[0] if found else None

    def matches(self, low: str, start: int = 0, end: int | None = None) -> list[re.Match[str]]:
        """Return matches in order of appearance, at most 24 per stem, counted from the end."""
        stop = len(low) if end is None else end
        around = places(low, self.plain if low.isascii() else self.all, start, stop, _MOST)
        if not around:
            return []
        found: dict[int, re.Match[str]] = {}
        for at, _ in around:
            match = self.pattern.search(low, max(start, at - _BEFORE), min(stop, at + _AFTER))
            if match:
                found[match.start()] = match
        return [found[at] for at in sorted(found)]


def places(low: str, stems: Iterable[str], start: int, end: int, most: int) -> list[tuple[int, str]]:
    """Return where stems begin in `low[start:end]` and which, the last `most` of each, in ascending order."""
    piece = low[start:end] if start or end < len(low) else low
    found: list[tuple[int, str]] = []
    for stem in [stem for stem in stems if stem in piece]:
        at = piece.rfind(stem)
        count = 0
        while at >= 0 and count < most:
            found.append((at + start, stem))
            count += 1
            at = piece.rfind(stem, 0, at)
    found.sort()
    return found

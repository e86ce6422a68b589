"""Patterns behind a gate of plain words: most replies hold none of the words, and finding that out is many times faster than a search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


class Gated:
    """A pattern that is only tried where one of its stems occurs. Stems must cover every way the pattern can begin or be recognised."""

    __slots__ = ("other", "pattern", "plain")

    def __init__(self, pattern: str, stems: str) -> None:
        self.pattern = re.compile(pattern)
        words = stems.split("|")
        self.plain = tuple(word for word in words if word.isascii())
        self.other = tuple(words)

    def search(self, low: str, start: int = 0) -> re.Match[str] | None:
        """Return the first match at or after `start`."""
        for stem in self.plain if low.isascii() else self.other:
            if low.find(stem, start) >= 0:
                return self.pattern.search(low, start)
        return None

    def finditer(self, low: str, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield all matches at or after `start`."""
        return self.pattern.finditer(low, start) if self.search(low, start) else iter(())


def places(low: str, stems: Iterable[str], start: int, end: int, most: int) -> list[int]:
    """Return where any of `stems` begins in `low[start:end]`, the last `most` of each, in ascending order."""
    found: set[int] = set()
    for stem in stems:
        at = low.rfind(stem, start, end)
        count = 0
        while at >= 0 and count < most:
            found.add(at)
            count += 1
            at = low.rfind(stem, start, at + len(stem) - 1)
    return sorted(found)

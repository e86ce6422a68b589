"""Word lists by language (catalog/words) to patterns, assembled and compiled when they are first used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

_W = r"0-9a-z_\u00aa-\u024f\u0370-\u06ff\u0900-\u0dff\u1e00-\u1eff"
# Letters that join a word. CJK, kana, Hangul and Thai are left out: there a Latin letter stands alone without spaces.
START = rf"(?<![{_W}])"
END = rf"(?![{_W}])"
WORD_BEFORE = rf"(?<![{_W}A-Z])"
WORD_AFTER = rf"(?![{_W}A-Z])"
"""Where a word begins and ends: in lower-cased text, and in text as it was written."""

_INSERT = re.compile(r"<([a-z_]+\.[a-z_]+)>")
_BESIDE_WORDS: Final = frozenset({"example", "options", "reads"})
_BEFORE, _AFTER, _MOST = 32, 96, 24
"""How far around a stem a gated pattern is tried, and around how many of them: bounds on time."""


@cache
def read_lists(name: str) -> dict[str, dict[str, Any]]:
    """Return the groups of a file: words (or small patterns) by language, an example and what is read from it."""
    return tomllib.loads((files("snellen") / "catalog" / "words" / f"{name}.toml").read_text("utf-8"))


@cache
def words(group: str) -> tuple[str, ...]:
    """Return the words of a group such as `cues.answer`, language after language, in the order of the file."""
    file, _, name = group.partition(".")
    table = read_lists(file)[name]
    return tuple(word for language, listed in table.items() if language not in _BESIDE_WORDS for word in listed)


@cache
def word_set(group: str) -> frozenset[str]:
    """Return the words of a group to look one up."""
    return frozenset(words(group))


@cache
def ascii_words(group: str) -> tuple[str, ...]:
    """Return those words of a group that can stand in plain ASCII text."""
    return tuple(word for word in words(group) if word.isascii())


def assemble(template: str) -> str:
    """Return a pattern with every `<file.group>` replaced by the group's words, joined by `|`."""
    return _INSERT.sub(lambda match: "|".join(words(match.group(1))), template)


class LazyPattern:
    """A pattern, `<file.group>` in it standing for word lists, that is compiled at its first use.

    Compiling all of them takes as long as reading ten thousand replies: whoever only imports this room pays nothing.
    From then on the methods are those of the compiled pattern, so that there is no second call.
    """

    __slots__ = ("finditer", "flags", "fullmatch", "match", "search", "sub", "template")
    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    sub: Callable[..., str]

    def __init__(self, template: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.template, self.flags = template, flags
        for method in ("search", "match", "fullmatch", "finditer", "sub"):
            setattr(self, method, partial(self._first, method))

    def compile(self) -> re.Pattern[str]:
        """Compile, and let the compiled pattern's methods stand in for the first ones."""
        pattern = re.compile(assemble(self.template), self.flags)
        self.search, self.match = pattern.search, pattern.match
        self.fullmatch, self.finditer, self.sub = pattern.fullmatch, pattern.finditer, pattern.sub
        return pattern

    def _first(self, method: str, *arguments: Any) -> Any:
        return getattr(self.compile(), method)(*arguments)


class Gated:
    """A phrase tried only around the places where one of its stems occurs.

    Most replies hold no stem, and finding that out is many times faster than a search. Stems (a group) must cover every
    match of the phrase; a match begins at most 32 characters before its stem and ends within 96 after.
    """

    __slots__ = ("_ascii_stems", "_stems", "group", "phrase")

    def __init__(self, template: str, stems: str) -> None:
        self.phrase, self.group = LazyPattern(template), stems
        self._stems: tuple[str, ...] = ()
        self._ascii_stems: tuple[str, ...] = ()

    def search(self, low: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Return the first match within `low[start:end]`."""
        matches = self.matches(low, start, end)
        return matches[0] if matches else None

    def matches(self, low: str, start: int = 0, end: int | None = None) -> list[re.Match[str]]:
        """Return matches in order of appearance, at most 24 per stem, counted from the end."""
        if not self._stems:
            self._stems, self._ascii_stems = words(self.group), ascii_words(self.group)
        stop = len(low) if end is None else end
        around = places(low, self._ascii_stems if low.isascii() else self._stems, start, stop, _MOST)
        if not around:
            return []
        by_start: dict[int, re.Match[str]] = {}
        for at, _ in around:
            match = self.phrase.search(low, max(start, at - _BEFORE), min(stop, at + _AFTER))
            if match:
                by_start[match.start()] = match
        return [by_start[at] for at in sorted(by_start)]


def places(low: str, stems: Iterable[str], start: int, end: int, most: int) -> list[tuple[int, str]]:
    """Return where stems begin in `low[start:end]` and which, the last `most` of each, in ascending order."""
    piece = low[start:end] if start or end < len(low) else low
    there = [stem for stem in stems if stem in piece]
    if not there:
        return []
    spots: list[tuple[int, str]] = []
    for stem in there:
        at = piece.rfind(stem)
        count = 0
        while at >= 0 and count < most:
            spots.append((at + start, stem))
            count += 1
            at = piece.rfind(stem, 0, at)
    spots.sort()
    return spots

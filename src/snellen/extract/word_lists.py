"""Word lists by language (catalog/words) to patterns, assembled and compiled when they are first used."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise
from math import prod
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
_SHARES: Final = {
    **{" ": 0.17, "e": 0.09, "t": 0.07, "a": 0.06, "i": 0.055, "s": 0.053, "o": 0.05, "n": 0.048, "r": 0.045},
    **{"h": 0.038, "l": 0.029, "c": 0.027, "d": 0.025, "u": 0.017, "p": 0.016, "b": 0.015, "m": 0.015, "g": 0.015},
    **{"f": 0.014, "w": 0.013, "y": 0.008, "v": 0.007, "k": 0.005},
}
_RARE = 0.002
"""How large a part of our English replies each letter is, and about how large any other."""
_SHORT, _LONG, _WORTHWHILE = 60, 160, 2.5
"""For how long a text stems are gathered; from where on nearly every part occurs; how many tests a part must spare."""


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


def one_of(*ways: str) -> str:
    """Return the pattern of several ways to say a thing: written one a line, each can have its example beside it."""
    return "|".join(ways)


class LazyPattern:
    """A pattern, `<file.group>` in it standing for word lists, that is compiled at its first use.

    Compiling all of them takes as long as reading ten thousand replies: whoever only imports this room pays nothing.
    From then on the methods are those of the compiled pattern, so that there is no second call. `finds` is a text that
    it finds, `passes` one like it that it passes over: they show what the pattern is for, and a test tries them.
    """

    __slots__ = ("finditer", "finds", "flags", "fullmatch", "match", "passes", "search", "sub", "template")
    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    sub: Callable[..., str]

    def __init__(
        self, template: str, flags: re.RegexFlag = re.NOFLAG, *, finds: str = "", passes: str | None = None
    ) -> None:
        self.template, self.flags, self.finds, self.passes = template, flags, finds, passes
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


class Before(LazyPattern):
    """What stands right before a place, mostly an option: a pattern that ends there, at most `reach` characters long.

    The reach bounds time, and says how near a phrase must be; without one the caller says where to begin (a sentence).
    """

    __slots__ = ("reach",)

    def __init__(
        self,
        template: str,
        flags: re.RegexFlag = re.NOFLAG,
        *,
        reach: int = sys.maxsize,
        finds: str = "",
        passes: str | None = None,
    ) -> None:
        super().__init__(rf"(?:{template})\Z", flags, finds=finds, passes=passes)
        self.reach = reach

    def before(self, text: str, place: int, since: int = 0) -> re.Match[str] | None:
        """Return what stands before a place, and begins at `since` or later."""
        begin = place - self.reach
        return self.search(text, begin if begin > since else since if since > 0 else 0, place)


class After(LazyPattern):
    """What stands right after a place: a pattern that begins there and is at most `reach` characters long."""

    __slots__ = ("reach",)

    def __init__(
        self,
        template: str,
        flags: re.RegexFlag = re.NOFLAG,
        *,
        reach: int = sys.maxsize,
        finds: str = "",
        passes: str | None = None,
    ) -> None:
        super().__init__(template, flags, finds=finds, passes=passes)
        self.reach = reach

    def after(self, text: str, place: int) -> re.Match[str] | None:
        """Return what stands after a place."""
        return self.match(text, place, place + self.reach)


class Stems:
    """Words to be found in a text, gathered by short parts that several of them share.

    In a short text most parts do not occur, and no word that holds one is looked for: `on` spares sixteen of them.
    """

    __slots__ = ("_by_part", "_words")

    def __init__(self, stems: Iterable[str]) -> None:
        self._words = tuple(stems)
        self._by_part = _gathered(self._words)

    def occurring(self, piece: str) -> list[str]:
        """Return those that stand in `piece`, in no particular order."""
        if len(piece) > _LONG:
            return [word for word in self._words if word in piece]
        there = [part for part in self._by_part if part in piece]
        return [word for part in there for word in self._by_part[part] if word in piece] if there else there


def _gathered(stems: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return stems by a part that several hold, each time the part that spares most; the others by themselves."""
    holders: dict[str, set[str]] = {}
    for stem in stems:
        for part in _parts(stem):
            holders.setdefault(part, set()).add(stem)
    shared = {part: held for part, held in holders.items() if len(held) > 1}
    left = set(stems)
    groups: dict[str, tuple[str, ...]] = {}
    while shared:
        spared, best = max((len(held & left) * (1 - _likelihood(part)), part) for part, held in shared.items())
        if spared <= _WORTHWHILE:
            break
        groups[best] = tuple(sorted(shared.pop(best) & left))
        left.difference_update(groups[best])
    return groups | {stem: (stem,) for stem in sorted(left)}


def _parts(stem: str) -> Iterator[str]:
    """Yield the pairs of letters of a stem, and the single ones that English does not know."""
    yield from map("".join, pairwise(stem))
    yield from (letter for letter in stem if not letter.isascii())


def _likelihood(part: str) -> float:
    """Return about how often a part occurs in a short English text."""
    return min(1.0, _SHORT * prod(_SHARES.get(letter, _RARE) for letter in part))


class Gated:
    """A phrase tried only around the places where one of its stems occurs.

    Most replies hold no stem, and finding that out is many times faster than a search. Stems (a group) must cover every
    match of the phrase; a match begins at most 32 characters before its stem and ends within 96 after.
    """

    __slots__ = ("_ascii_stems", "_stems", "group", "phrase")

    def __init__(self, template: str, stems: str, *, finds: str, passes: str) -> None:
        self.phrase, self.group = LazyPattern(template, finds=finds, passes=passes), stems
        self._stems: Stems | None = None
        self._ascii_stems: Stems | None = None

    def search(self, low: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Return the first match within `low[start:end]`."""
        matches = self.matches(low, start, end)
        return matches[0] if matches else None

    def matches(self, low: str, start: int = 0, end: int | None = None) -> list[re.Match[str]]:
        """Return matches in order of appearance, at most 24 per stem, counted from the end."""
        stop = len(low) if end is None else end
        stems = (self._ascii_stems if low.isascii() else self._stems) or self._gather(low)
        around = places(low, stems, start, stop, _MOST)
        if not around:
            return []
        by_start: dict[int, re.Match[str]] = {}
        for at, _ in around:
            match = self.phrase.search(low, max(start, at - _BEFORE), min(stop, at + _AFTER))
            if match:
                by_start[match.start()] = match
        return [by_start[at] for at in sorted(by_start)]

    def _gather(self, low: str) -> Stems:
        """Gather the stems that may occur in such a text, at their first use, as patterns are compiled."""
        if low.isascii():
            self._ascii_stems = stems = Stems(ascii_words(self.group))
        else:
            self._stems = stems = Stems(words(self.group))
        return stems


def places(low: str, stems: Stems, start: int, end: int, most: int) -> list[tuple[int, str]]:
    """Return where stems begin in `low[start:end]` and which, the last `most` of each, in ascending order."""
    piece = low[start:end] if start or end < len(low) else low
    spots: list[tuple[int, str]] = []
    for stem in stems.occurring(piece):
        at = piece.rfind(stem)
        count = 0
        while at >= 0 and count < most:
            spots.append((at + start, stem))
            count += 1
            at = piece.rfind(stem, 0, at)
    spots.sort()
    return spots

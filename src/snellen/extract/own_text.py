"""A place in a reply to whether an option's own text stands there, in whatever LaTeX, markdown or signs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from .normalise import normalise
from .word_lists import LazyPattern

_PASSED = frozenset(" \t\n\r*_`$\\{}()[],^'\"“”·⋅~&")
"""Characters that neither make nor break a text: space, decoration, grouping."""
_FOLDED = {
    **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789", strict=True)),
    **dict.fromkeys("−–⁻", "-"),
    "×": "x",
    "½": "1/2",
}
_COMMANDS = {
    **{"times": "x", "cdot": "", "pi": "π", "circ": "°", "degree": "°", "angle": "∠", "cap": "∩", "cup": "∪"},
    **{
        "omega": "ω",
        "mu": "µ",
        "sqrt": "√",
        "infty": "∞",
        "pm": "±",
        "emptyset": "∅",
        "left": "",
        "right": "",
        "frac": "",
        "dfrac": "",
        "tfrac": "",
    },
    **{"mathrm": "", "text": "", "approx": "≈", "geq": "≥", "leq": "≤", "ge": "≥", "le": "≤", "neq": "≠"},
}
_COMMAND = LazyPattern(r"\\([a-z]{1,12})")
_FARTHEST = 4
"""A text is looked for in so many times its own length: room for LaTeX, and a bound on time."""


def _folded(low: str, at: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """Yield the characters that count, folded to one way of writing them, each with its place and the one after it."""
    while at < stop:
        start = at
        command = _COMMAND.match(low, at) if low[at] == "\\" else None
        if command is not None and command.group(1) in _COMMANDS:
            at, signs = command.end(), _COMMANDS[command.group(1)]
        else:
            sign, at = low[at], at + 1
            signs = "" if sign in _PASSED else _FOLDED.get(sign, sign)
            # The two groups of a fraction.
            signs = "/" if sign == "}" and low[at : at + 1] == "{" else signs
        for sign in signs:
            yield sign, start, at


@lru_cache(maxsize=4096)
def key_of(text: str) -> str:
    """Return an option text folded as replies are: what must stand, in this order, for it to be there."""
    low = normalise(text).lower().strip(" .;:!?。")
    return "".join(sign for sign, _, _ in _folded(low, 0, len(low)))


def own_end(low: str, at: int, key: str) -> int:
    """Return where the text with this key ends if it stands at `at` as a whole, else -1."""
    folded = _folded(low, at, min(len(low), at + _FARTHEST * len(key) + 24))
    end = -1
    for wanted in key:
        sign, _, end = next(folded, ("", -1, -1))
        if sign != wanted:
            return -1
    return end if end > 0 and _ends(low, end) else -1


def find_folded(low: str, start: int, keys: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Return where texts with these keys stand from `start` on, as (option, start, end): the longest at each place."""
    signs = list(_folded(low, start, len(low)))
    text = "".join(sign for sign, _, _ in signs)
    found: dict[int, tuple[int, int, int]] = {}
    for key, index in sorted(keys.items(), key=lambda pair: len(pair[0])):
        at = text.find(key) if len(key) > 1 else -1
        while at >= 0:
            first, last = signs[at][1], signs[at + len(key) - 1][2]
            if _begins(low, first) and _ends(low, last):
                found[first] = (index, first, last)
            at = text.find(key, at + len(key))
    return _apart(sorted(found.values(), key=lambda place: place[1]))


def _apart(places: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Leave out what stands inside a longer text."""
    return [
        place
        for place in places
        if not any(other is not place and other[1] <= place[1] and place[2] <= other[2] for other in places[:200])
    ][:200]


def _begins(low: str, start: int) -> bool:
    """Whether no word or number leads into it."""
    before = low[start - 1 : start] if start else ""
    if before in {".", "-", "−"}:
        return not low[start : start + 1].isdigit()
    return not before.isalnum() or not low[start].isalnum() or before >= "\u2e80"


def _ends(low: str, end: int) -> bool:
    """Whether no longer word or number goes on: `12` does not stand in `120`, `1.5` not in `1.52`."""
    after = low[end : end + 1]
    if after in {".", ","}:
        return not low[end + 1 : end + 2].isdigit()
    return not after.isalnum() or not low[end - 1].isalnum() or after >= "\u2e80"

"""Boxes and points out of replies: `[x1, y1, x2, y2]`, `(x1,y1),(x2,y2)`, tags and JSON; several different are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...extract.extraction import TRUNCATED
from ...extract.thinking import answer_start

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_GAP = r"[\s,;]+"
_CORNERS = rf"[\[(<{{]?\s*({NUMBER}){_GAP}({NUMBER})\s*[\])>}}]?"
_BOX = re.compile(rf"[\[(<]\s*{_CORNERS}\s*[,;]?\s*(?:and|to)?\s*{_CORNERS}\s*[\])>]")
_PAIRS = re.compile(rf"\(\s*({NUMBER})\s*,\s*({NUMBER})\s*\)\s*[,;]?\s*\(\s*({NUMBER})\s*,\s*({NUMBER})\s*\)")
_POINT = re.compile(rf"[\[(<]\s*({NUMBER}){_GAP}({NUMBER})\s*[\])>]")
_TAGGED = re.compile(rf"<point>\s*({NUMBER}){_GAP}({NUMBER})\s*</point>")
_NAMED = re.compile(
    rf"""\bx1?["']?\s*[=:]\s*["']?({NUMBER})["']?[\s,;]+["']?y1?["']?\s*[=:]\s*["']?({NUMBER})""", re.IGNORECASE
)
_BARE = re.compile(rf"(?<![\w.]){NUMBER}(?![\w.]*\w|\s?%)")
"""Per cent is a frame of its own, which nobody declared."""


class Spotted(NamedTuple):
    """What a reply says of a place: its numbers, or why there are none."""

    values: tuple[float, ...] = ()
    reason: str = ""


def read_box(text: str) -> Spotted:
    """Return the four numbers of the one box of a reply."""
    said = _said(text)
    return Spotted(reason=TRUNCATED) if said is None else _only(_boxes(said), said, 4, "box", "boxes")


def read_point(text: str) -> Spotted:
    """Return the two numbers of the one point of a reply, or the four of its one box."""
    said = _said(text)
    if said is None:
        return Spotted(reason=TRUNCATED)
    boxes = _boxes(said)
    return _only(boxes, said, 4, "box", "boxes") if boxes else _only(_points(said), said, 2, "point", "points")


def _only(found: list[tuple[float, ...]], said: str, size: int, one: str, several: str) -> Spotted:
    bare = [] if found else [float(number) for number in _BARE.findall(said)]
    # Where nothing is marked as a place, a reply with just as many numbers as one has names it all the same.
    places = list(dict.fromkeys(found or ([tuple(bare)] if len(bare) == size else [])))
    if len(places) == 1:
        return Spotted(places[0])
    return Spotted(reason=f"{len(places)} different {several}" if places else f"no {one} found")


def _said(text: str) -> str | None:
    """Return the answer after any thinking with single spaces: no pattern can then wander through white space."""
    start = answer_start(text)
    return None if start is None else " ".join(text[start:].split())


def _boxes(text: str) -> list[tuple[float, ...]]:
    matches = list(_PAIRS.finditer(text)) or list(_BOX.finditer(text))
    return [_numbers(match) for match in matches]


def _points(text: str) -> list[tuple[float, ...]]:
    for pattern in (_TAGGED, _NAMED, _POINT):
        found = [_numbers(match) for match in pattern.finditer(text)]
        if found:
            return found
    return []


def _numbers(match: re.Match[str]) -> tuple[float, ...]:
    groups: Sequence[str] = match.groups()
    return tuple(float(group) for group in groups)

"""Replies that point to the numbers they point with: one point, one box, several points, or that nothing is there.

Every spelling of coordinates is read here, and only here: brackets, tags, JSON, named x and y, clicks of agents, and
the tokens `<loc0123>`. What the numbers count in is a frame (`core/frames.py`); only a spelling that fixes it says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .extraction import TRUNCATED
from .reply_text import answer_start

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_GAP = r"[\s,;]+"
_CORNERS = rf"[\[(<{{]?\s*({NUMBER}){_GAP}({NUMBER})\s*[\])>}}]?"
_BOX = re.compile(rf"[\[(<]\s*{_CORNERS}\s*[,;]?\s*(?:and|to)?\s*{_CORNERS}\s*[\])>]")
_PAIRS = re.compile(rf"\(\s*({NUMBER})\s*,\s*({NUMBER})\s*\)\s*[,;]?\s*\(\s*({NUMBER})\s*,\s*({NUMBER})\s*\)")
_POINT = re.compile(rf"[\[(<]\s*({NUMBER}){_GAP}({NUMBER})\s*[\])>]")
_TAGGED = re.compile(rf"<point>\s*({NUMBER}){_GAP}({NUMBER})\s*</point>")
_AXIS = rf"""1?["']?\s?[=:]?\s?["']?({NUMBER})"""
_NAMED = re.compile(rf"""\bx{_AXIS}[^\d\-+]{{1,12}}?\by{_AXIS}""", re.IGNORECASE)
_CORNER = r"""["']?\s?[=:]\s?["']?"""
_NAMED_BOX = re.compile(
    rf"\bx1{_CORNER}({NUMBER})\W{{1,6}}y1{_CORNER}({NUMBER})\W{{1,6}}x2{_CORNER}({NUMBER})\W{{1,6}}y2{_CORNER}({NUMBER})",
    re.IGNORECASE,
)
_NUMBERED = re.compile(rf"""\bx\d+{_CORNER}({NUMBER})["']?\s?y\d+{_CORNER}({NUMBER})""")
"""Several points in one tag: `<points x1="10" y1="20" x2="30" y2="40">`."""
_BARE = re.compile(rf"(?<![\w.]){NUMBER}(?![\w.]*\w|\s?%)")
"""Per cent is a frame of its own, which nobody declared."""
_FOUR = re.compile(rf"(?<![\w.]){NUMBER}(?:{_GAP}{NUMBER}){{3}}(?![\w.]*\w|\s?%)")
"""Four bare numbers are a box where they stand together; with words between them they may be of anything."""
_TUPLES = re.compile(rf"\(\s*({NUMBER})\s*,\s*({NUMBER})\s*\)")
_TOKENS = {"0-1024 y-first": re.compile(r"<loc(\d{4})>"), "0-1000": re.compile(r"<loc_(\d{1,4})>")}
"""Spellings that fix their frame: PaliGemma's tokens of 1024 bins, and Florence-2's of 1000."""

_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_CUE = re.compile(r"\b(?:final answer|answer)\b[^:=\n]{0,20}[:=]\s*", re.IGNORECASE)
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)|<grounding>.*?(?:</grounding>|\Z)", re.DOTALL)
_CLICKS = re.compile(r"coordinate|point|start_box|\bx\b|[\"'](?:wait|terminate)", re.IGNORECASE)
"""What a call holds that answers; one with a region alone is a look at it."""
_LOOKED = re.compile(
    rf"\b(?:zoom|crop|magnif|enlarg|inspect|focus|look)\w*\b[^.!?\[(<]{{0,60}}(?:{_BOX.pattern})", re.IGNORECASE
)
_NOTHING = re.compile(
    r"""["']?(?:bbox_2d|box_2d|bbox|box|point_2d|point|coordinates?)["']?\s?[=:]\s?(?:null|none)\b"""
    r"""|["']action["']\s?:\s?["']wait["']""",
    re.IGNORECASE,
)
"""`"bbox_2d": null`, and the action by which OSWorld-G's own prompts refuse."""
_ABSENT = re.compile(
    r"\b(?:(?:does|do|did)(?: not|n't) (?:exist|appear)|(?:is|are)(?: not|n't) (?:present|visible|there|shown|found)"
    r"|not (?:present|visible|found)|no such|cannot (?:be found|find|locate)|can't (?:find|locate)|no matching"
    r"|there (?:is|are) no|infeasible)\b",
    re.IGNORECASE,
)


class Spotted(NamedTuple):
    """What a reply says of a place: its numbers in the order of writing, or why there are none."""

    values: tuple[float, ...] = ()
    reason: str = ""
    frame: str = ""
    """The frame that the spelling itself fixes; empty where it says nothing."""
    refused: str = ""
    """How it says that nothing is there: `negative` numbers, `null`, or in `words`; empty where it does not."""


class _Said(NamedTuple):
    """The part of a reply that answers, and whether looks were taken out of it."""

    text: str
    looked: bool = False


def read_box(text: str) -> Spotted:
    """Return the four numbers of the one box of a reply, or that it refuses."""
    return _read(text, points=False)


def read_place(text: str) -> Spotted:
    """Return the two numbers of the one point of a reply, the four of its one box, or that it refuses."""
    return _read(text, points=True)


def read_points(text: str) -> list[tuple[float, ...]] | None:
    """Return all points of a reply; None where it was cut off before its answer. Tuples `(x, y)` go before others."""
    said = _said(text)
    if said is None:
        return None
    tuples = [_numbers(match) for match in _TUPLES.finditer(said.text)]
    return tuples or [_numbers(match) for match in _NUMBERED.finditer(said.text)] or _points(said.text)


def _read(text: str, *, points: bool) -> Spotted:
    said = _said(text)
    if said is None:
        return Spotted(reason=TRUNCATED)
    found = _decide(said.text, points=points)
    if found.values or found.refused:
        return found
    cues = list(_CUE.finditer(said.text))
    after = _decide(said.text[cues[-1].end() :], points=points) if cues else found
    if after.values or after.refused:
        return after
    if said.looked and found.reason.startswith("no "):
        return found._replace(reason="a look, and no answer after it")
    return found


def _decide(text: str, *, points: bool) -> Spotted:
    """Return the one place of a text: what is marked as one goes before bare numbers, numbers before words."""
    for frame, token in _TOKENS.items():
        values = tuple(float(number) for number in token.findall(text))
        if values:
            size = 4 if not points or len(values) != 2 else 2
            return Spotted(values, frame=frame) if len(values) == size else Spotted(reason=f"{len(values)} loc tokens")
    places = _marked(text, points=points)
    if len(places) > 1:
        return Spotted(reason=f"{len(places)} different {'places' if points else 'boxes'}")
    if not places:
        places = _bare(text, (2, 4) if points else (4,))
    if places:
        return _refusal_or(places[0])
    if _NOTHING.search(text):
        return Spotted(refused="null")
    if not _BARE.search(text) and _ABSENT.search(text):
        return Spotted(refused="words")
    return Spotted(reason="no point found" if points else "no box found")


def _refusal_or(values: tuple[float, ...]) -> Spotted:
    return Spotted(values, refused="negative" if all(value < 0 for value in values) else "")


def _marked(text: str, *, points: bool) -> list[tuple[float, ...]]:
    """Return the different places that a text marks; a point within its one box is the place."""
    boxes = list(dict.fromkeys(_boxes(text)))
    if not points:
        return boxes
    rest = _BOX.sub(" ", _PAIRS.sub(" ", _NAMED_BOX.sub(" ", text))) if boxes else text
    spots = list(dict.fromkeys(_points(rest)))
    if len(boxes) == 1 and len(spots) == 1 and _within(spots[0], boxes[0]):
        return spots
    return boxes + spots


def _bare(text: str, sizes: tuple[int, ...]) -> list[tuple[float, ...]]:
    """Return the numbers of a text without marks, where they are just as many as a place has; else of its last line."""
    for part in (text, text.strip().rpartition("\n")[2]):
        numbers = tuple(float(number) for number in _BARE.findall(part))
        if len(numbers) in sizes and (len(numbers) == 2 or _FOUR.search(part)):
            return [numbers]
    return []


def _within(point: tuple[float, ...], box: tuple[float, ...]) -> bool:
    return all(low <= value <= high for low, value, high in zip(box[:2], point, box[2:], strict=True))


def _said(text: str) -> _Said | None:
    """Return the answer after any thinking, without looks; None where the thinking never ends.

    Single spaces within its lines: no pattern can then wander through white space.
    """
    start = answer_start(text)
    if start is None:
        return None
    body = text[start:]
    tags = _ANSWER.findall(body)
    body = tags[-1] if tags and tags[-1].strip() else body
    kept = _CALL.sub(lambda call: f" {call[1]} " if call[1] and _CLICKS.search(call[1]) else " ", body)
    looked = kept.strip() != _CALL.sub(lambda call: f" {call[1] or call[0]} ", body).strip()
    lines = "\n".join(" ".join(line.split()) for line in kept.splitlines() if line.strip())
    without = _LOOKED.sub(" ", lines)
    if without != lines and (_marked(without, points=True) or _bare(without, (2, 4))):
        return _Said(without, looked=True)
    return _Said(lines, looked)


def _boxes(text: str) -> list[tuple[float, ...]]:
    named = [] if "<points" in text else list(_NAMED_BOX.finditer(text))
    return [_numbers(match) for match in named or list(_PAIRS.finditer(text)) or list(_BOX.finditer(text))]


def _points(text: str) -> list[tuple[float, ...]]:
    for pattern in (_TAGGED, _NUMBERED if "<points" in text else _NAMED, _POINT):
        found = [_numbers(match) for match in pattern.finditer(text)]
        if found:
            return found
    return []


def _numbers(match: re.Match[str]) -> tuple[float, ...]:
    return tuple(float(group) for group in match.groups())

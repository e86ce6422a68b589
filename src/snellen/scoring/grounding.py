"""Replies that point to scores: one box by its overlap, one click by whether it falls inside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from ..core.config import convert
from ..core.errors import ConfigError, not_among
from ..core.types import Prediction, Request, Sample, Score
from ..extract.extraction import TRUNCATED
from ..extract.thinking import answer_start
from .replies import figure_text
from .text_match import NO_REFERENCE

EDGES = {"0-1": 1.0, "0-100": 100.0, "0-999": 999.0, "0-1000": 1000.0}
"""Frame -> the number that stands for the right and the lower edge."""
PIXELS, SENT_PIXELS = "pixels", "sent-pixels"
"""Pixels of the picture as its source has it, and of the picture as it left: it may have been made smaller."""
FRAMES = (*EDGES, PIXELS, SENT_PIXELS)
ORDERS = ("xyxy", "xywh", "yxyx")
"""How four numbers are a box: two corners, a corner and a size, two corners with y first."""
OVERSHOOT = 0.05
"""How far a coordinate may lie outside the picture and still be meant in this frame."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


class Coordinates(Struct, frozen=True, forbid_unknown_fields=True):
    """What a card says of boxes and points: in its data (`gold`) and in the replies its prompt asks for."""

    gold: str
    reply: str
    gold_order: str = "xyxy"
    reply_order: str = "xyxy"

    def __post_init__(self) -> None:
        for name in ("gold", "reply"):
            frame, order = getattr(self, name), getattr(self, f"{name}_order")
            if frame not in FRAMES:
                raise ConfigError(f"coordinates.{name} {not_among(frame, FRAMES, ' is no frame')}")
            if order not in ORDERS:
                raise ConfigError(f"coordinates.{name}_order {not_among(order, ORDERS, ' is no order')}")


class FrameProblem(ValueError):
    """Why numbers cannot be placed in the picture; a reason not to score."""


def fractions(
    values: Sequence[float], frame: str, size: tuple[int, int] | None, *, y_first: bool = False
) -> list[float]:
    """Return coordinates (x, y, x, y …) as fractions of the picture, or say why they cannot be."""
    if frame in EDGES:
        scale = (EDGES[frame], EDGES[frame])
        _refuse_fractions(values, frame)
    elif size is None:
        raise FrameProblem(f"the size of the picture is not known, and coordinates are in {frame}")
    else:
        scale = (float(size[0]), float(size[1]))
        _refuse_fractions(values, frame)
    sides = scale[::-1] if y_first else scale
    placed = [value / sides[place % 2] for place, value in enumerate(values)]
    if any(not -OVERSHOOT <= one <= 1.0 + OVERSHOOT for one in placed):
        raise FrameProblem(f"coordinates outside the picture: not in the frame {frame}")
    return placed


def _refuse_fractions(values: Sequence[float], frame: str) -> None:
    """Refuse what was plainly written in fractions where hundreds are meant: it would be a box in a corner.

    The whole picture is `[0, 0, 1, 1]` then, which is no smaller mistake for being in whole numbers.
    """
    if frame != "0-1" and all(0.0 <= value <= 1.0 for value in values) and any(values):
        raise FrameProblem(f"coordinates are fractions of the picture, not in the frame {frame}")


def place_box(values: Sequence[float], frame: str, order: str, size: tuple[int, int] | None) -> Box:
    """Return four numbers as (left, top, right, bottom) in fractions of the picture."""
    if len(values) != 4:
        raise FrameProblem(f"a box has four numbers, not {len(values)}")
    first, second, third, fourth = values
    if order == "xywh":
        third, fourth = first + third, second + fourth
    a, b, c, d = fractions((first, second, third, fourth), frame, size, y_first=order == "yxyx")
    return (b, a, d, c) if order == "yxyx" else (a, b, c, d)


def picture_size(frame: str, sample: Sample, prediction: Prediction) -> tuple[int, int] | None:
    """Return width and height that a frame counts in, of the first picture; None where nobody knows."""
    sent = prediction.images[0] if prediction.images else None
    if frame == SENT_PIXELS:
        return None if sent is None else (sent.width, sent.height)
    if sent is not None:
        return sent.original or (sent.width, sent.height)
    image = sample.images[0] if sample.images else None
    return None if image is None or not image.width or not image.height else (image.width, image.height)


def overlap(first: Box, second: Box) -> float:
    """Return the intersection over union of two boxes; 0 where either has no area."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    shared = width * height
    return shared / (_area(first) + _area(second) - shared)


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def has_area(box: Box) -> bool:
    """Tell whether a box is one: its right edge right of the left, its lower below the upper."""
    return box[0] < box[2] and box[1] < box[3]


def is_inside(point: Point, box: Box) -> bool:
    """Tell whether a point lies in a box; its edges belong to it."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def is_outlined(point: Point, corners: Sequence[Point]) -> bool:
    """Tell whether a point lies in a polygon: a line from it to the right crosses the sides an odd number of times."""
    x, y = point
    crossed = 0
    for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True):
        crossed += (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax
    return crossed % 2 == 1


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


OVERLAP, HIT, CLICK = "iou", "acc_0.5", "accuracy"
"""The mean overlap, the share of boxes that overlap by half (REC), the share of clicks inside."""
HALF = 0.5
OPTION = "coordinates"


def score_box(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Metrics `iou` and `acc_0.5` of the one box a reply gives; the frames are the card's `coordinates`."""
    told = coordinates_of(options)
    found = read_box(prediction.text or "")
    try:
        golds = gold_boxes(sample, prediction, told)
        if not golds or not found.values:
            return _unscored(request, (OVERLAP, HIT), NO_REFERENCE if not golds else found.reason)
        box = place_box(found.values, told.reply, told.reply_order, picture_size(told.reply, sample, prediction))
    except FrameProblem as problem:
        return _unscored(request, (OVERLAP, HIT), str(problem), found)
    best = max(overlap(box, gold) for gold in golds)
    said = _words(found)
    return [Score(request.key, OVERLAP, best, said, "box"), Score(request.key, HIT, float(best >= HALF), said, "box")]


def score_click(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Metric `accuracy`: the one point of a reply (or the middle of its one box) lies in the box of the answer.

    An answer of six numbers or more is a polygon, corner after corner.
    """
    told = coordinates_of(options)
    found = read_point(prediction.text or "")
    try:
        outlines = [corners for answer in sample.answers if (corners := _corners(answer, sample, prediction, told))]
        if 0 < len(outlines) < len(sample.answers):
            raise FrameProblem("the answers are boxes and polygons")
        golds = [] if outlines else gold_boxes(sample, prediction, told)
        if not (outlines or golds) or not found.values:
            return _unscored(request, (CLICK,), found.reason if outlines or golds else NO_REFERENCE)
        point = _point(found, told, picture_size(told.reply, sample, prediction))
    except FrameProblem as problem:
        return _unscored(request, (CLICK,), str(problem), found)
    hit = any(is_inside(point, gold) for gold in golds) or any(is_outlined(point, one) for one in outlines)
    return [Score(request.key, CLICK, float(hit), _words(found), "point" if len(found.values) == 2 else "box")]


MASK = re.compile(r"mask (\d+)x(\d+): ([\d ]*)")
_TUPLES = re.compile(rf"\(\s*({NUMBER})\s*,\s*({NUMBER})\s*\)")


def score_points(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Metric `accuracy`: the share of a reply's points `(x, y)` that lie in the mask of the answer.

    A point outside of the picture counts, and is no hit; a reply without a point is not read.
    """
    told, found = coordinates_of(options), MASK.fullmatch(sample.answers[0]) if sample.answers else None
    if found is None:
        return _unscored(request, (CLICK,), NO_REFERENCE)
    said = _said(prediction.text or "")
    points = [] if said is None else [_numbers(match) for match in _TUPLES.finditer(said)]
    if not points:
        return _unscored(request, (CLICK,), TRUNCATED if said is None else "no point found")
    width, height = int(found[1]), int(found[2])
    scale = EDGES.get(told.reply)
    if scale is None:
        raise ConfigError(f"points in a mask are in one of the frames {', '.join(EDGES)}, not {told.reply!r}")
    edges = np.cumsum(np.array(found[3].split(), dtype=np.int64))
    hits = [_in_mask(x / scale, y / scale, (width, height), edges) for x, y in points]
    words = ", ".join(f"({figure_text(x)}, {figure_text(y)})" for x, y in points)
    return [Score(request.key, CLICK, sum(hits) / len(hits), words, "points")]


def _in_mask(x: float, y: float, size: tuple[int, int], edges: np.ndarray[Any, Any]) -> bool:
    """Tell whether a point, in fractions of the picture, is a pixel of the mask; runs of it end at the edges."""
    column, row = int(x * size[0]), int(y * size[1])
    if not (0 <= column < size[0] and 0 <= row < size[1]):
        return False
    return int(np.searchsorted(edges, row * size[0] + column, side="right")) % 2 == 1


def gold_boxes(sample: Sample, prediction: Prediction, told: Coordinates) -> list[Box]:
    """Return the boxes of the answers, each written as its four numbers, in fractions of the picture."""
    size = picture_size(told.gold, sample, prediction)
    boxes = [place_box(_gold_numbers(answer), told.gold, told.gold_order, size) for answer in sample.answers]
    flat = next((answer for answer, box in zip(sample.answers, boxes, strict=True) if not has_area(box)), None)
    if flat is not None:
        raise FrameProblem(f"the answer {flat[:40]!r} is a box without area")
    return boxes


def _corners(answer: str, sample: Sample, prediction: Prediction, told: Coordinates) -> list[Point]:
    """Return the corners of an answer that is a polygon, in fractions of the picture; of any other answer none."""
    values = [float(number) for number in re.findall(NUMBER, answer)]
    if len(values) < 6 or len(values) % 2:
        return []
    y_first = told.gold_order == "yxyx"
    placed = fractions(values, told.gold, picture_size(told.gold, sample, prediction), y_first=y_first)
    pairs = list(zip(placed[::2], placed[1::2], strict=True))
    return [(second, first) for first, second in pairs] if y_first else pairs


def _gold_numbers(answer: str) -> tuple[float, ...]:
    found = read_box(answer)
    if not found.values:
        raise FrameProblem(f"the answer {answer[:40]!r} is not a box: {found.reason}")
    return found.values


def coordinates_of(options: Mapping[str, Any]) -> Coordinates:
    """Return the frames that a card declares; without them nothing is guessed."""
    told = options.get(OPTION)
    if told is None:
        frames = "gold and reply, each 0-1, 0-100, 0-999, 0-1000, pixels or sent-pixels"
        raise ConfigError(f"boxes and points need their frame: add [score_options.coordinates] to the card ({frames})")
    return told if isinstance(told, Coordinates) else convert(told, Coordinates, "score_options.coordinates")


def _point(found: Spotted, told: Coordinates, size: tuple[int, int] | None) -> tuple[float, float]:
    if len(found.values) == 4:
        left, top, right, bottom = place_box(found.values, told.reply, told.reply_order, size)
        return (left + right) / 2.0, (top + bottom) / 2.0
    y_first = told.reply_order == "yxyx"
    first, second = fractions(found.values, told.reply, size, y_first=y_first)
    return (second, first) if y_first else (first, second)


def _words(found: Spotted) -> str:
    return f"[{', '.join(map(figure_text, found.values))}]"


def _unscored(request: Request, metrics: Sequence[str], reason: str, found: Spotted | None = None) -> list[Score]:
    said = _words(found) if found is not None and found.values else None
    return [Score(request.key, metric, None, said, None, reason) for metric in metrics]

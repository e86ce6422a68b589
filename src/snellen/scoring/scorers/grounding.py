"""Replies that point to scores: one box by its overlap, one place by whether it hits, refusals beside both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ...core.config import convert
from ...core.errors import ConfigError, not_among
from ...core.frames import Frame, FrameProblem, read_frame
from ...core.types import Prediction, Request, Sample, Score
from ...extract.places import NUMBER, read_box, read_place, read_points
from .replies import NO_REFERENCE, figure_text

ORDERS = ("xyxy", "xywh", "yxyx")
"""How four numbers are a box: two corners, a corner and a size, two corners with y first."""

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
            order = getattr(self, f"{name}_order")
            if order not in ORDERS:
                raise ConfigError(f"coordinates.{name}_order {not_among(order, ORDERS, ' is no order')}")
            try:
                read_frame(getattr(self, name))
            except ConfigError as error:
                raise ConfigError(f"coordinates.{name}: {error}") from None


def frame_of(name: str, order: str) -> Frame:
    """Return a frame by its spelling; an order with y first is one of the frame."""
    frame = read_frame(name)
    return replace(frame, y_first=True) if order == "yxyx" else frame


def place_box(values: Sequence[float], frame: str, order: str, size: tuple[int, int] | None) -> Box:
    """Return four numbers as (left, top, right, bottom) in fractions of the picture."""
    if len(values) != 4:
        raise FrameProblem(f"a box has four numbers, not {len(values)}")
    first, second, third, fourth = values
    if order == "xywh":
        third, fourth = first + third, second + fourth
    placing = frame_of(frame, order)
    left, top, right, bottom = placing.place((first, second, third, fourth), size)
    return (left, bottom, right, top) if placing.y_up else (left, top, right, bottom)


def picture_size(frame: str, sample: Sample, prediction: Prediction) -> tuple[int, int] | None:
    """Return width and height that a frame counts in, of the first picture; None where nobody knows."""
    sent = prediction.images[0] if prediction.images else None
    counted = read_frame(frame)
    if counted.edge is None and not counted.of_source:
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
        if not golds:
            return _unscored(request, (OVERLAP, HIT), NO_REFERENCE)
        if found.refused:
            return [Score(request.key, metric, 0.0, REFUSED, "refusal") for metric in (OVERLAP, HIT)]
        if not found.values:
            return _unscored(request, (OVERLAP, HIT), found.reason)
        frame, order = (found.frame, "xyxy") if found.frame else (told.reply, told.reply_order)
        box = place_box(found.values, frame, order, picture_size(frame, sample, prediction))
    except FrameProblem as problem:
        return _unscored(request, (OVERLAP, HIT), str(problem), (found.values,) if found.values else ())
    best = max(overlap(box, gold) for gold in golds)
    values = {OVERLAP: best, HIT: float(best >= HALF)}
    return _scored(request, values, (OVERLAP, HIT), _words((found.values,)), "box")


ABSENT = "absent"
"""The answer of a sample whose target is not in the picture: right is who refuses."""
REFUSED, CLICKED = "refused", "clicked"
"""Whether a reply says that nothing is there, and whether it points all the same; an unread one does neither."""
MASK = re.compile(r"mask (\d+)x(\d+): ([\d ]*)")
SEVERAL, REFUSALS, PICTURES = ("one", "share"), ("", "said", "negative"), ("", "original", "last")
OTHER = "other_picture"
PART = "region:"
"""The edit that makes a picture of a part of its source."""
Target = Callable[[Point], bool]
"""Tells whether a point, in fractions of the picture, hits."""


class PlaceRule(Struct, frozen=True):
    """How `place` counts, of a card's `score_options`; other keys there are for other scorers."""

    several: str = "one"
    """Several different points are unread (`one`), or count by the `share` of them that hits."""
    refusals: str = ""
    """Refusals are counted beside the accuracy: as `said` in any way, or by `negative` numbers alone; empty: they are
    wrong and not counted."""
    reply_picture: str = ""
    """With tools: whether a reply speaks of the `original` picture or of the `last` one shown; the metric
    `other_picture` is the accuracy if it spoke of the other."""
    fractions: bool = False
    """Numbers that are all from 0 to 1 are fractions of the picture, whatever the frame: some tools guess so."""

    def __post_init__(self) -> None:
        for name, known in (("several", SEVERAL), ("refusals", REFUSALS), ("reply_picture", PICTURES)):
            if getattr(self, name) not in known:
                raise ConfigError(f"score_options.{name} {not_among(getattr(self, name), known, ' is no rule')}")


class _Pointed(NamedTuple):
    """What a reply points at: each place as written, or that it refuses, or why neither was read."""

    places: tuple[tuple[float, ...], ...] = ()
    reason: str = ""
    frame: str = ""
    refused: bool = False


def score_place(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Metric `accuracy`: the place of a reply (of a box, its middle) hits the answer; with refusals, two more.

    An answer of four numbers is a box, of six and more a polygon, one that begins with `mask` a mask; `absent` is right
    where the reply refuses.
    """
    told, rule = coordinates_of(options), msgspec.convert(dict(options), PlaceRule, strict=False)
    metrics = (CLICK, *((REFUSED, CLICKED) if rule.refusals else ()), *((OTHER,) if rule.reply_picture else ()))
    found = _pointed(prediction.text or "", rule)
    absent = ABSENT in sample.answers
    try:
        targets = [] if absent else _targets(sample, prediction, told)
        if not targets and not absent:
            return _unscored(request, metrics, NO_REFERENCE)
        if found.refused:
            right = float(absent)
            return _scored(
                request, {CLICK: right, REFUSED: 1.0, CLICKED: 0.0, OTHER: right}, metrics, REFUSED, "refusal"
            )
        if not found.places:
            return _unscored(request, metrics, found.reason)
        place = partial(_placed, found, told, rule, sample)
        whole = other = 0.0  # where nothing is there, every click is wrong, wherever it lies
        if targets:
            whole = _share_hit(place(prediction), targets)
            part = _last_part(request) if rule.reply_picture else None
            other = whole if part is None else _share_hit(_in_whole(place, part, sample, prediction), targets)
    except FrameProblem as problem:
        return _unscored(request, metrics, str(problem), found.places)
    kind = "points" if rule.several == "share" else "point" if len(found.places[0]) == 2 else "box"
    value, beside = (other, whole) if rule.reply_picture == "last" else (whole, other)
    values = {CLICK: value, REFUSED: 0.0, CLICKED: 1.0, OTHER: beside}
    return _scored(request, values, metrics, _words(found.places), kind)


def _share_hit(points: Sequence[Point], targets: Sequence[Target]) -> float:
    return sum(any(hit(point) for hit in targets) for point in points) / len(points)


def score_points(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Return what `place` does where several points count by their share."""
    return score_place(sample, request, prediction, {**options, "several": "share"})


def _pointed(text: str, rule: PlaceRule) -> _Pointed:
    if rule.several == "share":
        points = read_points(text)
        if points:
            return _Pointed(tuple(points))
    found = read_place(text)
    accepted = bool(found.refused) and (rule.refusals != "negative" or found.refused == "negative")
    if accepted or not found.values:
        return _Pointed(reason=found.reason or "no point found", refused=accepted)
    return _Pointed((found.values,), frame=found.frame)


def _placed(found: _Pointed, told: Coordinates, rule: PlaceRule, sample: Sample, prediction: Prediction) -> list[Point]:
    """Return the points of a reply in fractions of the picture; of several, some may lie outside of it."""
    name, order = (found.frame, "xyxy") if found.frame else (told.reply, told.reply_order)
    size = picture_size(name, sample, prediction) or _mask_size(sample)
    points = []
    for values in found.places:
        if rule.fractions and all(0.0 <= value <= 1.0 for value in values):
            name, order = "0-1", "xyxy"
        if len(values) == 4:
            left, top, right, bottom = place_box(values, name, order, size)
            points.append(((left + right) / 2.0, (top + bottom) / 2.0))
        else:
            x, y = frame_of(name, order).place(values, size, anywhere=rule.several == "share")
            points.append((x, y))
    return points


def _last_part(request: Request) -> Box | None:
    """Return the part of its source that the last picture of a talk shows, in pixels; None where that is no part."""
    shown = [image for turn in request.messages for image in turn.images]
    edits = shown[-1].edits if len(shown) > 1 else ()
    part = next((edit for edit in reversed(edits) if edit.startswith(PART)), None)
    if part is None:
        return None
    left, top, right, bottom = (float(number) for number in part.removeprefix(PART).split(","))
    return left, top, right, bottom


def _in_whole(
    place: Callable[[Prediction], list[Point]], part: Box, sample: Sample, prediction: Prediction
) -> list[Point]:
    """Return where points of the last picture lie in the one it is a part of."""
    size = picture_size("pixels", sample, prediction)
    if size is None:
        raise FrameProblem("the size of the picture is not known, and the last one shown is a part of it")
    left, top, right, bottom = part
    points = place(replace(prediction, images=prediction.images[-1:]))
    return [((left + x * (right - left)) / size[0], (top + y * (bottom - top)) / size[1]) for x, y in points]


def _targets(sample: Sample, prediction: Prediction, told: Coordinates) -> list[Target]:
    """Return what each answer counts as hit; boxes and polygons in one sample are refused."""
    masks = [found for answer in sample.answers if (found := MASK.fullmatch(answer))]
    if masks:
        return [_mask_target(mask) for mask in masks]
    outlines = [corners for answer in sample.answers if (corners := _corners(answer, sample, prediction, told))]
    if 0 < len(outlines) < len(sample.answers):
        raise FrameProblem("the answers are boxes and polygons")
    if outlines:
        return [partial(is_outlined, corners=one) for one in outlines]
    return [partial(is_inside, box=gold) for gold in gold_boxes(sample, prediction, told)]


def _mask_target(mask: re.Match[str]) -> Target:
    size, edges = (int(mask[1]), int(mask[2])), np.cumsum(np.array(mask[3].split(), dtype=np.int64))
    return lambda point: _in_mask(*point, size, edges)


def _mask_size(sample: Sample) -> tuple[int, int] | None:
    """Return the size of a sample's mask: it is that of its picture."""
    found = MASK.fullmatch(sample.answers[0]) if sample.answers else None
    return (int(found[1]), int(found[2])) if found else None


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
    size = picture_size(told.gold, sample, prediction)
    placed = frame_of(told.gold, told.gold_order).place(values, size)
    return list(zip(placed[::2], placed[1::2], strict=True))


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


def _words(places: Sequence[Sequence[float]]) -> str:
    several = [", ".join(map(figure_text, values)) for values in places]
    return f"[{several[0]}]" if len(several) == 1 else ", ".join(f"({one})" for one in several)


def _scored(request: Request, values: Mapping[str, float], metrics: Sequence[str], said: str, rule: str) -> list[Score]:
    return [Score(request.key, metric, values[metric], said, rule) for metric in metrics]


def _unscored(
    request: Request, metrics: Sequence[str], reason: str, places: Sequence[Sequence[float]] = ()
) -> list[Score]:
    return [Score(request.key, metric, None, _words(places) if places else None, None, reason) for metric in metrics]

"""Replies that point to scores: one box by its overlap, one click by whether it falls inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.config import convert
from ...core.errors import ConfigError
from ...core.types import Prediction, Request, Sample, Score
from ..scorers.replies import figure_text
from ..scorers.text_match import NO_REFERENCE
from .coordinates import (
    Box,
    Coordinates,
    FrameProblem,
    fractions,
    has_area,
    is_inside,
    overlap,
    picture_size,
    place_box,
)
from .spots import Spotted, read_box, read_point

OVERLAP, HIT, CLICK = "iou", "acc_0.5", "accuracy"
"""The mean overlap, the share of boxes that overlap by half (REC), the share of clicks inside."""
HALF = 0.5
OPTION = "coordinates"


def score_box(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Metrics `iou` and `acc_0.5` of the one box a reply gives; the frames are the card's `coordinates`."""
    told = _coordinates(options)
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
    """Metric `accuracy`: the one point of a reply (or the middle of its one box) lies in the box of the answer."""
    told = _coordinates(options)
    found = read_point(prediction.text or "")
    try:
        golds = gold_boxes(sample, prediction, told)
        if not golds or not found.values:
            return _unscored(request, (CLICK,), NO_REFERENCE if not golds else found.reason)
        point = _point(found, told, picture_size(told.reply, sample, prediction))
    except FrameProblem as problem:
        return _unscored(request, (CLICK,), str(problem), found)
    hit = any(is_inside(point, gold) for gold in golds)
    return [Score(request.key, CLICK, float(hit), _words(found), "point" if len(found.values) == 2 else "box")]


def gold_boxes(sample: Sample, prediction: Prediction, told: Coordinates) -> list[Box]:
    """Return the boxes of the answers, each written as its four numbers, in fractions of the picture."""
    size = picture_size(told.gold, sample, prediction)
    boxes = [place_box(_gold_numbers(answer), told.gold, told.gold_order, size) for answer in sample.answers]
    flat = next((answer for answer, box in zip(sample.answers, boxes, strict=True) if not has_area(box)), None)
    if flat is not None:
        raise FrameProblem(f"the answer {flat[:40]!r} is a box without area")
    return boxes


def _gold_numbers(answer: str) -> tuple[float, ...]:
    found = read_box(answer)
    if not found.values:
        raise FrameProblem(f"the answer {answer[:40]!r} is not a box: {found.reason}")
    return found.values


def _coordinates(options: Mapping[str, Any]) -> Coordinates:
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

"""Replies that name all objects of a picture to scores: how many were found, and COCO's average precision over a set.

The answer of a sample is its boxes with their labels as JSON; a reply gives its own as JSON, in the frame of the card.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.frames import FrameProblem
from ...core.text import json_objects
from ...core.types import Estimate, Prediction, Request, Sample, Score
from ...extract.extraction import EMPTY, UNPARSED
from ...stats.average_precision import Boxes, Picture, hits, mean_average_precision
from ..scorers.grounding import coordinates_of, picture_size, place_box
from ..scorers.replies import NO_REFERENCE, answer_text
from ..tables.table import ScoredTask

FOUND = "found_0.5"
"""The share of a picture's objects that a box of their label overlaps by half."""
FOUND_BOXES, THERE = "boxes", "there"
"""What a score keeps for its set: the boxes of the reply and those that are there, in fractions of the picture."""
BOX_KEYS = ("bbox_2d", "bbox", "box_2d", "box")
LABEL_KEYS = ("label", "class", "category", "name", "class_name")
SET = "dataset_name"
"""The tag that says which set of a benchmark a picture is of."""


class Labelled(NamedTuple):
    """A box with its label, in lower case, in fractions of the picture."""

    label: str
    box: tuple[float, float, float, float]


def said_boxes(text: str) -> list[tuple[str, list[float]]] | None:
    """Return the boxes of a reply with their labels, as it writes them; None where it holds no JSON of boxes at all."""
    found = list(_in(list(json_objects(text))))
    return found if found or "[]" in "".join(text.split()) else None


def _in(value: Any) -> Iterator[tuple[str, list[float]]]:
    """Yield the boxes in a parsed value, however deep."""
    if isinstance(value, list):
        for one in value:
            yield from _in(one)
    elif isinstance(value, dict):
        box = next((value[key] for key in BOX_KEYS if key in value), None)
        if isinstance(box, list) and len(box) == 4 and all(isinstance(one, int | float) for one in box):
            label = next((value[key] for key in LABEL_KEYS if key in value), "")
            yield str(label), [float(one) for one in box]
        else:
            yield from _in(list(value.values()))


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `detections`: metric `found_0.5`; the boxes stay in its detail, for the average precision of the set."""
    told, text = coordinates_of(options), answer_text(prediction) or ""
    said = said_boxes(text)
    boxes: list[Labelled] = []
    there: list[Labelled] = []
    reason = None if said is not None else UNPARSED if text else EMPTY
    try:
        there = _placed(_answer(sample), told.gold, told.gold_order, picture_size(told.gold, sample, prediction))
        size = picture_size(told.reply, sample, prediction)
        boxes = _placed(said or [], told.reply, told.reply_order, size)
    except FrameProblem as problem:
        reason = str(problem)
    detail = {FOUND_BOXES: [[label, *box] for label, box in boxes], THERE: [[label, *box] for label, box in there]}
    if reason is not None or not there:  # where nothing is there, what was named counts against its set
        return [Score(request.key, FOUND, None, reason=reason or NO_REFERENCE, detail=detail)]
    right = sum(int(hits(_picture(there, boxes, label), 0.5).sum()) for label in {one.label for one in there})
    return [Score(request.key, FOUND, right / len(there), f"{len(boxes)} boxes", "boxes", detail=detail)]


def _answer(sample: Sample) -> list[tuple[str, list[float]]]:
    return [(label, box) for label, box in json.loads(sample.answers[0])] if sample.answers else []


def _placed(
    rows: Sequence[tuple[str, list[float]]], frame: str, order: str, size: tuple[int, int] | None
) -> list[Labelled]:
    return [Labelled(_fold(label), place_box(box, frame, order, size)) for label, box in rows]


def _fold(label: str) -> str:
    return str(label).strip().lower()


def _picture(there: Sequence[Labelled], found: Sequence[Labelled], label: str) -> Picture:
    return Picture(_boxes_of(there, label), _boxes_of(found, label))


def _boxes_of(boxes: Sequence[Labelled], label: str) -> Boxes:
    return np.array([one.box for one in boxes if one.label == label], np.float64).reshape(-1, 4)


def average_precision(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Aggregate `detections`: `mAP`, `mAP50` and `mAP75`, each the mean of the sets; a reply without boxes found none.

    No interval: it would need the whole set drawn again many times.
    """
    sets: dict[str, dict[str, list[Picture]]] = defaultdict(lambda: defaultdict(list))
    count = 0
    for sample, one in scored.scores():
        if one.metric != FOUND:
            continue
        count += 1
        there, named = ([Labelled(row[0], tuple(row[1:])) for row in one.detail[key]] for key in (THERE, FOUND_BOXES))
        for label in {box.label for box in (*there, *named)}:
            sets[str(sample.tags.get(SET, ""))][label].append(_picture(there, named, label))
    return {
        name: Estimate(_mean_of_sets(sets, at), n=count, unit="trials")
        for name, at in (("mAP", None), ("mAP50", (0.5,)), ("mAP75", (0.75,)))
    }


def _mean_of_sets(sets: Mapping[str, Mapping[str, list[Picture]]], at: Sequence[float] | None) -> float | None:
    found = [mean_average_precision(classes.values(), at) for classes in sets.values()]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None

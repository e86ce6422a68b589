"""Boxes that were found and boxes that are there to the average precision of COCO: 101 recalls, ten overlaps.

Lin et al. 2014, as its own evaluation computes it for boxes without scores: all are equally sure, so they count in the
order in which they were named; at most 100 of a class in a picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]
"""One row a box: left, top, right, bottom."""
OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
MOST = 100


class Picture(NamedTuple):
    """The boxes of one class in one picture."""

    there: Boxes
    found: Boxes


def overlaps(found: Boxes, there: Boxes) -> NDArray[np.float64]:
    """Return the intersection over union of every found box with every one that is there."""
    low = np.maximum(found[:, None, :2], there[None, :, :2])
    high = np.minimum(found[:, None, 2:], there[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0.0, None), axis=2)
    sizes = [np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None), axis=1) for boxes in (found, there)]
    union = sizes[0][:, None] + sizes[1][None, :] - shared
    shares: NDArray[np.float64] = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return shares


def hits(picture: Picture, least: float) -> NDArray[np.bool_]:
    """Tell of each found box whether it takes one that is there: the one it overlaps most, if that is still free."""
    found = picture.found[:MOST]
    table = overlaps(found, picture.there) if len(found) and len(picture.there) else np.zeros((len(found), 0))
    free = np.ones(table.shape[1], dtype=bool)
    taken = np.zeros(len(found), dtype=bool)
    for at, row in enumerate(table):
        open_ones = np.flatnonzero(free & (row >= min(least, 1 - 1e-10)))
        if open_ones.size:
            best = open_ones[np.flatnonzero(row[open_ones] == row[open_ones].max())[-1]]  # the last of equals, as there
            free[best], taken[at] = False, True
    return taken


def average_precision(pictures: Sequence[Picture], least: float) -> float | None:
    """Return the average precision of one class at one overlap; None where no box of it is there."""
    wanted = sum(len(picture.there) for picture in pictures)
    if not wanted:
        return None
    right = np.concatenate([hits(picture, least) for picture in pictures]).astype(np.float64)
    if not right.size:
        return 0.0
    total = np.cumsum(right)
    precision = total / np.arange(1, right.size + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(total / wanted, RECALLS, side="left")
    return float(np.sum(precision[places[places < right.size]]) / RECALLS.size)


def mean_average_precision(classes: Iterable[Sequence[Picture]], at: Sequence[float] | None = None) -> float | None:
    """Return the mean over classes and overlaps (all ten, or those of `at`); None where no box is there."""
    least = OVERLAPS if at is None else at
    found = [average_precision(pictures, float(one)) for pictures in classes for one in least]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None

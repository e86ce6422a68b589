"""Variants that show more or fewer frames to a curve: the metric against frames, and against what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...core.types import Estimate
from ...core.variants import format_variant, parse_variant
from ...scoring.table import Costs, TrialColumns
from ...stats.intervals import estimate_mean

AXES = ("frames", "fps")
"""Axes of variants whose value is a number of frames, or of frames a second."""


class FramePoint(NamedTuple):
    """One variant: the rest of its axes, how many frames it shows, its metric, and its mean tokens, both ways."""

    series: str
    frames: float
    estimate: Estimate
    tokens: float | None


def frame_points(columns: TrialColumns, costs: Costs, axis: str) -> list[FramePoint]:
    """Return the variants that differ in a number of frames, in order; none where there are not two of a kind."""
    found = []
    for code, variant in enumerate(columns.variants):
        axes = dict(parse_variant(variant))
        number = _number(axes.pop(axis, ""))
        rows = np.flatnonzero(columns.variant == code)
        if number is not None and rows.size:
            found.append(FramePoint(format_variant(axes), number, _estimate(columns, rows), _tokens(costs, rows)))
    several = {point.series for point in found if sum(point.series == other.series for other in found) > 1}
    return sorted((point for point in found if point.series in several), key=lambda point: (point.series, point.frames))


def _estimate(columns: TrialColumns, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Estimate:
    scored = rows[columns.scored[rows]]
    return estimate_mean(columns.value[scored], columns.cluster[scored], n=int(scored.size))


def _tokens(costs: Costs, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float | None:
    """Return the mean tokens of question and reply; frames are in the question. None where one of them is not known."""
    asked = costs.input_tokens[rows]
    return float((asked + costs.tokens[rows]).mean()) if asked.size and bool((asked > 0).all()) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def curve_rows(points: list[FramePoint], x: str) -> Iterator[dict[str, float | str | None]]:
    """Yield the points of a curve over `frames` or `tokens`, as they are drawn; what has no value is left out."""
    for point in points:
        place = point.frames if x == "frames" else point.tokens
        if point.estimate.value is not None and place is not None:
            low, high = point.estimate.ci95 or (None, None)
            yield {"series": point.series, "x": place, "value": point.estimate.value, "low": low, "high": high}

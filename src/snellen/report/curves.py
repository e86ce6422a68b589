"""Points of a curve -> lines of text: a small plot for the terminal, with axes, in Unicode braille."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.types import Sample, Score
from ..scoring.aggregates.acuity import curve_of
from ..store.reader import RunReader

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille cell, by row and column."""
MARKS = "●"

Point = tuple[float, float]


def plot_acuity(pairs: Iterable[tuple[Sample, Score]]) -> list[str]:
    """Return the acuity curve of an eye chart run as text, and the contrast curve below it if there is one."""
    pairs, lines = list(pairs), []
    for axis, label in (("base", "glyph height, px"), ("contrast", "contrast of the ink")):
        points, fitted = curve_of(pairs, axis)
        threshold, slope = fitted or (None, None)
        lines += plot_curve(points, threshold=threshold, slope=slope, x_label=label) if points else []
    return lines


def plot_run(folder: Path, task: str) -> list[str]:
    """Return the curves of one eye chart task of a scored run."""
    with RunReader(folder) as reader:
        samples = {sample.id: sample for sample in reader.samples(task)}
        return plot_acuity([(samples[score.key.sample], score) for score in reader.scores(task)])


def plot_curve(
    points: Sequence[Point],
    *,
    width: int = 56,
    height: int = 10,
    threshold: float | None = None,
    slope: float | None = None,
    x_label: str = "glyph height, px",
    y_label: str = "read",
) -> list[str]:
    """Return text lines: measured points as ●, the fitted logistic dotted; x is logarithmic, y runs from 0 to 100 %."""
    kept = _plottable(points)
    if not kept:
        return [f"(no points to plot: {x_label})"]
    low, high = math.log(min(kept)[0]), math.log(max(kept)[0])
    span = (high - low) or 1.0
    cells = [[0] * width for _ in range(height)]
    if threshold is not None and slope is not None:
        _trace(cells, low, span, (threshold, slope))
    rows = [[chr(0x2800 + cell) if cell else " " for cell in row] for row in cells]
    for x, y in kept:
        rows[round((1 - y) * (height - 1))][round((math.log(x) - low) / span * (width - 1))] = MARKS
    return [*_frame(rows, y_label), *_x_axis(low, span, width, (threshold, x_label))]


def _plottable(points: Sequence[Point]) -> list[Point]:
    return [(x, min(1.0, max(0.0, y))) for x, y in points if x > 0 and math.isfinite(x) and math.isfinite(y)]


def _trace(cells: list[list[int]], low: float, span: float, curve: tuple[float, float]) -> None:
    height, width = len(cells), len(cells[0])
    threshold, slope = curve
    for column in range(width * 2):
        x = low + span * column / (width * 2 - 1)
        exponent = max(-50.0, min(50.0, -slope * (x - math.log(threshold))))
        row = round((1 - 1 / (1 + math.exp(exponent))) * (height * 4 - 1))
        cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]


def _frame(rows: list[list[str]], y_label: str) -> list[str]:
    last = len(rows) - 1
    labels = {0: "100%", round(last / 2): "50%", last: "0%"}
    framed = [
        f"{labels.get(number, ''):>5} {'┤' if number in labels else '│'}{''.join(row).rstrip()}"
        for number, row in enumerate(rows)
    ]
    return [f"{y_label:>5}", *framed]


def _x_axis(low: float, span: float, width: int, marks: tuple[float | None, str]) -> list[str]:
    threshold, x_label = marks
    ticks, labels = ["─"] * width, [" "] * (width + 8)
    for value in _tick_values(low, low + span):
        place = round((math.log(value) - low) / span * (width - 1))
        text = f"{value:g}"
        start = max(0, place - len(text) // 2)
        if all(char == " " for char in labels[max(0, start - 1) : start + len(text) + 1]):
            ticks[place] = "┴"
            labels[start : start + len(text)] = text
    half = f" · half is read at {threshold:.3g}" if threshold is not None else ""
    return ["      └" + "".join(ticks), "       " + "".join(labels).rstrip(), f"       {x_label}{half}"]


def _tick_values(low: float, high: float) -> list[float]:
    decades = range(math.floor(low / math.log(10)) - 1, math.ceil(high / math.log(10)) + 1)
    values = [float(f"{digit}e{power}") for power in decades for digit in (1, 2, 3, 5, 7)]
    return [value for value in values if low - 1e-9 <= math.log(value) <= high + 1e-9]

"""A stored task to its figures: each a drawing for the page, a Vega-Lite specification, and its rows as data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.markup import Html
from ...core.types import Sample, Score
from ...core.vega import quantity
from ...scoring.aggregates.calibration import reliability
from ...scoring.aggregates.means import split
from ...scoring.aggregates.robustness import curve, ladders
from ...scoring.gathered import GatheredTask
from ...scoring.scorers.acuity import curve_of
from ...scoring.stored import read_costs
from ...scoring.table import Costs, ScoreTable, TrialColumns
from ...store.reader import RunReader
from . import vega
from .answer_figures import answer_figures
from .draw import Axis, Point, Series, bars, heat, plot
from .exam_figures import binned
from .frame_curves import AXES, curve_rows, frame_points

Rows = list[dict[str, Any]]
LATENCY = "latency"
"""The figure that never stands first: it says nothing of how good a model is."""
GRIDS = (("length", "depth"), ("pages", "depth"), ("column", "row"))
"""Pairs of tags that make a map."""


class Figure(Struct, frozen=True):
    """One figure. `rows` are all that is drawn, so that anyone can draw it again."""

    name: str
    title: str
    caption: str
    drawing: Html
    spec: dict[str, Any]
    rows: Rows
    series: tuple[str, ...] = ()


def figures_of(
    reader: RunReader, columns: TrialColumns, table: ScoreTable | None, gathered: GatheredTask | None = None
) -> list[Figure]:
    """Return every figure the task has data for, the most telling first; what was `gathered` is not read again."""
    found = [*_acuity(reader, columns), *_examined(reader, columns)]
    if table is not None:
        found += _robustness(table)
        found += _maps(table)
        found += [
            Figure(*one) for one in answer_figures(reader, columns, table, gathered.stood() if gathered else None)
        ]
    found += _calibration(reader, columns)
    spent = gathered.costs() if gathered else read_costs(reader, columns)
    return [*found, *_by_frames(columns, spent), *_latency(spent)]


def _acuity(reader: RunReader, columns: TrialColumns) -> Iterator[Figure]:
    if "axis" not in columns.tags:
        return
    samples = {sample.id: sample for sample in reader.samples(columns.task.name)}
    scores = reader.scores(columns.task.name)
    pairs = [(samples[score.key.sample], score) for score in scores if score.key.sample in samples]
    small = _acuity_figure(pairs, "base", "How small can it read?", "glyph height, px")
    faint = _acuity_figure(pairs, "contrast", "How faint can it read?", "contrast of the ink")
    yield from (figure for figure in (small, faint) if figure is not None)


def _acuity_figure(pairs: list[tuple[Sample, Score]], axis: str, title: str, name: str) -> Figure | None:
    points, fitted = curve_of(pairs, axis)
    if not points:
        return None
    low, high = points[0][0], max(points[-1][0], points[0][0] * 1.01)
    line = _logistic(fitted, low, high) if fitted else []
    series = Series("read", [Point(*point) for point in points], line)
    half = fitted[0] if fitted and low <= fitted[0] <= high else None
    words = f"Half is read at {half:.3g} ({name})." if half else "No threshold within the tested range."
    axes = Axis(name, low, high, log=True), Axis("read", 0, 1, percent=True)
    drawing = plot([series], *axes, label=f"{title} {words}", mark=half)
    drawn = (("measured", points), ("fit", line))
    rows: Rows = [{"series": series, "x": x, "value": y} for series, pairs in drawn for x, y in pairs]
    spec = vega.curves(_unbounded(rows), "x", title=title, labels={"x": name, "value": "read"}, log_x=True)
    caption = f"Share of glyphs read; dots are measured, the line is a fitted logistic. {words}"
    return Figure(f"acuity-{axis}", title, caption, drawing, spec, rows)


def _examined(reader: RunReader, columns: TrialColumns) -> Iterator[Figure]:
    """Yield the trials of an eye exam by level; the curve with its band is in prescription.html."""
    if "exam" not in columns.task.scorers:
        return
    samples = {sample.id: sample for sample in reader.samples(columns.task.name)}
    rows = [
        (float(str(samples[score.key.sample].tags["level"])), score.detail["right"], score.detail["glyphs"])
        for score in reader.scores(columns.task.name)
        if "right" in score.detail and score.key.sample in samples
    ]
    points = binned([row for row in rows if row[0] > 0])
    if len(points) < 2:
        return
    title, name = f"{columns.task.title}: right by level", "level"
    axes = Axis(name, points[0][0], points[-1][0], log=True), Axis("right", 0, 1, percent=True)
    drawing = plot([Series("right", [Point(level, share) for level, share, _ in points])], *axes, label=title)
    drawn: Rows = [{"series": "measured", "x": level, "value": share} for level, share, _ in points]
    spec = vega.curves(_unbounded(drawn), "x", title=title, labels={"x": name, "value": "right"}, log_x=True)
    caption = "Share right at the levels the exam chose, chance included; the fitted curve is in prescription.html."
    yield Figure("exam-curve", title, caption, drawing, spec, drawn)


def _logistic(fitted: tuple[float, float], low: float, high: float) -> list[tuple[float, float]]:
    threshold, slope = fitted
    exponents = ((x, -slope * (math.log(x) - math.log(threshold))) for x in np.geomspace(low, high, 80))
    return [(float(x), 1.0 / (1.0 + math.exp(min(50.0, exponent)))) for x, exponent in exponents]


def _unbounded(rows: Rows) -> Rows:
    return [row | {"low": None, "high": None} for row in rows]


def _robustness(table: ScoreTable) -> Iterator[Figure]:
    series: list[Series] = []
    rows: Rows = []
    for ladder in ladders(table):
        points = []
        for severity, estimate in curve(ladder).items():
            if estimate.value is not None:
                value, (low, high) = estimate.value, estimate.ci95 or (None, None)
                points.append(Point(float(severity), value, low, high))
                rows.append({"series": ladder.family, "severity": severity, "value": value, "low": low, "high": high})
        series.append(Series(ladder.family, points))
    if rows:
        top = max(row["severity"] for row in rows)
        axes = Axis("severity", 0, top), Axis(table.metric, 0, 1, percent=True)
        drawing = plot(series, *axes, label=f"{table.metric} by severity of each degradation")
        spec = vega.curves(rows, "severity", title="Robustness", labels={"value": table.metric})
        caption = "Severity 0 is the untouched picture; bands are 95 % intervals."
        names = tuple(one.name for one in series)
        yield Figure("robustness", "What degradation does", caption, drawing, spec, rows, names)


def _by_frames(columns: TrialColumns, costs: Costs) -> Iterator[Figure]:
    """Yield what more frames of a video bring, and what they cost."""
    for axis in AXES:
        points = frame_points(columns, costs, axis)
        name = {"frames": "frames shown", "fps": "frames a second"}[axis]
        for x, label in (("frames", name), ("tokens", "tokens a question")):
            rows: Rows = list(curve_rows(points, x))
            if len({row["x"] for row in rows}) < 2:
                continue
            names = tuple(dict.fromkeys(row["series"] for row in rows))
            series = [
                Series(one, [Point(r["x"], r["value"], r["low"], r["high"]) for r in rows if r["series"] == one])
                for one in names
            ]
            low, high = min(row["x"] for row in rows), max(row["x"] for row in rows)
            title = f"{columns.metric} against {label}"
            axes = Axis(label, low, high, log=True), Axis(columns.metric, 0, 1, percent=True)
            spec = vega.curves(rows, "x", title=title, labels={"x": label, "value": columns.metric}, log_x=True)
            caption = "One point a variant; the band is the 95 % interval."
            yield Figure(f"{axis}-{x}", title, caption, plot(series, *axes, label=title), spec, rows, names)


def _calibration(reader: RunReader, columns: TrialColumns) -> Iterator[Figure]:
    confidences, right = _confidences(reader, columns)
    if len(right) < 2:
        return
    filled = [part for part in reliability(confidences, right) if part.n]
    points = [Point(part.confidence or 0.0, part.accuracy or 0.0) for part in filled]
    measured = ({"confidence": part.confidence, "value": part.accuracy, "n": part.n} for part in filled)
    rows: Rows = [{"series": "measured", **part} for part in measured]
    series = [Series("measured", points), Series("perfectly calibrated", [], [(0.0, 0.0), (1.0, 1.0)])]
    label = f"Reliability: {columns.metric} against confidence, {len(right):,} trials"
    axes = Axis("confidence", 0, 1, percent=True), Axis(columns.metric, 0, 1, percent=True)
    drawing = plot(series, *axes, label=label)
    spec = vega.curves(_unbounded(rows), "confidence", title="Reliability", labels={"value": columns.metric})
    caption = "Points below the diagonal: surer than right. Points above: less sure than it could be."
    names = tuple(one.name for one in series)
    yield Figure("calibration", "Does it know when it is right?", caption, drawing, spec, rows, names)


_CONFIDENCES = (
    "SELECT c.value, c.detail FROM scores c JOIN samples s ON s.task = c.task AND s.id = c.sample "
    "WHERE c.task = ? AND c.metric = ? AND c.value IS NOT NULL AND instr(c.detail, CAST('\"confidence\"' AS BLOB)) "
    "ORDER BY s.position, c.variant, c.repeat, c.rowid"
)


def _confidences(reader: RunReader, columns: TrialColumns) -> tuple[list[float], list[float]]:
    rows = reader.rows(_CONFIDENCES, (columns.task.name, columns.metric))
    details = ((value, msgspec.json.decode(detail)) for value, detail in rows)
    known = [(float(detail["confidence"]), value) for value, detail in details if "confidence" in detail]
    return [pair[0] for pair in known], [pair[1] for pair in known]


def _maps(table: ScoreTable) -> Iterator[Figure]:
    for across, down in GRIDS:
        if across not in table.tags or down not in table.tags:
            continue
        cells = []
        for x, part in split(table, across):
            for y, cell in split(part, down):
                scored = cell.value[cell.scored]
                cells.append((x, y, float(scored.mean()) if scored.size else None, len(cell)))
        cells.sort(key=lambda cell: (_as_number(cell[0]), _as_number(cell[1])))
        rows: Rows = [{across: x, down: y, "value": value, "n": n} for x, y, value, n in cells]
        title = f"{table.metric} by {across} and {down}"
        drawing = heat(cells, x_name=across, y_name=down, label=title)
        caption, spec = "Each cell: mean of its scored trials, and how many.", vega.heat_map(rows, across, down)
        yield Figure(f"map-{across}-{down}", title, caption, drawing, spec, rows)


def _as_number(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value


def quantile(ordered: NDArray[np.float64], share: float) -> float:
    """Return what `np.quantile` returns, for values already in order; numpy's own loads its masked arrays first."""
    place = share * (ordered.size - 1)
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, ordered.size - 1)])
    part = place - below
    return high - (high - low) * (1.0 - part) if part >= 0.5 else low + (high - low) * part


def _latency(costs: Costs) -> Iterator[Figure]:
    known = np.sort(costs.latency_s[~np.isnan(costs.latency_s)])
    if known.size < 2 or known[-1] <= 0:
        return
    top = quantile(known, 0.99) or float(known[-1])
    counts, edges = np.histogram(np.minimum(known, top), bins=min(24, max(5, known.size // 4)), range=(0.0, top))
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    triples = [(float(low), float(high), int(count)) for low, high, count in bins]
    rows: Rows = [{"from_s": low, "to_s": high, "trials": count} for low, high, count in triples]
    median, tail = quantile(known, 0.5), quantile(known, 0.95)
    words = f"Median {median:.3g} s, 95th percentile {tail:.3g} s over {known.size:,} replies that were not cached."
    encoding = {"x": quantity("from_s", title="seconds"), "x2": {"field": "to_s"}, "y": quantity("trials")}
    spec = {"data": {"values": rows}, "mark": "bar", "encoding": encoding}
    drawing = bars(triples, Axis("seconds", 0.0, top), label=f"Histogram of latency. {words}")
    yield Figure(LATENCY, "How long a reply takes", words, drawing, spec, rows)

"""A reply to an eye chart -> the share of glyphs read above chance; all charts -> acuity and contrast threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.types import Estimate, Prediction, Request, Sample, Score
from ...stats.distributions import binomial_cdf
from ...stats.intervals import Floats, estimate_mean
from ...stats.psychometric import Rows, Threshold, fit_threshold
from ..scorers.chart_rows import Row, Shape, glyphs_of, read_rows
from ..scorers.replies import answer_text
from .means import in_unit

BINS = 14
"""Points of the plotted curve at most."""
NOT_BY_CHANCE = 5e-3
"""So seldom would a guesser be right so rarely: then nothing is taken off for guessing."""
SURE = 0.95
"""How probable it must be that the threshold lies within the tested range; else there is none to report."""
HABIT_WIDTH = 0.3
"""In ln strength: how near rows are that tell how a reader deals with glyphs it does not see."""
Pairs = Sequence[tuple[Sample, Score]]
Column = NDArray[np.float64]


class Charts(NamedTuple):
    """The rows of charts as columns; `chart` says which chart a row is of. `wrong` were tried in vain."""

    chart: NDArray[np.int64]
    strength: Column
    glyphs: Column
    right: Column
    wrong: Column
    chance: Column
    weight: Column


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return one score `read`: the mean over rows of the share of glyphs read above chance."""
    lines = sample.meta.get("lines") or ()
    truths = [glyphs_of(str(line["text"])) for line in lines]
    text = answer_text(prediction)
    reason = _why_unread(truths, sample.meta.get("chance"), text, prediction.finish)
    if reason or text is None:
        return [Score(prediction.key, "read", None, reason=reason)]
    sizes = [(float(line["height_px"]), float(line.get("contrast", 1.0))) for line in lines]
    shape = Shape(str(sample.meta.get("alphabet", "")), float(sample.meta["chance"]))
    rows, rule = read_rows(truths, text, shape)
    return [Score(prediction.key, "read", share_read(rows), answer=text[:500], rule=rule, detail=_detail(rows, sizes))]


def _why_unread(truths: Sequence[str], chance: object, text: str | None, finish: str | None) -> str | None:
    """Return why a reply to a chart cannot be scored, or None if it can."""
    if not truths:
        return "the sample holds no chart lines"
    if chance is None:
        return "the chart does not state the chance to guess a glyph"
    if text is None:
        return "truncated inside its thinking block"
    return "truncated: the rows after the cut are not known" if finish == "length" else None


def _detail(rows: Sequence[Row], sizes: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return what is stored of a chart: its rows, and how far the reader kept to form."""
    return {
        "lines": [
            (*size, row.glyphs, row.right, round(row.wrong, 4), round(row.chance, 4))
            for size, row in zip(sizes, rows, strict=True)
        ],
        "written": sum(row.written for row in rows),
        "outside": sum(row.outside for row in rows),
        "rows": sum(row.written > 0 for row in rows),
        "wrong_length": sum(row.written > 0 and not row.by_place for row in rows),
    }


def share_read(rows: Sequence[Row]) -> float:
    """Return the mean over rows of the share read, less what the wrong guesses tell of right ones.

    Who writes w wrong glyphs by guessing hits w·c/(1-c) by chance. Nothing is taken off where so few are right that
    guessing is out of the question: who gets every glyph wrong reads 0, and not less.
    """
    right, tried = sum(row.right for row in rows), sum(max(row.written, row.right) for row in rows)
    chance = sum(row.chance * row.glyphs for row in rows) / sum(row.glyphs for row in rows)
    lucky = 0.0 if binomial_cdf(right, tried, chance) < NOT_BY_CHANCE else 1.0
    shares = [(row.right - lucky * row.wrong * row.chance / (1 - row.chance)) / row.glyphs for row in rows]
    return sum(shares) / len(shares)


def acuity(table: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
    """Return `acuity_px` (glyph height at which half is read above chance): plain charts, scripts, conditions; and
    `contrast_threshold`.

    `table` has a method `scores()`, or is itself an iterable of (Sample, Score).
    """
    pairs = counted(table.scores() if hasattr(table, "scores") else table)
    names = {condition_of(sample) for sample, _ in pairs}
    estimates = {"acuity_px": threshold(on_axis(pairs, "base"))}
    for axis, name in sorted(names, key=lambda item: (item[0] == "contrast", item)):
        chosen = [pair for pair in pairs if condition_of(pair[0]) == (axis, name)]
        if axis == "contrast":
            estimates["contrast_threshold"] = threshold(chosen, column=1)
        elif axis or sum(not other for other, _ in names) > 1:
            estimates[f"acuity_px/{name}"] = threshold(chosen)
    return in_unit("charts", estimates) | in_unit("trials", habits(pairs))


def habits(pairs: Pairs) -> dict[str, Estimate]:
    """Return how far a reader keeps to what it was told: rows of another length, glyphs outside the alphabet."""
    details = [item.detail for _, item in pairs if item.detail.get("written")]
    if not details:
        return {}
    lengths = np.array([detail["wrong_length"] / detail["rows"] for detail in details])
    outside = np.array([detail["outside"] / detail["written"] for detail in details])
    return {
        "wrong_length_rate": estimate_mean(lengths),
        "outside_alphabet_rate": estimate_mean(outside),
    }


def counted(pairs: Iterable[tuple[Sample, Score]]) -> list[tuple[Sample, Score]]:
    """Keep what the curve is made of: glyphs read, choices right, and choices not made, which are not seen."""
    kept = []
    for sample, item in pairs:
        if item.metric == "accuracy" or (item.metric == "read" and item.value is not None):
            kept.append((sample, item))
    return kept


def axis_of(sample: Sample) -> str:
    """Return in which way a chart is hard; `base` is none."""
    return str(sample.tags.get("axis", "base"))


def on_axis(pairs: Pairs, axis: str) -> Pairs:
    """Return the charts of an axis; words only where there is nothing else.

    How often a guess at a word hits depends on who guesses; for single glyphs drawn at random it is known.
    """
    chosen = [pair for pair in pairs if axis_of(pair[0]) == axis]
    exact = [pair for pair in chosen if pair[0].tags.get("script") != "words"]
    return exact or chosen


def condition_of(sample: Sample) -> tuple[str, str]:
    """Return (axis, name) of a chart's condition; plain charts have the axis "" and their script as name."""
    axis = axis_of(sample)
    if axis == "base":
        return "", str(sample.tags.get("script", "letters"))
    level = sample.tags.get("level")
    return axis, f"{axis}={level:g}" if isinstance(level, int | float) else f"{axis}={level}"


def threshold(pairs: Pairs, column: int = 0) -> Estimate:
    """Estimate the height (column 0) or contrast (column 1) at which half is read above chance.

    None where it may well lie outside the tested range (or where nothing or everything is read); the interval ends
    with that range.
    """
    charts = rows_of(pairs, column)
    fitted = fit_charts(charts)
    count = int(np.unique(charts.chart).size)
    if fitted is None or fitted.inside < SURE:
        return Estimate(None, n=count)
    low, high = float(charts.strength.min()), float(charts.strength.max())
    limits = (max(low, math.exp(fitted.interval[0])), min(high, math.exp(fitted.interval[1])))
    return Estimate(math.exp(fitted.value), (limits[1] - limits[0]) / (2 * 1.96), limits, count)


def fit_charts(charts: Charts) -> Threshold | None:
    """Fit the curve to rows of charts; None where nothing or everything is right, or no two heights are there."""
    if not charts.right.any() or bool(np.all(charts.right == charts.glyphs)):
        return None
    return fit_threshold(Rows(np.log(charts.strength), charts.glyphs, charts.right, guesses(charts), charts.weight))


def guesses(charts: Charts) -> Floats:
    """Return the chance of every row: how often a guess counts, times how often an unseen glyph is guessed at all.

    Who writes `?` or nothing has no luck. The habit is taken from rows of about the same strength: n wrong guesses
    stand for n/(1-c) guesses, and what is neither right nor wrong was left unsaid.
    """
    tried = charts.wrong / (1.0 - charts.chance) * charts.weight
    unsaid = (charts.glyphs - charts.right - charts.wrong) * charts.weight
    if not unsaid.any():
        return charts.chance
    places = np.log(charts.strength)
    near = np.exp(-0.5 * ((places[:, None] - places) / HABIT_WIDTH) ** 2)
    guessed, silent = near @ tried, near @ unsaid
    return np.asarray(charts.chance * guessed / np.maximum(guessed + silent, 1e-12))


def rows_of(pairs: Pairs, column: int) -> Charts:
    """Return the rows of all charts; a chart that was asked several times weighs as one."""
    names: dict[str, int] = {}
    asked = Counter(sample.id for sample, _ in pairs)
    rows: list[tuple[float, ...]] = []
    for sample, item in pairs:
        chart = names.setdefault(sample.group or sample.id, len(names))
        lines = item.detail.get("lines") or _as_choice(sample, item)
        rows += [(chart, line[column], *line[2:6], 1 / asked[sample.id]) for line in lines]
    table = np.array(rows, dtype=np.float64).reshape(-1, 7)
    return Charts(table[:, 0].astype(np.int64), *table[:, 1:].T)


def _as_choice(sample: Sample, item: Score) -> list[tuple[float, ...]]:
    lines = sample.meta.get("lines") or ()
    right = item.value or 0.0
    wrong = 0.0 if item.value is None else 1.0 - right
    chance = 1.0 / len(sample.options) if sample.options else 0.0
    return [(float(line["height_px"]), float(line.get("contrast", 1.0)), 1, right, wrong, chance) for line in lines]


def curve_of(
    pairs: Iterable[tuple[Sample, Score]], axis: str = "base"
) -> tuple[list[tuple[float, float]], tuple[float, float] | None]:
    """Return points (height in px or contrast, share read above chance) in bins, and (threshold, slope) of the fit."""
    chosen = on_axis(counted(pairs), axis)
    column = 1 if axis == "contrast" else 0
    charts = rows_of(chosen, column)
    if not charts.strength.size:
        return [], None
    edges = np.geomspace(charts.strength.min(), charts.strength.max() * (1 + 1e-9), BINS + 1)
    place = np.clip(np.searchsorted(edges, charts.strength, side="right") - 1, 0, BINS - 1)
    seen = (charts.right - charts.wrong * charts.chance / (1 - charts.chance)) * charts.weight
    points = [
        (
            float(np.exp(np.log(charts.strength[rows]).mean())),
            float(seen[rows].sum() / (charts.glyphs * charts.weight)[rows].sum()),
        )
        for rows in (place == index for index in np.unique(place))
    ]
    fitted = fit_charts(charts)
    return points, None if fitted is None or fitted.inside < SURE else (math.exp(fitted.value), fitted.slope)

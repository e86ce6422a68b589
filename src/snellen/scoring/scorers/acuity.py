"""A reply to an eye chart -> the fraction of glyphs read in each line; all charts -> acuity and contrast threshold."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from ...core.types import Estimate, Prediction, Request, Sample, Score
from ...stats.intervals import Floats
from ...stats.logistic import fit_curve, threshold_interval

MAX_REPLY = 20_000
"""Characters of a reply that are looked at; a chart has about a hundred."""
PREAMBLE = 3
"""Lines that a reply about one line may have, talk included."""
BINS = 14
"""Points of the plotted curve at most."""
Table = NDArray[np.float64]
"""One chart: rows of strength, glyphs (or questions), successes."""
Rows = list[tuple[float, float, int, int]]
"""Lines of a chart: (height in px, contrast, glyphs, glyphs read)."""


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Return one score `read`: the mean over lines of the fraction of glyphs read."""
    lines = sample.meta.get("lines") or ()
    truths = [glyphs_of(str(line["text"])) for line in lines]
    if not truths:
        return [Score(prediction.key, "read", None, reason="the sample holds no chart lines")]
    read = read_per_line(truths, prediction.text or "")
    rows: Rows = [
        (float(line["height_px"]), float(line.get("contrast", 1.0)), len(truth), count)
        for line, truth, count in zip(lines, truths, read, strict=True)
    ]
    value = sum(count / len(truth) for truth, count in zip(truths, read, strict=True)) / len(truths)
    return [
        Score(
            prediction.key,
            "read",
            value,
            answer=(prediction.text or "")[:500],
            rule="aligned lines",
            detail={"lines": rows},
        )
    ]


def glyphs_of(text: str) -> str:
    """Return the letters and digits of a text, in capitals and canonical width: what counts as read."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).upper() if char.isalnum())


def read_per_line(truths: Sequence[str], reply: str) -> list[int]:
    """Return how many glyphs of each line were read: its length less the edit distance to its line of the reply."""
    replies = [line for line in (glyphs_of(raw) for raw in reply[:MAX_REPLY].splitlines()) if line]
    if len(replies) == 1 and len(truths) > 1:
        return read_in_one_line(truths, replies[0])
    if len(truths) == 1 and len(replies) > PREAMBLE:
        replies = ["".join(replies)]  # one line was asked for: a dump of the whole chart is no reading of it
    return pair_lines([[glyphs_read(truth, line) for line in replies] for truth in truths])


def glyphs_read(truth: str, line: str) -> int:
    """Return the number of glyphs read, never below 0."""
    return max(0, len(truth) - Levenshtein.distance(truth, line))


def pair_lines(gains: Sequence[Sequence[int]]) -> list[int]:
    """Pair chart lines with reply lines in order, so that most glyphs count as read; return each line's share."""
    rows, columns = len(gains), len(gains[0]) if gains else 0
    best = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    for row in range(1, rows + 1):
        for column in range(1, columns + 1):
            paired = best[row - 1, column - 1] + gains[row - 1][column - 1]
            best[row, column] = max(paired, best[row - 1, column], best[row, column - 1])
    read, column = [0] * rows, columns
    for row in range(rows, 0, -1):
        while column and best[row, column] == best[row, column - 1]:
            column -= 1
        if column and best[row, column] != best[row - 1, column]:
            read[row - 1] = gains[row - 1][column - 1]
            column -= 1
    return read


def read_in_one_line(truths: Sequence[str], reply: str) -> list[int]:
    """Count glyphs read when the reply runs all lines together: the best alignment of the whole chart."""
    whole = "".join(truths)
    kept = [False] * len(whole)
    for block in Levenshtein.opcodes(whole, reply):
        if block.tag == "equal":
            kept[block.src_start : block.src_end] = [True] * (block.src_end - block.src_start)
    ends = np.cumsum([0, *map(len, truths)])
    return [sum(kept[start:end]) for start, end in pairwise(ends)]


def acuity(table: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
    """Return `acuity_px` (glyph height at which half is read): plain charts, scripts, conditions; `contrast_threshold`.

    `table` has a method `scores()`, or is itself an iterable of (Sample, Score). Choices are corrected for guessing.
    """
    pairs = counted(table.scores() if hasattr(table, "scores") else table)
    names = {condition_of(sample) for sample, _ in pairs}
    estimates = {"acuity_px": threshold([pair for pair in pairs if pair[0].tags.get("axis", "base") == "base"])}
    for axis, name in sorted(names, key=lambda item: (item[0] == "contrast", item)):
        chosen = [pair for pair in pairs if condition_of(pair[0]) == (axis, name)]
        if axis == "contrast":
            estimates["contrast_threshold"] = threshold(chosen, column=1)
        elif axis or sum(not other for other, _ in names) > 1:
            estimates[f"acuity_px/{name}"] = threshold(chosen)
    return estimates


def counted(pairs: Iterable[tuple[Sample, Score]]) -> list[tuple[Sample, Score]]:
    """Keep what the curve is made of: glyphs read, or choices right."""
    return [pair for pair in pairs if pair[1].value is not None and pair[1].metric in ("read", "accuracy")]


def condition_of(sample: Sample) -> tuple[str, str]:
    """Return (axis, name) of a chart's condition; plain charts have the axis "" and their script as name."""
    axis = str(sample.tags.get("axis", "base"))
    if axis == "base":
        return "", str(sample.tags.get("script", "letters"))
    level = sample.tags.get("level")
    return axis, f"{axis}={level:g}" if isinstance(level, int | float) else f"{axis}={level}"


def threshold(pairs: Sequence[tuple[Sample, Score]], column: int = 0) -> Estimate:
    """Estimate the height (column 0) or contrast (column 1) at which half is read; the interval is drawn over charts.

    A threshold outside the tested range is not reported, and the interval ends with that range.
    """
    charts = rows_by_chart(pairs, column)
    fitted = fit(charts, guess := guess_rate(pairs))
    if fitted is None:
        return Estimate(None, n=len(charts))
    half = guess + (1 - guess) / 2
    strengths = np.unique(np.concatenate(charts)[:, 0])
    trials, right = (np.array([_per_strength(chart, strengths, place) for chart in charts]) for place in (1, 2))
    interval = threshold_interval(np.log(strengths), right, trials, half, guess=guess)
    low, high = float(strengths[0]), float(strengths[-1])
    if not low <= fitted[0] <= high:
        return Estimate(None, n=len(charts))
    limits = None if interval is None else (max(low, math.exp(interval[0])), min(high, math.exp(interval[1])))
    return Estimate(fitted[0], None if limits is None else (limits[1] - limits[0]) / (2 * 1.96), limits, len(charts))


def fit(charts: Sequence[Table], guess: float = 0.0) -> tuple[float, float] | None:
    """Fit (threshold, slope in ln strength); None when everything or nothing was read, or no charts are there."""
    if not charts:
        return None
    strength, trials, right = pool(np.concatenate(charts))
    if not guess * trials.sum() < right.sum() < trials.sum():
        return None
    curve = fit_curve(np.log(strength), right, trials, guess=guess)
    place = None if curve is None else curve.where(guess + (1 - guess) / 2)
    return (
        None
        if curve is None or place is None or curve.slope <= 0 or abs(place) > 20
        else (math.exp(place), curve.slope)
    )


def guess_rate(pairs: Sequence[tuple[Sample, Score]]) -> float:
    """Return the chance to be right by guessing: one in the number of options."""
    return 1.0 / len(pairs[0][0].options) if pairs and pairs[0][0].options else 0.0


def pool(rows: Table) -> tuple[Floats, Floats, Floats]:
    """Add up the rows of equal strength: (strength, trials, successes), strengths rising."""
    strength = np.unique(rows[:, 0])
    return strength, _per_strength(rows, strength, 1), _per_strength(rows, strength, 2)


def _per_strength(rows: Table, strengths: Floats, column: int) -> Floats:
    return np.bincount(np.searchsorted(strengths, rows[:, 0]), rows[:, column], minlength=strengths.size).astype(
        np.float64
    )


def rows_by_chart(pairs: Iterable[tuple[Sample, Score]], column: int) -> list[Table]:
    """Return one array a chart with rows (strength, glyphs or questions, successes)."""
    charts: dict[str, list[tuple[float, float, float]]] = {}
    for sample, item in pairs:
        rows = charts.setdefault(sample.group or sample.id, [])
        for line in item.detail.get("lines") or _as_choice(sample, item):
            rows.append((line[column], line[2], line[3]))
    return [np.array(rows, dtype=np.float64) for rows in charts.values() if rows]


def _as_choice(sample: Sample, item: Score) -> list[tuple[float, float, int, float]]:
    lines = sample.meta.get("lines") or ()
    return [(float(line["height_px"]), float(line.get("contrast", 1.0)), 1, item.value or 0.0) for line in lines]


def curve_of(
    pairs: Iterable[tuple[Sample, Score]], axis: str = "base"
) -> tuple[list[tuple[float, float]], tuple[float, float] | None]:
    """Return points (height in px or contrast, fraction read) in bins, and (threshold, slope) fitted to all lines."""
    chosen = [pair for pair in counted(pairs) if pair[0].tags.get("axis", "base") == axis]
    charts = rows_by_chart(chosen, 1 if axis == "contrast" else 0)
    if not charts:
        return [], None
    rows = np.concatenate(charts)
    edges = np.geomspace(rows[:, 0].min(), rows[:, 0].max() * (1 + 1e-9), BINS + 1)
    place = np.clip(np.searchsorted(edges, rows[:, 0], side="right") - 1, 0, BINS - 1)
    points = []
    for index in np.unique(place):
        group = rows[place == index]
        points.append((float(np.exp(np.log(group[:, 0]).mean())), float(group[:, 2].sum() / group[:, 1].sum())))
    return points, fit(charts, guess_rate(chosen))

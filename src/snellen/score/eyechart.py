"""A reply to an eye chart -> the fraction of glyphs read in each line; all charts -> acuity and contrast threshold."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from ..core.types import Estimate, Prediction, Request, Sample, Score
from .psychometric import Array, bootstrap_thresholds, fit_curve, pool

MAX_REPLY = 20_000
"""Characters of a reply that are looked at; a chart has about a hundred."""
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
    return [Score(prediction.key, "read", value, answer=(prediction.text or "")[:500], rule="aligned lines", detail={"lines": rows})]


def glyphs_of(text: str) -> str:
    """Return the letters and digits of a text, in capitals and canonical width: what counts as read."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).upper() if char.isalnum())


def read_per_line(truths: Sequence[str], reply: str) -> list[int]:
    """Return how many glyphs of each line were read: its length less the edit distance to the reply line it is paired with."""
    replies = [line for line in (glyphs_of(raw) for raw in reply[:MAX_REPLY].splitlines()) if line]
    if len(replies) == 1 and len(truths) > 1:
        return read_in_one_line(truths, replies[0])
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
    """Return `acuity_px` (glyph height at which half is read) of the plain charts, also per script, and `contrast_threshold`.

    `table` is an iterable of (Sample, Score). Choice scores count too, corrected for guessing.
    """
    pairs = [(sample, item) for sample, item in table if item.value is not None]
    plain = [pair for pair in pairs if pair[0].tags.get("axis", "base") == "base"]
    estimates = {"acuity_px": threshold(plain, column=0)}
    scripts = sorted({str(sample.tags["script"]) for sample, _ in plain if "script" in sample.tags})
    for script in scripts if len(scripts) > 1 else ():
        estimates[f"acuity_px/{script}"] = threshold([pair for pair in plain if pair[0].tags.get("script") == script], column=0)
    for axis, level in sorted({(str(s.tags.get("axis")), str(s.tags.get("level"))) for s, _ in pairs} - {("base", "0.0"), ("contrast", "0.0")}):
        hard = [pair for pair in pairs if (str(pair[0].tags.get("axis")), str(pair[0].tags.get("level"))) == (axis, level)]
        if axis not in ("base", "contrast"):
            estimates[f"acuity_px/{axis}={level}"] = threshold(hard, column=0)
    faint = [pair for pair in pairs if pair[0].tags.get("axis") == "contrast"]
    if faint:
        estimates["contrast_threshold"] = threshold(faint, column=1)
    return estimates


def threshold(pairs: Sequence[tuple[Sample, Score]], *, column: int) -> Estimate:
    """Fit height (column 0) or contrast (column 1) at which half is read; the interval is drawn over charts."""
    charts = rows_by_chart(pairs, column)
    guess = 1.0 / len(pairs[0][0].options) if pairs and pairs[0][0].options else 0.0
    curve = fit_curve(*pool(np.concatenate(charts)), guess) if charts else None
    if curve is None:
        return Estimate(None, n=len(charts))
    drawn = bootstrap_thresholds(charts, guess) if len(charts) > 1 else []
    if len(drawn) < 100:
        return Estimate(curve.threshold, n=len(charts))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(curve.threshold, float(np.std(drawn, ddof=1)), (float(low), float(high)), len(charts))


def rows_by_chart(pairs: Iterable[tuple[Sample, Score]], column: int) -> list[Array]:
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


def curve_points(pairs: Iterable[tuple[Sample, Score]], axis: str = "base") -> list[tuple[float, float]]:
    """Return (height in px or contrast, fraction read) over all charts of one axis: what the curve plots."""
    chosen = [pair for pair in pairs if pair[0].tags.get("axis", "base") == axis and pair[1].value is not None]
    charts = rows_by_chart(chosen, 1 if axis == "contrast" else 0)
    if not charts:
        return []
    strength, trials, successes = pool(np.concatenate(charts))
    return [(float(x), float(hit / n)) for x, n, hit in zip(strength, trials, successes, strict=True)]

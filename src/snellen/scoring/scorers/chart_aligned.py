"""A reply without row numbers -> which of its lines belongs to which line of a chart; and the reading rule of 0.1.

The rule of 0.1 (best pairing, length less edit distance, no chance) scores charts stored by it, and gives the figure
`acuity_px_guess0`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from ...core.types import Estimate
from ...stats.intervals import Floats
from ...stats.logistic import fit_curve, threshold_interval

MAX_REPLY = 20_000
"""Characters of a reply that are looked at; a chart has about a hundred."""
PREAMBLE = 3
"""Lines that a reply about one line may have, talk included."""
Table = NDArray[np.float64]
"""One chart: rows of strength, glyphs (or questions), successes."""


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
    partners = pair_in_order(gains)
    return [0 if place is None else row[place] for row, place in zip(gains, partners, strict=True)]


def pair_in_order(gains: Sequence[Sequence[int]]) -> list[int | None]:
    """Return for each chart line the place of its reply line in the best pairing that keeps the order, or None."""
    rows, columns = len(gains), len(gains[0]) if gains else 0
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row, gained in enumerate(gains, 1):
        above, here = best[row - 1], best[row]
        for column, gain in enumerate(gained, 1):
            here[column] = max(above[column - 1] + gain, above[column], here[column - 1])
    partners: list[int | None] = [None] * rows
    column = columns
    for row in range(rows, 0, -1):
        while column and best[row][column] == best[row][column - 1]:
            column -= 1
        if column and best[row][column] != best[row - 1][column]:
            column -= 1
            partners[row - 1] = column
    return partners


def read_in_one_line(truths: Sequence[str], reply: str) -> list[int]:
    """Count glyphs read when the reply runs all lines together: the best alignment of the whole chart."""
    whole = "".join(truths)
    kept = [False] * len(whole)
    for block in Levenshtein.opcodes(whole, reply):
        if block.tag == "equal":
            kept[block.src_start : block.src_end] = [True] * (block.src_end - block.src_start)
    ends = np.cumsum([0, *map(len, truths)])
    return [sum(kept[start:end]) for start, end in pairwise(ends)]


def threshold_guess0(charts: Sequence[Table], guess: float = 0.0) -> Estimate:
    """Estimate where half is read as 0.1 did: one guess rate for all rows, the interval drawn over charts.

    A threshold outside the tested range is not reported, and the interval ends with that range.
    """
    fitted = fit(charts, guess)
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
    rows = np.concatenate(charts)
    strength = np.unique(rows[:, 0])
    trials, right = (_per_strength(rows, strength, place) for place in (1, 2))
    if not guess * trials.sum() < right.sum() < trials.sum():
        return None
    curve = fit_curve(np.log(strength), right, trials, guess=guess)
    place = None if curve is None else curve.where(guess + (1 - guess) / 2)
    if curve is None or place is None or curve.slope <= 0 or abs(place) > 20:
        return None
    return math.exp(place), curve.slope


def _per_strength(rows: Table, strengths: Floats, column: int) -> Floats:
    return np.bincount(np.searchsorted(strengths, rows[:, 0]), rows[:, column], minlength=strengths.size).astype(
        np.float64
    )

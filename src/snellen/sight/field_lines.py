"""Whether a field is even, or differs by place: anyhow, or along a row, a column, the border or seams, or in a half."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..stats.intervals import Floats

SIDE = 5
SPREADS = np.array([0.01, 0.05, 0.1, 0.2, 0.4, 0.8])
EVEN_SPREAD = 0.1
"""Cells that differ by no more than this (standard deviation of the logarithm) are an even field."""
COMMON_SD, WITHIN_SD, LINE_SD, LINE_LEAST = 0.35, 0.05, 0.5, 0.15
"""How far the acuity may be off for all cells, cells of one kind among themselves, and a line from the rest (ln).

All cells may be off by much: the acuity has an interval of its own, and four letters alone are not a row of eight."""
PRIOR_EVEN, PRIOR_LINE, PRIOR_FEW = 0.5, 0.2, 0.2
FEW = np.array([0.1, 0.2, 0.35])
"""The share of cells that differ, where it is a few of them that do, anywhere."""
_COMMON_STEP, _LINE_STEP = 3, 4


class Evenness(NamedTuple):
    """How probable an even field is, and which line is the likeliest, how much more it needs, how probable."""

    even: float
    line: str
    line_factor: float
    line_probability: float


def field_groups() -> dict[str, NDArray[np.bool_]]:
    """Return the cells (row by row) of every line that a field may be worse along."""
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    rows = ("top row", "second row", "middle row", "fourth row", "bottom row")
    columns = ("left column", "second column", "middle column", "fourth column", "right column")
    groups = {name: row == place for place, name in enumerate(rows)}
    groups |= {name: column == place for place, name in enumerate(columns)}
    last = SIDE - 1
    groups["border"] = (row % last == 0) | (column % last == 0)
    groups["seams at the halves"] = (row == 2) | (column == 2)
    groups["seams at the thirds"] = np.isin(row, (1, 3)) | np.isin(column, (1, 3))
    sides = {"top": row < 2, "bottom": row > 2, "left": column < 2, "right": column > 2}
    groups |= {f"{name} half": inside for name, inside in sides.items()}
    corners = ((down, across) for down in ("top", "bottom") for across in ("left", "right"))
    return groups | {f"{down} {across} quarter": sides[down] & sides[across] for down, across in corners}


OPPOSITE = {"top half": "bottom half", "left half": "right half"}
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
"""A half that is better is the other half being worse: the middle row or column may go with either."""


def judge_evenness(log_like: Floats, shifts: Floats) -> Evenness:
    """Weigh an even field against cells that differ anyhow and against every line; `log_like` is (cell, shift)."""
    middle, step = shifts.size // 2, float(shifts[1] - shifts[0])
    reach = round(3 * COMMON_SD / step)
    common = np.arange(-reach, reach + 1, _COMMON_STEP)
    weight = _prior(_in_ln(common, step), COMMON_SD)
    anyhow = np.array([_spread_evidence(log_like, shifts, spread, _in_ln(common, step), weight) for spread in SPREADS])
    smooth, away = _smoothed(log_like, step), np.arange(-60, 61, _LINE_STEP)
    away = away[np.abs(away) * step >= LINE_LEAST]
    prior = _prior(_in_ln(away, step), LINE_SD)
    same = smooth[:, middle + common]  # (cell, common)
    other = smooth[:, np.clip(middle + common[:, None] + away, 0, shifts.size - 1)]  # (cell, common, away)
    lines = {}
    for name, inside in field_groups().items():
        lines[name] = (same[~inside].sum(0) + weight)[:, None] + other[inside].sum(0) + prior
    differs = _log_sums(other + prior)
    few = [np.logaddexp(math.log(1 - part) + same, math.log(part) + differs).sum(0) + weight for part in FEW]
    return _weigh(anyhow, np.array([_log_sum(table) for table in few]), lines, _in_ln(away, step))


def _weigh(anyhow: Floats, few: Floats, lines: dict[str, Floats], away: Floats) -> Evenness:
    """Return what is probable: half is an even field before anything is known, lines and a few cells a fifth each."""
    even = SPREADS <= EVEN_SPREAD
    left = 1 - PRIOR_EVEN - PRIOR_LINE - PRIOR_FEW
    share = np.where(even, PRIOR_EVEN / even.sum(), left / (~even).sum())
    of_lines = np.array([_log_sum(table) for table in lines.values()]) + math.log(PRIOR_LINE / len(lines))
    every = np.concatenate([of_lines, anyhow + np.log(share), few + math.log(PRIOR_FEW / FEW.size)])
    mass = np.exp(every - every.max())
    mass /= mass.sum()
    best = int(np.argmax(mass[: len(lines)]))
    name = list(lines)[best]
    at = np.exp(lines[name] - lines[name].max()).sum(0)
    factor, chance = math.exp(float(at @ away / at.sum())), float(mass[best])
    if name in OPPOSITE:
        chance += float(mass[list(lines).index(OPPOSITE[name])])
        name, factor = (OPPOSITE[name], 1 / factor) if factor < 1 else (name, factor)
    return Evenness(float(mass[len(lines) :][: SPREADS.size][even].sum()), name, factor, chance)


def _spread_evidence(log_like: Floats, shifts: Floats, spread: float, common: Floats, weight: Floats) -> float:
    each = [float(_log_sums(log_like + _prior(shifts - offset, spread)).sum()) for offset in common]
    return _log_sum(np.array(each) + weight)


def _smoothed(log_like: Floats, step: float) -> Floats:
    """Return the likelihood of cells that scatter by `WITHIN_SD` around a shift."""
    half = round(4 * WITHIN_SD / step)
    kernel = np.exp(_prior(_in_ln(np.arange(-half, half + 1), step), WITHIN_SD))
    top = log_like.max(1, keepdims=True)
    rows = [np.convolve(np.pad(row, half, mode="edge"), kernel, "valid") for row in np.exp(log_like - top)]
    return np.asarray(np.log(np.maximum(np.array(rows), 1e-300)) + top)


def _prior(values: Floats, spread: float) -> Floats:
    log = -0.5 * (values / spread) ** 2
    return np.asarray(log - _log_sum(log))


def _in_ln(steps: NDArray[np.int64], step: float) -> Floats:
    return np.asarray(steps * step, np.float64)


def _log_sum(values: Floats) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


def _log_sums(values: Floats) -> Floats:
    """Return ln of sums over the last axis."""
    top = values.max(-1)
    return np.asarray(top + np.log(np.exp(values - top[..., None]).sum(-1)))

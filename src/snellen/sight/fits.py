"""Trials of three tests to figures that are no single threshold: an ellipse, a field, a hinge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..stats.intervals import Floats
from ..stats.psychometric import logistic_curve
from ..stats.threshold_grid import cell_quantiles
from .recipe import NONE, ONE_SIZE, RULES, loss

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


HUES = ("red", "orange", "yellow", "yellow-green", "green", "blue-green", "blue", "purple")
"""Names of the a*b* plane every 45 degrees from the red end."""
WORSE = 1.3
"""An axis is named only where it is so many times worse with 95 % probability."""


class Ellipse(NamedTuple):
    """Thresholds of colour by direction: the mean radius with its interval, and the long axis."""

    radius: float
    interval: tuple[float, float]
    ratio: float
    ratio_low: float
    """It is at least this with 95 %."""
    angle: float
    axis: str
    slope: float


def fit_ellipse(level: Floats, hue: Floats, right: Floats, guess: float = 0.25) -> Ellipse:
    """Fit one threshold that depends on direction as an ellipse does, on a grid; `right` may hold chance credit."""
    radius = np.linspace(math.log(0.6), math.log(50.0), 45)
    ratio = np.geomspace(1.0, 4.0, 9)
    angle = np.radians(np.arange(0, 180, 15))
    slope, lapse = np.geomspace(1.5, 16.0, 5), np.array([0.005, 0.03, 0.08, 0.15])
    turn = np.radians(hue)[:, None, None] - angle
    # p: long axis = radius * sqrt(ratio), q: short axis
    long_part, short_part = np.cos(turn) ** 2 / ratio[:, None], np.sin(turn) ** 2 * ratio[:, None]
    shift = -0.5 * np.log(long_part + short_part)  # ln of the radius in this direction over the mean one
    total = np.zeros((radius.size, ratio.size, angle.size, slope.size, lapse.size))
    for x, there, hit in zip(np.log(level), shift, right, strict=True):
        reach = (x - radius[:, None, None] - there)[..., None] * slope
        share = guess + (1 - guess - lapse) * logistic_curve(reach)[..., None]
        share = np.clip(share, 1e-6, 1 - 1e-6)
        total += hit * np.log(share) + (1 - hit) * np.log1p(-share)
    total += (-0.5 * ((np.log(slope) - math.log(5.5)) / 0.9) ** 2)[:, None]
    mass = np.exp(total - total.max())
    mass /= mass.sum()
    return _tell_ellipse(mass, radius, ratio, angle, slope)


def _tell_ellipse(mass: Floats, radius: Floats, ratio: Floats, angle: Floats, slope: Floats) -> Ellipse:
    low, middle, high = np.exp(cell_quantiles(radius, mass.sum((1, 2, 3, 4)), (0.025, 0.5, 0.975)))
    by_ratio = mass.sum((0, 2, 3, 4))
    least = float(np.interp(0.05, np.cumsum(by_ratio), ratio))
    turned = mass[:, 1:].sum((0, 1, 3, 4))
    mean = np.angle(np.sum(turned * np.exp(2j * angle))) / 2 % math.pi
    degrees = float(np.degrees(mean))
    place = round(degrees / 45) % 4
    name = f"{HUES[place]}–{HUES[place + 4]}"
    steep = math.exp(float(mass.sum((0, 1, 2, 4)) @ np.log(slope)))
    return Ellipse(float(middle), (float(low), float(high)), float(by_ratio @ ratio), least, degrees, name, steep)


FIELD_CELLS = 25


class Field(NamedTuple):
    """How much larger letters must be in each cell (rows of columns), with intervals, and whether that differs."""

    factor: list[list[float]]
    low: list[list[float]]
    high: list[list[float]]
    even: float
    """The probability that the cells differ by no more than a tenth (standard deviation of the logarithm)."""
    spread: float
    evenness: Evenness


def fit_field(x: Floats, cell: Floats, right: Floats, glyphs: int, curve: tuple[float, float, float]) -> Field:
    """Fit a shift of the threshold a cell, shrunk together; `curve` is the acuity there: threshold, slope, lapse."""
    cells, (threshold, slope, lapse) = FIELD_CELLS, curve
    shifts, spreads = np.linspace(-1.6, 1.6, 161), SPREADS
    log_like = np.zeros((cells, shifts.size))
    for place, number, hits in zip(x, cell.astype(int), right, strict=True):
        share = 0.1 + (0.9 - lapse) * logistic_curve(slope * (place - threshold - shifts))
        share = np.clip(share, 1e-6, 1 - 1e-6)
        # letters of one group fall together: they count for half of what they would alone
        log_like[number] += 0.5 * (hits * np.log(share) + (glyphs - hits) * np.log1p(-share))
    prior = -0.5 * (shifts / spreads[:, None]) ** 2
    prior = prior - np.log(np.exp(prior).sum(1, keepdims=True))
    joint = log_like[None] + prior[:, None]  # (spread, cell, shift)
    top = joint.max(2, keepdims=True)
    weights = (top[..., 0] + np.log(np.exp(joint - top).sum(2))).sum(1)
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    mass = np.exp(joint - top)
    mass = (weights[:, None, None] * mass / mass.sum(2, keepdims=True)).sum(0)
    ends = np.array([cell_quantiles(shifts, row, (0.025, 0.5, 0.975)) for row in mass])
    ends = np.exp(ends - np.median(ends[:, 1]))
    side = math.isqrt(cells)
    low, middle, high = (np.round(ends[:, part].reshape(side, side), 3).tolist() for part in range(3))
    found = judge_evenness(log_like, shifts)
    return Field(middle, low, high, found.even, math.exp(float(weights @ np.log(spreads))), found)


class Hinge(NamedTuple):
    """Whether and how a server shrinks pictures: the rule, its probability, and the limit in px."""

    rule: str
    probability: float
    limit: float | None
    interval: tuple[float, float] | None
    acuity: float
    shrinks: float
    """The probability of all rules but `none`: those that predict the same share it, and none need be likely."""
    law: tuple[tuple[str, float, float], ...]
    """Rule, limit, probability: what a recipe must hold under."""


TOLD_APART = 0.8
"""So probable must one rule be among those that shrink before it is named, or its limit taken from it alone."""


def fit_hinge(canvases: Sequence[tuple[int, int]], thresholds: Floats, mass: Sequence[Floats]) -> Hinge:
    """Tell the rule from thresholds on several canvases: `mass` is each posterior over `thresholds` (ln px).

    A limit that no canvas keeps within is one size for all: above it nothing tells them apart.
    """
    acuity = np.linspace(math.log(1.5), math.log(60.0), 121)
    longest, smallest = max(max(size) for size in canvases), min(max(size) for size in canvases)
    limits = np.linspace(math.log(250.0), math.log(longest / 1.3), 101)
    tables = {rule: np.zeros((acuity.size, 1 if rule in RULES[:2] else limits.size)) for rule in RULES}
    for size, one in zip(canvases, mass, strict=True):
        log_mass = np.log(np.maximum(one, 1e-12))
        for rule, table in list(tables.items()):
            expected = acuity[:, None] + loss(rule, size, limits[: table.shape[1]])
            tables[rule] = table + np.interp(expected, thresholds, log_mass)
    evidence = {rule: _log_mean(table) for rule, table in tables.items()}
    top = max(evidence.values())
    total = sum(math.exp(value - top) for value in evidence.values())
    by_limit = {rule: _shares(tables[rule]) * math.exp(evidence[rule] - top) / total for rule in RULES}
    chances = _chances(by_limit, limits <= math.log(1.05 * smallest))
    best = max(chances, key=lambda rule: chances[rule])
    share = np.exp(tables[best] - tables[best].max()).sum(1)
    middle = math.exp(float(share @ acuity / share.sum()))
    law = _law(by_limit, limits)
    if best in (NONE, ONE_SIZE):
        return Hinge(best, chances[best], None, None, middle, 1.0 - chances[NONE], law)
    apart = chances[best] >= TOLD_APART
    share = by_limit[best] if apart else np.sum([by_limit[rule] for rule in RULES[2:]], axis=0)
    low, half, high = np.exp(cell_quantiles(limits, share / share.sum(), (0.025, 0.5, 0.975)))
    span = float(low), float(high)
    return Hinge(best, chances[best], float(half), span, middle, 1.0 - chances[NONE], law)


def _shares(table: Floats) -> Floats:
    """Return how probable each limit of a rule is, given the rule."""
    share = np.exp(table - table.max()).sum(0)
    return np.asarray(share / share.sum())


def _chances(by_limit: Mapping[str, Floats], small: NDArray[np.bool_]) -> dict[str, float]:
    """Return how probable each rule is; limits below every canvas count as one size."""
    chances = {rule: float(by_limit[rule].sum()) for rule in (NONE, ONE_SIZE)}
    for rule in RULES[2:]:
        chances[ONE_SIZE] += float(by_limit[rule][small].sum())
        chances[rule] = float(by_limit[rule][~small].sum())
    return chances


LEAST_SHARE = 1e-3


def _law(by_limit: Mapping[str, Floats], limits: Floats) -> tuple[tuple[str, float, float], ...]:
    """Return every rule and limit that is not next to impossible, the probabilities brought to one."""
    rows = [
        (rule, 0.0 if rule in (NONE, ONE_SIZE) else float(np.exp(limits[place])), float(share))
        for rule, shares in by_limit.items()
        for place, share in enumerate(shares)
        if share > LEAST_SHARE
    ]
    total = sum(share for _, _, share in rows)
    return tuple((rule, round(limit, 1), round(share / total, 5)) for rule, limit, share in rows)


def _log_mean(table: Floats) -> float:
    top = float(table.max())
    return top + math.log(float(np.exp(table - top).mean()))


def numerosity(counts: Sequence[tuple[float, float]]) -> Mapping[str, Any]:
    """Return bias and spread of ln(reply/number) of (number, reply), and how often each number was said."""
    logs = np.array([math.log(said / number) for number, said in counts if said > 0])
    said: dict[str, int] = {}
    for _, value in sorted(counts, key=lambda pair: pair[1]):
        said[f"{value:g}"] = said.get(f"{value:g}", 0) + 1
    figures = {"bias_ln": float(logs.mean()), "spread_ln": float(logs.std())} if logs.size > 3 else {}
    return {**{name: round(value, 4) for name, value in figures.items()}, "replies": said}

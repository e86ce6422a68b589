"""Trials of three tests to figures that are no single threshold: an ellipse, a field, a hinge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..stats.curve_laws import logistic_curve
from ..stats.intervals import Floats
from ..stats.threshold_grid import cell_quantiles
from .field_lines import SPREADS, Evenness, judge_evenness
from .recipe import NONE, ONE_SIZE, RULES, loss

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

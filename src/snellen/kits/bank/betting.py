"""Paired differences one by one to a verdict: is a candidate still as good as its base, or worse, or better.

A test by betting (Ville's inequality): for a supposed mean difference δ somebody bets that the truth lies above it, and
another below; whoever grows 20 rich has shown it, at every moment and for any bank. The bank only says which questions
may change, so that these are drawn more often and what it expects is subtracted. Figures: docs/benchmarks.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.errors import UsageError
from ...stats.intervals import Interval
from .item_bank import Array, Indices

NEIGHBOURS = 20
RICH = 20.0
"""The wealth that shows something with an error of 1 in 20."""
SHARES = np.array([0.5, 0.5])
STAKES = np.array([1.0, 3.0])
"""Two bettors share the money, one bold: how many questions change is not known before."""
FIRST_VARIANCE, FIRST_WEIGHT = 0.06, 30.0
MOST_HASTE, LARGEST_BET = 5.0, 0.95
GRID = 4_000
ONE_SIDED = 1.645
"""Standard errors of sampling by which the hypotheses move: shifted by one alone, 6 to 7 % of verdicts were false."""
NOISE_A_MARGIN = 3.3
"""Sampling noise of the mean difference may be this part of the margin, not more: the moved hypotheses would cross."""
SAME, BETTER, WORSE, OPEN = "same", "better", "worse", "not settled"


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is known before the first question: how often to draw each, and which difference the bank expects.

    A unit is a question, or a group of them. `weight` is its size in mean units: the mean of weight · difference over
    all units is the mean difference over all questions.
    """

    score: Array
    expected: Array
    weight: Array

    def order(self, draw: np.random.Generator) -> Indices:
        """Return the units as they are asked: a race in which unit i runs at the speed of its score."""
        return np.argsort(draw.exponential(size=self.score.size) / self.score, kind="stable")


def prepare(base: Array, bank: Array | None = None, groups: Indices | None = None) -> Preparation:
    """Return the preparation from the base's outcomes and a bank of other models (models × items, NaN: not asked)."""
    score, expected = np.ones(base.size), np.zeros(base.size)
    if bank is not None and len(bank):
        score, expected = _flips(base, bank)
    if groups is None:
        return Preparation(score, expected, np.ones(base.size))
    sizes = np.bincount(groups)
    summed = np.bincount(groups, weights=expected) * sizes.size / base.size
    return Preparation(np.bincount(groups, weights=score) / sizes, summed, sizes * sizes.size / base.size)


def _flips(base: Array, bank: Array) -> tuple[Array, Array]:
    """Return draw scores and expected differences from the bank's models that answer most like the base."""
    seen = ~np.isnan(bank)
    apart = np.where(seen, bank - base, 0.0)
    distance = np.abs(apart).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    nearest = np.argsort(np.where(seen.any(axis=1), distance, np.inf), kind="stable")[:NEIGHBOURS]
    near, count = apart[nearest], seen[nearest].sum(axis=0)
    differing = np.abs(near).sum(axis=0)
    rate = max(float(differing.sum() / max(count.sum(), 1)), 1.0 / base.size)
    chance = (differing + 1.0) / (count + 1.0 / rate)
    root = np.sqrt(chance)
    return 0.5 * root / root.mean() + 0.5, near.sum(axis=0) / (count + 2.0)


class Wagers:
    """The wealth of those who bet on a mean difference above and below each of `deltas`, in t gates side by side."""

    def __init__(self, prepared: Preparation, margin: float, deltas: Array, rows: int = 1) -> None:
        self.asked = 0
        self.above = np.ones((rows, deltas.size, STAKES.size))
        self.below = np.ones((rows, deltas.size, STAKES.size))
        self._prepared, self._margin, self._deltas = prepared, margin, deltas
        self._units = prepared.score.size
        self._largest = float(prepared.weight.max())
        self._surprise = float(np.abs(prepared.expected).max())
        self._slowest = float(prepared.score.min())
        self._pull = FIRST_WEIGHT * float((prepared.expected**2).mean())
        self._left_score = np.full(rows, prepared.score.sum())
        self._left_expected = np.full(rows, prepared.expected.sum())
        self._differences, self._squares = np.zeros(rows), np.zeros(rows)
        self._shared, self._expectation = np.zeros(rows), np.zeros(rows)

    def add(self, unit: Indices, difference: Array) -> None:
        """Take the next unit of every gate, in the drawn order: candidate minus base, the mean of the unit."""
        prepared, left = self._prepared, self._units - self.asked
        change = difference * prepared.weight[unit]
        score, expected = prepared.score[unit], prepared.expected[unit]
        weight = self._left_score / (score * left)
        trust = np.clip(self._shared / np.maximum(self._expectation + self._pull, 1e-300), 0.0, 1.0)
        seen = (change - trust * expected) * weight
        mean = (self._units * self._deltas[None] - (self._differences + trust * self._left_expected)[:, None]) / left
        stake = self._stakes(left, trust, mean)
        gain = stake * (seen[:, None] - mean)[..., None]
        self.above *= 1.0 + gain
        self.below *= 1.0 - gain
        self._remember(seen, change, weight, expected, score)

    def _stakes(self, left: int, trust: Array, mean: Array) -> Array:
        """Return what each bettor stakes, from the past and the preparation only."""
        variance = (FIRST_WEIGHT * FIRST_VARIANCE + self._squares) / (FIRST_WEIGHT + self.asked)
        wish = self._margin * min(self._units / left, MOST_HASTE) / variance
        heaviest = self._left_score / (self._slowest * left)
        reach = (heaviest * (self._largest + trust * self._surprise))[:, None] + np.abs(mean)
        return np.asarray(np.minimum(wish[:, None, None] * STAKES, (LARGEST_BET / reach)[..., None]))

    def _remember(self, seen: Array, change: Array, weight: Array, expected: Array, score: Array) -> None:
        self.asked += 1
        self._squares += seen * seen
        self._differences += change
        self._shared += weight * change * expected
        self._expectation += weight * expected * expected
        self._left_score -= score
        self._left_expected -= expected

    @property
    def wealth_above(self) -> Array:
        """Return the wealth of those who bet on a larger difference: (gates, deltas)."""
        return np.asarray(self.above @ SHARES)

    @property
    def wealth_below(self) -> Array:
        """Return the wealth of those who bet on a smaller one."""
        return np.asarray(self.below @ SHARES)

    @property
    def difference(self) -> Array:
        """Return the sum of weighted differences seen, of every gate."""
        return self._differences


class Verdict(NamedTuple):
    """What a gate found, after how many units."""

    word: str
    asked: int
    value: float
    """The estimate of the mean difference over all questions."""
    interval: Interval | None
    """Each end holds with 95 %, whenever the gate stopped; None where everything was asked: the difference is exact."""


class Gate:
    """One gate: feed the units in the drawn order until a word falls.

    `noise` is the standard error that sampling alone gives the mean difference of two full runs; the hypotheses move by
    1.645 of it, so that the verdict speaks of what the models do on average. `error` is the chance of a false word.
    """

    def __init__(self, prepared: Preparation, margin: float, *, noise: float = 0.0, error: float = 1.0 / RICH) -> None:
        if not 0.0 < margin < 1.0:
            raise UsageError(f"--margin must lie between 0 and 100 points, not {margin * 100:g}")
        if noise * NOISE_A_MARGIN > margin:
            raise UsageError(f"sampling noise of {noise * 100:.2g} points is too much for a margin of {margin * 100:g}")
        self._rich, self._units = 1.0 / error, prepared.score.size
        self._margin, self._shift, self._prepared = margin, ONE_SIDED * noise, prepared
        deltas = np.array([self._shift - margin, -self._shift, self._shift])
        self.wagers = Wagers(prepared, margin, deltas)
        self._grid = np.linspace(-1.0, 1.0, GRID + 1)
        self._rule = Wagers(prepared, margin, self._grid)
        self._alive = np.ones(self._grid.size, dtype=bool)
        self.word = OPEN

    def add(self, unit: int, difference: float) -> None:
        """Take the next unit; after a word has fallen nothing changes any more."""
        if self.word != OPEN:
            return
        at, value = np.array([unit]), np.array([difference])
        self.wagers.add(at, value)
        self._rule.add(at, value)
        ruled = np.maximum(self._rule.wealth_above[0], self._rule.wealth_below[0]) >= self._rich
        self._alive &= ~ruled
        self.word = self._found()

    def _found(self) -> str:
        if self.wagers.asked == self._units:
            return self._exact(float(self.wagers.difference[0]) / self._units)
        above, below = self.wagers.wealth_above[0], self.wagers.wealth_below[0]
        if above[0] >= self._rich:
            return BETTER if above[2] >= self._rich else SAME
        return WORSE if below[1] >= self._rich else OPEN

    def _exact(self, difference: float) -> str:
        """Return the word when everything was asked; sampling noise may leave it open."""
        if difference > max(self._shift, 0.0):
            return BETTER
        if difference > -self._margin + self._shift:
            return SAME
        return WORSE if difference < -self._shift or not self._shift else OPEN

    @property
    def interval(self) -> Interval:
        """Return every difference that nobody has ruled out: each end holds with the verdict's own chance of error.

        So it never contradicts a word: it begins above -margin where that is `same`, and ends below 0 at `worse`.
        """
        alive, step = self._grid[self._alive], 2.0 / GRID
        if not alive.size:  # all points between two steps: the truth lies between
            return self.value - step, self.value + step
        return float(alive[0]), float(alive[-1])

    @property
    def value(self) -> float:
        """Return the point of the interval that both sides of bettors earn least against."""
        if self.wagers.asked == self._units:
            return float(self.wagers.difference[0]) / self._units
        worst = np.maximum(self._rule.wealth_above[0], self._rule.wealth_below[0])
        lowest = np.flatnonzero(worst <= worst.min() * 1.0000001)
        return float(self._grid[lowest].mean())

    def verdict(self) -> Verdict:
        """Return the word as it stands."""
        everything = self.wagers.asked == self._units
        return Verdict(self.word, self.wagers.asked, self.value, None if everything else self.interval)


def sampling_noise(base: float, base_repeats: int, candidate: float, repeats: int, items: int) -> float:
    """Return the standard error of the mean difference by sampling: means of p(1-p), repeats, number of questions."""
    return math.sqrt((base / base_repeats + candidate / repeats) / items)


def repeats_for(margin: float, base: float, candidate: float, items: int) -> int:
    """Return the repeats of either model with which sampling noise leaves room for the margin."""
    return max(1, math.ceil((NOISE_A_MARGIN / margin) ** 2 * (base + candidate) / items))

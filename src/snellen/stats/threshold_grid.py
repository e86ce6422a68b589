"""Trials at chosen levels in, what is known of a threshold out, and which levels tell most: the model of
`psychometric`, made for asking while one learns.

Levels lie on a lattice in x = ln(level), thresholds on a coarser one of the same origin. The curve depends on x - t
alone, so that one table over that difference serves every level: a trial costs a slice and an addition.
All functions take many observers at once (first axis); one exam is the case of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import Floats
from .psychometric import LOGISTIC, MARGIN, SLOPE_SPREAD, USUAL_SLOPE, Law, right_share

LATTICE = 0.02
"""Step of the levels in ln units: 2 %."""
COARSE = 2
"""A threshold every so many steps while asking."""
CANDIDATE = 4
"""A level that may be chosen every so many steps."""
PAIR = 2
"""So many thresholds are taken together when levels are chosen."""
SLOPES = np.geomspace(1.5, 24.0, 7)
FINE_SLOPES = np.geomspace(1.5, 24.0, 13)
"""For what is said at the end: where 95 % is right lies FAR / slope beside the threshold, so coarse slopes blur it."""
LAPSES = np.array([0.002, 0.02, 0.05, 0.10, 0.18])
CORRELATIONS = np.array([0.0, 0.05, 0.15, 0.3, 0.5, 0.7])
"""How far the glyphs of a row fall together; a single trial has none."""
FAR_SURE, FAR_SURE_CONFIRMED = 0.9, 0.92
"""How probable the bound of that level must be: a little more where trials were asked beside it, since the bound then
rests on the law of the curve, which nobody knows (docs/adr/exam.md), and less on how few they were."""
SHARED_TRIALS = 20.0
"""The easy trials of other tests count for at most so many: tests differ."""
TRUST_TRIAL, TRUST_ROW = 0.87, 0.85
"""What a trial or a row counts: less than one, because observers are not quite the model (other laws, other
correlations); chosen so that intervals cover in the simulation of `benchmarks/exam.py`."""
_TIES = 6
_TINY = 1e-6
_HOPELESS = 1e-9
"""Thresholds less probable than this are left out when levels are chosen."""
_MARGIN_STEPS = round(MARGIN / LATTICE)

Belief = NDArray[np.float64]
"""Log posterior over (observer, threshold, slope x lapse, correlation)."""
Places = NDArray[np.int64]
"""Levels as numbers of steps from the hard end of an axis."""


class Known(NamedTuple):
    """What a posterior says, a value an observer: medians, bounds, and how likely the threshold is off the axis."""

    low: Floats
    middle: Floats
    high: Floats
    far: Floats
    """Where 95 % of what can be right is right (median)."""
    far_low: Floats
    far_high: Floats
    """The ends of the 95 % interval of that."""
    far_bound: Floats
    """It lies below this with 90 %, or as surely as was asked for."""
    slope: Floats
    lapse: Floats
    correlation: Floats
    below: Floats
    """The probability that the threshold is harder than the hardest level."""
    above: Floats


def _slope_prior(slopes: Floats) -> Floats:
    return np.asarray(-0.5 * ((np.log(slopes) - math.log(USUAL_SLOPE)) / SLOPE_SPREAD) ** 2)


def _made_tables(  # noqa: PLR0917 - the key of a cache
    guess: float, glyphs: int, first: int, last: int, slopes: tuple[float, ...], law: Law
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return ln-likelihood tables (hits or misses, offset, slope x lapse, correlation), to be added up.

    ln P(k of n) = right[k] + wrong[n - k], without what does not depend on the unknowns.
    """
    offsets = _in_x(np.arange(first, last + 1))
    share = right_share(offsets[:, None, None], np.array(slopes)[:, None], guess, LAPSES, law)
    share = np.clip(share, _TINY, 1.0 - _TINY).reshape(offsets.size, -1, 1)
    correlation = CORRELATIONS if glyphs > 1 else CORRELATIONS[:1]
    own = 1.0 - correlation
    tables = np.zeros((2, glyphs + 1, offsets.size, share.shape[1], correlation.size), np.float32)
    for place in range(glyphs):
        step = place * correlation
        tables[0, place + 1] = tables[0, place] + np.log(share * own + step)
        tables[1, place + 1] = tables[1, place] + np.log((1.0 - share) * own + step)
    trust = np.float32(_trust(glyphs))
    return trust * (tables[0] - _norm(glyphs, correlation)), trust * tables[1]


_tables = lru_cache(maxsize=64)(_made_tables)
_passing_tables = lru_cache(maxsize=2)(_made_tables)
"""Of other laws, which are needed at the end of a test alone and would fill the memory."""


def _trust(glyphs: int) -> float:
    return TRUST_ROW if glyphs > 1 else TRUST_TRIAL


def _norm(glyphs: int, correlation: Floats) -> NDArray[np.float32]:
    """Return ln of the denominator of the beta-binomial: the same for every count of a row."""
    places = np.arange(glyphs)[:, None]
    return np.asarray(np.log(1.0 - correlation + places * correlation).sum(0), np.float32)


class ThresholdGrid:
    """The model of one test on a grid: `low` and `high` are x of its hardest and easiest level.

    `guess` is the chance of a trial, or of one glyph of a row of `glyphs`; `guesses` gives it a level where it differs.
    """

    def __init__(
        self,
        low: float,
        high: float,
        guess: float,
        glyphs: int = 1,
        *,
        coarse: int = COARSE,
        guesses: Floats | None = None,
        slopes: Floats = SLOPES,
        law: Law = LOGISTIC,
    ) -> None:
        self.slopes, self.law = slopes, law
        self.low, self.guess, self.glyphs, self.coarse = low, guess, glyphs, coarse
        self.levels = max(2, round((high - low) / LATTICE) + 1)
        """How many places the axis has; the last is the easiest."""
        count = (self.levels - 1 + 2 * _MARGIN_STEPS) // coarse + 1
        self._steps = coarse * np.arange(count) - _MARGIN_STEPS
        self.thresholds = low + _in_x(self._steps)
        self._guesses = guesses
        self._first = -int(self._steps[-1])
        self._last = self.levels - 1 - int(self._steps[0])
        self.candidates = np.arange(self.levels - 1, -1, -CANDIDATE)[::-1]
        chance = guess if guesses is None else guesses[self.candidates]
        pairs = self._steps[: count // PAIR * PAIR].reshape(-1, PAIR).mean(1)
        reach = np.asarray((self.candidates - pairs[:, None]) * LATTICE, np.float64)
        share = right_share(reach[:, None, None, :], slopes[:, None, None], chance, LAPSES[:, None])
        self._shares = np.clip(share.reshape(pairs.size, -1, self.candidates.size), _TINY, 1.0 - _TINY)

    @property
    def end(self) -> float:
        """Return x of the easiest level."""
        return self.low + (self.levels - 1) * LATTICE

    def refined(self, coarse: int, slopes: Floats) -> ThresholdGrid:
        """Return the same test with thresholds every `coarse` steps and other slopes."""
        ends = (self.low, self.end, self.guess, self.glyphs)
        return ThresholdGrid(*ends, coarse=coarse, guesses=self._guesses, slopes=slopes)

    def under(self, law: Law) -> ThresholdGrid:
        """Return the same test of observers of another law: to learn on, not to choose levels by."""
        ends = (self.low, self.end, self.guess, self.glyphs)
        return ThresholdGrid(*ends, coarse=self.coarse, guesses=self._guesses, slopes=self.slopes, law=law)

    def guess_at(self, places: Places) -> Floats:
        """Return the chance of being right without seeing, at each place."""
        return np.full(np.shape(places), self.guess) if self._guesses is None else self._guesses[places]

    def x_of(self, places: Places) -> Floats:
        """Return x of places."""
        return self.low + _in_x(places)

    def place_of(self, x: float) -> int:
        """Return the place nearest to x."""
        return min(self.levels - 1, max(0, round((x - self.low) / LATTICE)))

    def start(self, observers: int = 1, lapses: Floats | None = None) -> Belief:
        """Return the prior: thresholds flat, slopes log-normal, lapses as `lapses` (ln, a row an observer) or flat."""
        ways = CORRELATIONS.size if self.glyphs > 1 else 1
        flat = np.zeros((observers, LAPSES.size)) if lapses is None else lapses
        inner = (_slope_prior(self.slopes)[None, :, None] + flat[:, None, :]).reshape(observers, 1, -1, 1)
        belief = np.broadcast_to(inner, (observers, self.thresholds.size, inner.shape[2], ways)).copy()
        return _normal(belief)

    def learn(self, belief: Belief, places: Places, right: Floats) -> Belief:
        """Return the belief after one trial (or row) each: `right` of the glyphs, a fraction where chance is credited.

        The result is not normalised, so that the sum of its exponentials is the evidence.
        """
        whole = np.floor(right).astype(np.int64)
        part = (right - whole)[:, None, None, None]
        learnt = belief + self._row(places, whole)
        if np.any(part > 0):
            more = np.minimum(whole + 1, self.glyphs)
            learnt = learnt + part * (self._row(places, more) - self._row(places, whole))
        return np.asarray(learnt)

    def learn_at(self, belief: Belief, x: float, right: float, glyphs: int, guess: float) -> Belief:
        """Return the belief of one observer after a row with a chance or a length of its own, at any x."""
        share = right_share(x - self.thresholds[:, None, None], self.slopes[:, None], guess, LAPSES, self.law)
        share = np.clip(share, _TINY, 1.0 - _TINY).reshape(1, self.thresholds.size, -1, 1)
        correlation = CORRELATIONS if self.glyphs > 1 else CORRELATIONS[:1]
        own = 1.0 - correlation
        total = np.zeros((*share.shape[:3], correlation.size)) - _norm(glyphs, correlation)
        for place in range(glyphs):
            step = place * correlation
            hit, missed = min(1.0, max(0.0, right - place)), min(1.0, max(0.0, glyphs - right - place))
            if hit:
                total += hit * np.log(share * own + step)
            if missed:
                total += missed * np.log((1.0 - share) * own + step)
        return np.asarray(belief + _trust(self.glyphs) * total)

    def _row(self, places: Places, right: Places) -> Belief:
        if self._guesses is not None:
            return self._row_by_level(places, right, self._guesses[places])
        tables = _tables if self.law is LOGISTIC else _passing_tables
        hits, misses = tables(self.guess, self.glyphs, self._first, self._last, tuple(self.slopes.tolist()), self.law)
        where = places[:, None] - self._steps[None, :] - self._first
        return np.asarray(hits[right[:, None], where] + misses[self.glyphs - right[:, None], where], np.float64)

    def _row_by_level(self, places: Places, right: Places, guesses: Floats) -> Belief:
        reach = _in_x(places[:, None] - self._steps[None, :])
        chance = guesses[:, None, None, None]
        share = right_share(reach[:, :, None, None], self.slopes[:, None], chance, LAPSES, self.law)
        share = np.clip(share, _TINY, 1.0 - _TINY).reshape(*reach.shape, -1, 1)
        return np.asarray(TRUST_TRIAL * np.where(right[:, None, None, None] > 0, np.log(share), np.log1p(-share)))

    def information(self, belief: Belief) -> tuple[Floats, Floats]:
        """Return, a candidate level each, what one more glyph would tell of the threshold alone, and P(right).

        Slope, lapse and correlation are integrated out (psi-marginal: Prins 2013, Kontsevich & Tyler 1999).
        """
        return _information(self._in_pairs(belief), self._shares)

    def _in_pairs(self, belief: Belief) -> Floats:
        """Return the posterior with neighbouring thresholds taken together: enough to choose by, and half the work."""
        mass = _shares(belief).sum(3)
        whole = mass.shape[1] // PAIR * PAIR
        paired = mass[:, :whole].reshape(mass.shape[0], -1, PAIR, mass.shape[2]).sum(2)
        return np.asarray(paired / paired.sum((1, 2), keepdims=True))

    def choose(self, belief: Belief, count: int, *, easiest_first: bool) -> Places:
        """Return `count` places an observer: the most informative, then believing its expected outcome, the next."""
        mass = self._in_pairs(belief)
        possible = np.flatnonzero(mass.sum(2).max(0) > _HOPELESS)
        mass, shares = mass[:, possible], self._shares[possible]
        rows = np.arange(mass.shape[0])
        chosen = np.empty((rows.size, count), np.int64)
        log_shares = np.log(shares), np.log1p(-shares)
        for number in range(count):
            if number == 0 and easiest_first:
                chosen[:, 0] = self.levels - 1
                continue
            worth, right = _information(mass, shares)
            scale = np.maximum(worth.max(1, keepdims=True), 1e-30)
            best = np.round(worth / scale, _TIES).argmax(1)
            chosen[:, number] = self.candidates[best]
            hope = right[rows, best][:, None, None]
            hits, misses = (part[:, :, best].transpose(2, 0, 1) for part in log_shares)
            mass = mass * np.exp(hope * hits + (1.0 - hope) * misses)
            mass = mass / mass.sum((1, 2), keepdims=True)
        return chosen

    def known(self, belief: Belief, far_sure: float = FAR_SURE) -> Known:
        """Return what the posterior says; `far_sure` is how probable the bound of where 95 % is right must be."""
        share = _shares(belief)
        each = share.sum((2, 3))
        ends = np.array([cell_quantiles(self.thresholds, row, (0.025, 0.5, 0.975)) for row in each])
        slopes = share.reshape(*each.shape, self.slopes.size, -1).sum(3)
        far = _far_quantiles(*self._far(slopes), far_sure)
        lapse = share.sum((1, 3)).reshape(-1, self.slopes.size, LAPSES.size).sum(1) @ LAPSES
        correlation = share.sum((1, 2)) @ (CORRELATIONS if self.glyphs > 1 else CORRELATIONS[:1])
        slope = np.exp(slopes.sum(1) @ np.log(self.slopes))
        below = each[:, self._steps < 0].sum(1)
        above = each[:, self._steps > self.levels - 1].sum(1)
        return Known(ends[:, 0], ends[:, 1], ends[:, 2], *far, slope, lapse, correlation, below, above)

    def far_places(self, belief: Belief) -> tuple[Floats, Floats]:
        """Return where 95 % may be right, and how probable each place is, a row an observer."""
        share = _shares(belief)
        return self._far(share.reshape(*share.shape[:2], self.slopes.size, -1).sum(3))

    def _far(self, slopes: Floats) -> tuple[Floats, Floats]:
        reach = (self.thresholds[:, None] + self.law.far / self.slopes).ravel()
        return reach, _without_usual_slope(slopes, self.slopes).reshape(slopes.shape[0], -1)


def across_laws(known: Known, beliefs: Sequence[tuple[ThresholdGrid, Belief]], far_sure: float = FAR_SURE) -> Known:
    """Return threshold and level of 95 % over several laws, each by its evidence: both hang on the law."""
    weight = law_weights([belief for _, belief in beliefs])
    places = [grid.far_places(belief) for grid, belief in beliefs]
    reach = np.concatenate([place for place, _ in places])
    mass = np.concatenate([weight[:, [number]] * mass for number, (_, mass) in enumerate(places)], 1)
    far = dict(zip(_FAR_FIELDS, _far_quantiles(reach, mass, far_sure), strict=True))
    thresholds, each = beliefs[0][0].thresholds, threshold_mass([belief for _, belief in beliefs])
    ends = np.array([cell_quantiles(thresholds, row, (0.025, 0.5, 0.975)) for row in each])
    return known._replace(low=ends[:, 0], middle=ends[:, 1], high=ends[:, 2], **far)


def law_weights(beliefs: Sequence[Belief]) -> Floats:
    """Return how probable each law is, a row an observer."""
    evidence = np.stack([log_evidence(belief) for belief in beliefs], 1)
    weight = np.exp(evidence - evidence.max(1, keepdims=True))
    return np.asarray(weight / weight.sum(1, keepdims=True))


def threshold_mass(beliefs: Sequence[Belief]) -> Floats:
    """Return how probable each threshold is over one or several laws, a row an observer."""
    weight = law_weights(beliefs)
    each = [_shares(belief).sum((2, 3)) for belief in beliefs]
    return np.asarray(sum(weight[:, [number]] * one for number, one in enumerate(each)))


_FAR_FIELDS = ("far", "far_low", "far_high", "far_bound")


def _far_quantiles(reach: Floats, mass: Floats, sure: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the median, the 95 % interval and the bound of places with their probabilities, a row an observer."""
    order = np.argsort(reach)
    far = np.array([_quantiles_of(reach[order], row[order], (0.5, 0.025, 0.975, sure)) for row in mass])
    return far[:, 0], far[:, 1], far[:, 2], far[:, 3]


def _information(mass: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return what one glyph at each level would tell of the threshold, and P(right)."""
    joint = np.matmul(mass.transpose(1, 0, 2), shares)  # (threshold, observer, level)
    each = mass.sum(2).T[:, :, None]
    right = joint.sum(0)
    given = (each * _entropy(joint / np.maximum(each, 1e-30))).sum(0)
    return _entropy(right) - given, right


def _without_usual_slope(mass: Floats, slopes: Floats) -> Floats:
    """Return the posterior (observer, threshold, slope) had every slope been as likely before.

    A bound beside the threshold must hold for the shallow as for the steep; a usual slope would draw it to its own.
    """
    flat = mass / np.exp(_slope_prior(slopes))
    return np.asarray(flat / flat.sum((1, 2), keepdims=True))


def _in_x(steps: Places) -> Floats:
    return np.asarray(steps * LATTICE, np.float64)


def shared_lapses(wrong: Floats, trials: Floats) -> Floats:
    """Return ln of a prior of the lapse from easy trials made elsewhere, a row an observer."""
    counted = np.minimum(trials, SHARED_TRIALS)
    errors = (wrong * counted / np.maximum(trials, 1.0))[:, None]
    return np.asarray((errors + 0.3) * np.log(LAPSES) + (counted[:, None] - errors + 2.0) * np.log1p(-LAPSES))


def log_evidence(belief: Belief) -> Floats:
    """Return ln of the sum over the grid: what the model gives the data, for a belief that started normalised."""
    top = belief.max((1, 2, 3))
    return np.asarray(top + np.log(np.exp(belief - top[:, None, None, None]).sum((1, 2, 3))))


def flat_evidence(right: Floats, trials: Floats, guess: float, glyphs: int = 1) -> Floats:
    """Return ln P of rows (observer, row) if no level mattered: any share from chance to 1, any correlation."""
    shares = np.linspace(guess + 0.02, 0.98, 25)
    total = np.zeros((right.shape[0], shares.size, CORRELATIONS.size if glyphs > 1 else 1))
    for number, correlation in enumerate(CORRELATIONS[: total.shape[2]]):
        own = 1.0 - correlation
        for place in range(glyphs):
            step = place * correlation
            hit = np.clip(right - place, 0.0, 1.0).sum(1)[:, None]
            missed = np.clip(trials - right - place, 0.0, 1.0).sum(1)[:, None]
            rows = np.clip(trials - place, 0.0, 1.0).sum(1)[:, None]
            log_hit = np.log(shares * own + step)
            total[:, :, number] += hit * log_hit + missed * np.log((1.0 - shares) * own + step)
            total[:, :, number] -= rows * math.log(own + step)
    total = _trust(glyphs) * total
    top = total.max((1, 2))
    return np.asarray(top + np.log(np.exp(total - top[:, None, None]).mean((1, 2))))


def _normal(belief: Belief) -> Belief:
    return np.asarray(belief - log_evidence(belief)[:, None, None, None])


def _shares(belief: Belief) -> Floats:
    share = np.exp(belief - belief.max((1, 2, 3), keepdims=True))
    return np.asarray(share / share.sum((1, 2, 3), keepdims=True))


def _entropy(share: Floats) -> Floats:
    share = np.clip(share, 1e-9, 1.0 - 1e-9)
    return np.asarray(-(share * np.log(share) + (1.0 - share) * np.log1p(-share)))


def cell_quantiles(values: Floats, mass: Floats, parts: tuple[float, ...]) -> Floats:
    """Return quantiles of evenly spaced points, interpolated within the cells around them."""
    half = (values[1] - values[0]) / 2
    return np.interp(parts, np.r_[0.0, np.cumsum(mass)], np.r_[values - half, values[-1] + half])


def _quantiles_of(ordered: Floats, mass: Floats, parts: tuple[float, ...]) -> Floats:
    return np.interp(parts, np.cumsum(mass) - 0.5 * mass, ordered)

"""Outcomes of questions asked plainly, with true crops and with false ones to what looking again was worth.

Every question is paired with itself in another arm. A model that answers by chance flips between any two of its
replies: how many flips chance alone makes is known from repeats of the plain question, and taken off.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.types import Estimate
from ...stats.average_precision import Boxes
from ...stats.intervals import Floats, Integers, estimate_mean
from ...stats.paired import paired_difference, paired_ratio

PSEUDO = 0.35
"""What each of the eight outcomes of a question (true crop, grey one, the right region: right or wrong) adds to the
variance beside those that were seen: together as much as half a pair of each kind does where there are four."""
HALF = 0.5
"""A crop that holds so much of the gold box has found it."""


class Replies(NamedTuple):
    """What each question did in one arm: means over its replies."""

    value: Floats
    """From 0 to 1."""
    right_called: Floats
    """Mean of value · (a tool was called); equal to 0 where none was."""
    called: Floats
    """The share of replies that called a tool."""


class Part(Struct, frozen=True):
    """One of the four ways in which an answer differs from the plain one."""

    rate: Estimate
    """Share of the questions, chance included."""
    chance: float | None
    """What flips between repeats of the plain question give; None without repeats."""
    beyond: Estimate | None
    """The rate less chance: below 0 where fewer flipped than by chance alone. None without repeats."""


class Split(Struct, frozen=True):
    """What became of questions that were plainly wrong (repaired) or right (spoilt), by whether a tool was called."""

    repaired: Part
    repaired_uncalled: Part
    spoilt: Part
    spoilt_uncalled: Part


def chance_flips(values: Floats, questions: Integers, count: int) -> Floats:
    """Return each question's chance that one reply is wrong and another right, from all pairs of its replies.

    `values` from 0 to 1, one a reply, of the question with that number; NaN where a question has no two replies.
    """
    replies = np.bincount(questions, minlength=count).astype(np.float64)
    right = np.bincount(questions, weights=values, minlength=count)
    itself = np.bincount(questions, weights=values * (1.0 - values), minlength=count)
    pairs = replies * (replies - 1.0)
    flips = right * (replies - right) - itself
    return np.where(pairs > 0.0, flips / np.maximum(pairs, 1.0), np.nan)


def split_worth(plain: Floats, base: Replies, flips: Floats | None, clusters: Integers | None = None) -> Split:
    """Return the four parts of A(base) - A(plain): repaired less spoilt, called or not, is exactly that difference.

    A question's plain replies are set against all its replies with tools. `flips` are those of `chance_flips`, without
    NaN; they are shared out by how often a tool was called.
    """
    right_uncalled, uncalled = base.value - base.right_called, 1.0 - base.called
    rates = {
        "repaired": ((1.0 - plain) * base.right_called, base.called),
        "repaired_uncalled": ((1.0 - plain) * right_uncalled, uncalled),
        "spoilt": (plain * (base.called - base.right_called), base.called),
        "spoilt_uncalled": (plain * (uncalled - right_uncalled), uncalled),
    }
    return Split(**{name: _part(rate, share, flips, clusters) for name, (rate, share) in rates.items()})


def _part(rate: Floats, share: Floats, flips: Floats | None, clusters: Integers | None) -> Part:
    rate = np.clip(rate, 0.0, 1.0)  # products of means round
    found = estimate_mean(rate, clusters)
    if flips is None:
        return Part(found, None, None)
    chance = flips * share
    return Part(
        found, float(chance.mean()) if chance.size else None, paired_difference(chance, rate, clusters, "looks")
    )


def reliance(base: Floats, grey: Floats, gold: Floats, clusters: Integers | None = None) -> Estimate:
    """Return which share of what the right region adds over a grey one was got by looking: (base - grey)/(gold - grey).

    None where the interval of gold - grey includes 0: then nothing could be got.
    """
    could = paired_difference(grey, gold, clusters, "looks")
    if could.ci95 is None or could.ci95[0] <= 0.0:
        return Estimate(None, n=int(base.size), unit="questions")
    cells = [(own - none, best - none) for own, none, best in product((0.0, 1.0), repeat=3)]
    return paired_ratio(base - grey, gold - grey, clusters, PSEUDO * np.array(cells))


def price_of_one(extra: Floats, gained: Floats, clusters: Integers | None = None) -> Estimate:
    """Return what one gained question costs: Σextra / Σgained; None where it is not clear that any was gained.

    `extra`: what a question took more with tools than without (tokens, seconds, money); `gained`: from -1 to 1.
    """
    known = paired_difference(np.zeros_like(gained), gained, clusters, "looks")
    if known.ci95 is None or known.ci95[0] <= 0.0:
        return Estimate(None, n=int(gained.size), unit="questions")
    return paired_ratio(extra, gained, clusters)


def held(crops: Boxes, golds: Boxes) -> NDArray[np.float64]:
    """Return which share of each gold box (columns) lies in each crop (rows)."""
    low = np.maximum(crops[:, None, :2], golds[None, :, :2])
    high = np.minimum(crops[:, None, 2:], golds[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0.0, None), axis=2)
    areas = np.prod(golds[:, 2:] - golds[:, :2], axis=1)
    return np.asarray(shared / np.maximum(areas, np.finfo(float).tiny)[None, :])


def union_area(boxes: Boxes) -> float:
    """Return the area that boxes cover together, each place once."""
    if not len(boxes):
        return 0.0
    xs, ys = np.unique(boxes[:, [0, 2]]), np.unique(boxes[:, [1, 3]])
    across = (boxes[:, None, 0] <= xs[None, :-1]) & (xs[None, 1:] <= boxes[:, None, 2])
    down = (boxes[:, None, 1] <= ys[None, :-1]) & (ys[None, 1:] <= boxes[:, None, 3])
    covered = (across[:, :, None] & down[:, None, :]).any(axis=0)
    return float(np.diff(xs) @ covered @ np.diff(ys))

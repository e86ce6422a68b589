"""What is known so far in, the next round or the end out: the rules of asking, for many observers at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..stats.intervals import Floats
from ..stats.threshold_grid import Belief, Known, Places, ThresholdGrid

SURE = 0.95
"""So probable must it be that a threshold lies off the axis before that is the verdict."""
FLAT_ODDS = 20.0
"""So much better must "the level does not matter" explain the replies than any curve."""
VERDICT_FROM = 24
READY_SHARE = 0.75
"""This share of easy trials must be right before anything is measured."""
TOWARDS_END = 0.5
"""A round has this share of the trials that the half width still seems to need: a whole one would ask too many."""
LIMIT_STEPS = 2
"""A server's limit is looked for until it is known to so many places."""
BELOW_FAR = 0.15
"""The trials that confirm are asked at x95 and this much (ln) below it."""
FAR_OPEN = 0.2
"""More rows confirm while the bound of x95 lies further (ln) from its median: advice would ask for too much."""
CEILING, FLOOR, UNEVEN, MEASURED, OPEN = "at ceiling", "not measurable", "uneven", "measured", "not settled"


class Drawn(NamedTuple):
    """The hardest and the easiest x that were drawn and answered; beyond them there are no replies."""

    hardest: float
    easiest: float


class Taken(NamedTuple):
    """Places where a server takes nothing harder: the hardest that was answered, and the easiest beyond that failed."""

    answered: int
    refused: int

    @property
    def found(self) -> bool:
        """Tell whether the limit between the two is known well enough."""
        return self.answered - self.refused <= LIMIT_STEPS


class Rules(NamedTuple):
    """How long to ask: half width of the interval in ln units, and counts of trials (or rows of glyphs)."""

    half_width: float
    batch: int
    easy: int
    least: int
    most: int
    easy_every: int
    """One trial of so many is the easiest level, so that lapses are seen."""
    confirm: int
    confirm_most: int
    """So many trials confirm at most, in rounds of `confirm`, where the bound of x95 stays far from its median."""


PRECISION = {"quick": 0.25, "standard": 0.15, "fine": 0.10}
CONFIRM_MOST = 4
"""So many rounds of rows confirm at most."""
LONGER = {"quick": 0.5, "standard": 1.0, "fine": 2.0}


def rules_for(mode: str, *, rows: bool, half_width: float | None = None) -> Rules:
    """Return the rules of a mode for single trials or for rows of glyphs; `half_width` replaces the mode's own."""
    width, length = half_width or PRECISION[mode], LONGER[mode]
    # single trials are too many to confirm in a quick exam; a few rows bring its advice down by a fifth
    confirm = (4 if rows else 0) if mode == "quick" else 8 if rows else 32
    if rows:
        # rows tell eight times as much as a trial: smaller rounds choose better, and 16 rows may be enough
        return Rules(width, 4, 4, 16, round(128 * length), 16, confirm, CONFIRM_MOST * confirm)
    return Rules(width, 8, 8, 24, round(240 * length), 16, confirm, confirm)


def first_places(grid: ThresholdGrid, count: int, observers: int, draw: np.random.Generator) -> Places:
    """Return one place in each of `count` equal parts of the axis, anywhere within its part."""
    within = (np.arange(count) + draw.random((observers, count))) / count
    return np.minimum((within * grid.levels).astype(np.int64), grid.levels - 1)


def round_size(known: Known, asked: int, rules: Rules) -> NDArray[np.int64]:
    """Return how many trials every observer is asked next: near the end half of what the interval still needs.

    A width falls with the root of the trials that tell of it; the easy ones and the first, spread ones hardly do.
    """
    width = (known.high - known.low) / 2 / rules.half_width
    telling = max(asked - rules.easy - rules.batch, rules.batch)
    more = np.maximum(np.ceil(TOWARDS_END * telling * (width**2 - 1)), rules.least - asked)
    return np.clip(more, 1, max(1, min(rules.batch, rules.most - asked))).astype(np.int64)


def next_places(grid: ThresholdGrid, belief: Belief, turn: range, rules: Rules, draw: np.random.Generator) -> Places:
    """Return the most telling places for the trials numbered so, each moved by up to half a step between candidates."""
    easy = any((number - rules.easy) % rules.easy_every == 0 for number in turn)
    chosen = grid.choose(belief, len(turn), easiest_first=easy)
    moved = chosen + draw.integers(-2, 3, chosen.shape)
    return np.where(chosen == grid.levels - 1, chosen, np.clip(moved, 0, grid.levels - 1))


def within_taken(places: Places, taken: Taken | None) -> Places:
    """Return the places of one round, none harder than what the server takes; one of them looks for that limit."""
    if taken is None or places.min() >= taken.answered:
        return places
    kept = np.maximum(places, taken.answered)
    if not taken.found:
        kept[places.argmin()] = (taken.answered + taken.refused) // 2
    return kept


def beyond_taken(grid: ThresholdGrid, known: Known, taken: Taken | None) -> bool:
    """Tell whether the threshold of one observer is surely harder than all that the server takes."""
    return taken is not None and taken.found and float(known.high[0]) <= float(grid.x_of(np.array(taken.answered)))


def confirming_places(grid: ThresholdGrid, known: Known, rules: Rules) -> Places:
    """Return the places that confirm: x95 and a little below it in turn, for every observer."""
    far = np.clip(known.far, grid.low, grid.end)
    below = np.clip(known.far - BELOW_FAR, grid.low, grid.end)
    pair = np.stack([far, below], 1)
    places = np.rint((pair - grid.low) / (grid.x_of(np.array([1]))[0] - grid.low)).astype(np.int64)
    return np.tile(np.clip(places, 0, grid.levels - 1), (1, rules.confirm // 2))


def finished(known: Known, asked: int, rules: Rules) -> NDArray[np.bool_]:
    """Tell for every observer whether it was asked enough."""
    narrow = (known.high - known.low) / 2 <= rules.half_width
    off = (known.below > SURE) | (known.above > SURE)
    enough = (narrow & (asked >= rules.least)) | (off & (asked >= VERDICT_FROM))
    return np.asarray(enough | (asked >= rules.most))


def verdicts(known: Known, flat_odds: Floats, drawn: Drawn) -> list[str]:
    """Return a verdict an observer; `flat_odds` are ln odds of "the level does not matter" against the curve.

    A median beyond the levels that were drawn is no measurement, however narrow: nothing was asked there.
    """
    words = []
    for below, above, flat, middle in zip(known.below, known.above, flat_odds, known.middle, strict=True):
        uneven = flat > np.log(FLAT_ODDS)
        within = CEILING if middle < drawn.hardest else FLOOR if middle > drawn.easiest else MEASURED
        words.append(CEILING if below > SURE else FLOOR if above > SURE else UNEVEN if uneven else within)
    return words


def bound_of(verdict: str, known: Known, drawn: Drawn) -> float | None:
    """Return x that one observer is surely better (at ceiling) or worse (not measurable) than; None for other verdicts.

    It is the near end of the 95 % interval, and never beyond what was drawn.
    """
    if verdict == CEILING:
        return max(drawn.hardest, float(known.high[0]))
    return min(drawn.easiest, float(known.low[0])) if verdict == FLOOR else None


def still_open(verdict: str, known: Known, drawn: Drawn, half_width: float) -> bool:
    """Tell whether trials were too few for this verdict: the interval, or what a bound leaves of the axis, is wide."""
    low, high = float(known.low[0]), float(known.high[0])
    if verdict == MEASURED:
        return high - low > 4 * half_width
    inside = {CEILING: high - drawn.hardest, FLOOR: drawn.easiest - low}
    return inside.get(verdict, 0.0) > 2 * half_width


def is_ready(right: float, tried: float) -> bool:
    """Tell whether easy trials were answered well enough to measure anything."""
    return tried > 0 and right >= READY_SHARE * tried

"""Levels asked early and asked again at the end of an exam to whether the model moved while it was measured. Pure.

Where nothing moved, the two trials of a pair could have come in either order: the level of the later one is that which
was planned for the earlier, drawn anew. So the test needs no law of the curve, and choosing levels by replies does it
no harm. Which trials are repeated goes by their number alone, never by how they went.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..stats.curve_laws import right_share
from ..stats.exchange import sign_flip_chance
from ..stats.intervals import Floats
from .course import ThresholdCourse
from .exam_trials import LATE, SEARCH, Outcome

ALARM = 0.04
"""An exam moved where chance alone gives such a difference so rarely: below the five in 100 that are allowed."""
LATE_ROWS, LEAST, MOST = 64, 4, 16
"""So many rows are asked again in an exam, shared by its tests, and how many of one test at least and at most."""
FOR_A_ROW = 3
"""So many single trials are asked again for one row."""
_SURE = 1e-6


class Moved(NamedTuple):
    """One test, or all of them: how many pairs, the share right early and late, and the chance of such a difference."""

    pairs: int
    early: float
    late: float
    chance: float


def late_count(tests: int, *, rows: bool) -> int:
    """Return how many trials of one of so many threshold tests are asked again at the end."""
    own = min(MOST, max(LEAST, LATE_ROWS // max(1, tests)))
    return own if rows else FOR_A_ROW * own


def trials_to_repeat(outcomes: Sequence[Outcome], count: int, batch: int) -> list[Outcome]:
    """Return the trials that are asked again: the first chosen by replies, then the first, spread ones.

    What failed is left out; a test that was not measured has none.
    """
    searched = [outcome for outcome in outcomes if outcome.planned.stage == SEARCH]
    chosen = [one for one in [*searched[batch:], *searched[:batch]][:count] if one.reading is not None]
    return sorted(chosen, key=lambda one: (one.planned.round, one.planned.index))


def pair_scores(course: ThresholdCourse) -> tuple[list[tuple[Outcome, Outcome]], Floats]:
    """Return pairs (early, late) of a test, and for each how much it speaks for letters that became harder to see.

    A pair counts by how steep the fitted curve is at its level: where all or nothing is seen, nothing can change.
    """
    late = [outcome for outcome in course.outcomes if outcome.planned.stage == LATE]
    both = [pair for pair in zip(course.repeated, late, strict=False) if pair[1].reading is not None]
    settled = course.settle(laws=False).known if both else None
    if settled is None:
        return [], np.zeros(0)
    axis, test = course.test.card.axis, course.test
    x = np.array([axis.x(one.planned.level) for one, _ in both])
    guess = np.array([test.chance(one.planned.level) for one, _ in both])
    slope, lapse = settled.slope[0], settled.lapse[0]
    seen = right_share(np.asarray(x - settled.middle[0]), slope, 0.0, np.zeros(1))
    share = np.clip(guess + (1.0 - guess - lapse) * seen, _SURE, 1.0 - _SURE)
    weight = slope * (1.0 - guess - lapse) * seen * (1.0 - seen) / (share * (1.0 - share))
    less = np.array([_right(one) - _right(other) for one, other in both])
    return both, np.asarray(weight * less * course.grid.glyphs, np.float64)


def _right(outcome: Outcome) -> float:
    reading = outcome.reading
    return min(1.0, reading.right / reading.glyphs) if reading is not None else 0.0


def judge_drift(courses: Mapping[str, ThresholdCourse], seed: int) -> dict[str, Any] | None:
    """Return what exam.json says of drift: all tests together, and each; None where nothing was asked twice.

    Half of the alarms that are allowed go to all tests together, half to single ones (Bonferroni); all to one alone.
    """
    told: dict[str, tuple[list[tuple[Outcome, Outcome]], Floats]] = {}
    for name, course in courses.items():
        pairs, scores = pair_scores(course)
        if pairs:
            told[name] = pairs, scores
    if not told:
        return None
    each = {name: _moved(*one, seed, name) for name, one in told.items()}
    every = [pair for pairs, _ in told.values() for pair in pairs]
    whole = _moved(every, np.concatenate([scores for _, scores in told.values()]), seed, "all")
    alone = len(told) == 1
    moved = whole.chance <= (ALARM if alone else ALARM / 2)
    tests = {name: _figures(one, moved=moved or one.chance <= ALARM / 2 / len(told)) for name, one in each.items()}
    return _figures(whole, moved=any(one["moved"] for one in tests.values())) | {"tests": tests}


def _moved(pairs: Sequence[tuple[Outcome, Outcome]], scores: Floats, *purpose: str | int) -> Moved:
    early, late = (float(np.mean([_right(pair[side]) for pair in pairs])) for side in (0, 1))
    return Moved(len(pairs), early, late, sign_flip_chance(scores, *purpose, "drift"))


def _figures(moved_by: Moved, *, moved: bool) -> dict[str, Any]:
    shares = {"early": round(moved_by.early, 4), "late": round(moved_by.late, 4)}
    return {"moved": moved, "pairs": moved_by.pairs, **shares, "p": float(f"{moved_by.chance:.3g}")}

"""Levels asked early and asked again at the end of an exam to whether the model moved while it was measured. Pure.

Where nothing moved, trials of one level could have come in any order: the level of a later one is that which was
planned for the earlier, drawn anew. So the test needs no law of the curve, and choosing levels by replies does it no
harm. Which trials are repeated goes by their number alone, never by how they went.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..stats.exchange import exchange_chance
from ..stats.intervals import Floats
from ..stats.psychometric import right_share
from .adaptive import AdaptiveTest
from .exam_trials import LATE, SEARCH, Outcome

ALARM = 0.04
"""An exam moved where chance alone gives such a difference so rarely: below the five in 100 that are allowed."""
LATE_ROWS, LEAST, MOST = 64, 4, 28
"""So many rows are asked again in an exam, shared by its tests, and how many of one test at least and at most."""
FOR_A_ROW = 3
"""So many single trials are asked again for one row."""
EARLY_ROUNDS = 4
"""What was asked in so many full rounds is early: later it may have moved already."""
TWICE = 2
"""So often is a level asked again at most."""
_SURE = 1e-6


class Again(NamedTuple):
    """Trials of one level: the share right of the early one, of the late ones, and how much they can tell."""

    early: float
    late: tuple[float, ...]
    weight: float


def late_count(tests: int, *, rows: bool) -> int:
    """Return how many trials of one of so many threshold tests are asked again at the end."""
    own = min(MOST, max(LEAST, LATE_ROWS // max(1, tests)))
    return own if rows else FOR_A_ROW * own


def trials_to_repeat(outcomes: Sequence[Outcome], count: int, batch: int) -> list[Outcome]:
    """Return the trials that are asked again: the first chosen by replies, then the first, spread ones; then all again.

    What failed is left out; a test that was not measured has none.
    """
    searched = [outcome for outcome in outcomes if outcome.planned.stage == SEARCH][: EARLY_ROUNDS * batch]
    ordered = TWICE * [*searched[batch:], *searched[:batch]]
    return [one for one in ordered[:count] if one.reading is not None]


def asked_again(running: AdaptiveTest) -> list[Again]:
    """Return the levels of a test that were asked again.

    Each counts by how steep the fitted curve is there: where all or nothing is seen, nothing can change.
    """
    late = [outcome for outcome in running.outcomes if outcome.planned.stage == LATE]
    told: dict[tuple[int, int], tuple[Outcome, list[float]]] = {}
    for early, one in zip(running.repeated, late, strict=False):
        if one.reading is not None:
            place = early.planned.round, early.planned.index
            told.setdefault(place, (early, []))[1].append(_right(one))
    known = running.settle(laws=False).known if told else None
    if known is None:
        return []
    curve = float(known.middle[0]), float(known.slope[0]), float(known.lapse[0])
    return [Again(_right(early), tuple(own), _weight(running, early, len(own), curve)) for early, own in told.values()]


def _weight(running: AdaptiveTest, early: Outcome, times: int, curve: tuple[float, float, float]) -> float:
    """Return what a level tells of a shift of the curve, over the variance of early minus the mean of late."""
    (middle, slope, lapse), test, level = curve, running.test, early.planned.level
    guess, reach = test.chance(level), np.array(test.card.axis.x(level) - middle)
    seen = float(right_share(reach, np.array(slope), 0.0, np.array(0.0)))
    share = min(1.0 - _SURE, max(_SURE, guess + (1.0 - guess - lapse) * seen))
    steep = slope * (1.0 - guess - lapse) * seen * (1.0 - seen)
    return running.grid.glyphs * steep / (share * (1.0 - share)) / (1.0 + 1.0 / times)


def _right(outcome: Outcome) -> float:
    reading = outcome.reading
    return min(1.0, reading.right / reading.glyphs) if reading is not None else 0.0


def judge_drift(started: Mapping[str, AdaptiveTest], seed: int) -> dict[str, Any] | None:
    """Return what exam.json says of drift: all tests together, and each; None where nothing was asked twice.

    Half of the alarms that are allowed go to all tests together, half to single ones (Bonferroni); all to one alone.
    """
    told = {name: own for name, running in started.items() if (own := asked_again(running))}
    if not told:
        return None
    chances = {name: _chance(own, seed, name) for name, own in told.items()}
    every = [one for own in told.values() for one in own]
    whole = _chance(every, seed, "all")
    moved = whole <= (ALARM if len(told) == 1 else ALARM / 2)
    alone = ALARM / 2 / len(told)
    tests = {name: _figures(own, chances[name], moved=moved or chances[name] <= alone) for name, own in told.items()}
    return _figures(every, whole, moved=any(one["moved"] for one in tests.values())) | {"tests": tests}


def _chance(levels: Sequence[Again], *purpose: str | int) -> float:
    first = np.array([one.weight * one.early for one in levels])
    others: Floats = np.full((len(levels), TWICE), np.nan)
    for row, one in enumerate(levels):
        others[row, : len(one.late)] = [one.weight * share for share in one.late]
    return exchange_chance(first, others, *purpose, "drift")


def _figures(levels: Sequence[Again], chance: float, *, moved: bool) -> dict[str, Any]:
    early = float(np.mean([one.early for one in levels]))
    late = float(np.mean([np.mean(one.late) for one in levels]))
    shares = {"early": round(early, 4), "late": round(late, 4), "late_trials": sum(len(one.late) for one in levels)}
    return {"moved": moved, "levels": len(levels), **shares, "p": float(f"{chance:.3g}")}

"""Rows that are read whole or not at all are flagged by `sight.result`, also in a quick exam; ordinary ones are not."""

from __future__ import annotations

import math
import random

from snellen.sight.adaptive import AdaptiveTest
from snellen.sight.cards import eye_test
from snellen.sight.exam_trials import Outcome
from snellen.sight.plate import Reading
from snellen.sight.result import WHOLE_ROWS
from snellen.sight.sitting import rules_of_test


def correlation_found(seed: int, *, whole: bool) -> float:
    """The correlation that a quick exam finds in one reader of rows."""
    test, draw = eye_test("acuity"), random.Random(f"whole {seed}")
    running = AdaptiveTest("acuity", test, seed, rules_of_test("acuity", test.card, "quick"), blanks=False)
    threshold, slope = draw.uniform(4.0, 25.0), draw.uniform(3.0, 10.0)
    while planned := running.plan():
        outcomes = []
        for one in planned:
            share = 0.99 / (1 + math.exp(-slope * math.log(one.level / threshold)))
            row = draw.random() < share
            seen = [row if whole else draw.random() < share for _ in range(8)]
            right = float(sum(each or draw.random() < 0.1 for each in seen))
            outcomes.append(Outcome(one, one.level, Reading(right, 8, 0.1, "x"), "", {}, "", None))
        running.take(outcomes)
    known = running.settle().known
    return 0.0 if known is None else float(known.correlation[0])


def test_quick_exams_flag_readers_of_whole_rows_and_nobody_else() -> None:
    whole = [correlation_found(seed, whole=True) > WHOLE_ROWS for seed in range(12)]
    assert sum(whole) >= 10
    assert not any(correlation_found(seed, whole=False) > WHOLE_ROWS for seed in range(12))

"""Fields of readers that guess, or read all places worse than their acuity promises: no place is named as worse."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.sight.advice import prescribe
from snellen.sight.cards import eye_test
from snellen.sight.exam_trials import Outcome, Planned
from snellen.sight.fixed import FixedTest
from snellen.sight.plate import Reading
from snellen.sight.scenes import CELLS
from snellen.sight.special import field_result

NEEDED = {"value": 8.0, "slope": 6.0, "lapse": 0.02}
TRIALS = 75


def field_of(shift: float, seed: int) -> dict[str, object]:
    """Return what is said of an even field whose letters must all be so much larger (ln) than the acuity says."""
    draw = np.random.default_rng([31, seed])
    made = FixedTest("field", eye_test("field"), 0, places=CELLS * CELLS, trials=TRIALS)
    for number in range(TRIALS):
        row, column = divmod(number % CELLS**2, CELLS)
        x = np.log(8.0) + draw.choice((0.07, 0.29))
        share = 0.1 + 0.88 / (1 + np.exp(-6.0 * (x - np.log(8.0) - shift)))
        reading = Reading(float(draw.binomial(4, share)), 4, 0.1, "CDHK")
        planned = Planned("search", 0, number, 1.0, "0", 0)
        made.outcomes.append(Outcome(planned, float(np.exp(x)), reading, detail={"row": row, "column": column}))
    return field_result(made, NEEDED)


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_that_guesses_everywhere_has_no_field(seed: int) -> None:
    found = field_of(9.0, seed)
    assert (found["verdict"], found["value"]) == ("not measurable", None)
    assert "of 300 letters right, where the acuity of this canvas lets one expect" in str(found["reason"])
    assert not prescribe({"field": found}, None)


@pytest.mark.parametrize("shift", [-0.3, 0.3, 0.4, 0.6])
def test_what_is_worse_everywhere_is_not_worse_somewhere(shift: float) -> None:
    found = [field_of(shift, seed) for seed in range(6)]
    assert not any(one["verdict"] == "uneven" for one in found)

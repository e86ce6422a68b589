"""The visual field of a model that does not answer: nothing is measured, and the page says why."""

from __future__ import annotations

import pytest

from snellen.sight.cards import eye_test
from snellen.sight.exam_trials import Outcome, Planned
from snellen.sight.fixed import FixedTest
from snellen.sight.plate import Reading
from snellen.sight.procedure import FLOOR
from snellen.sight.scenes import CELLS
from snellen.sight.special import field_result

NEEDED = {"value": 8.0, "slope": 6.0, "lapse": 0.02}


def running(answers: int) -> FixedTest:
    """Return a field of 75 replies of which so many hold letters, all of them right."""
    made = FixedTest("field", eye_test("field"), 0, places=CELLS * CELLS, trials=75)
    cells = [divmod(number % CELLS**2, CELLS) for number in range(75)]
    made.outcomes = [
        Outcome(
            Planned("search", 0, number, 1.0, "0", 0),
            8.0,
            Reading(4.0, 4, 0.1, "abcd") if number < answers else Reading(0.4, 4, 0.1, None),
            detail={"row": row, "column": column},
        )
        for number, (row, column) in enumerate(cells)
    ]
    return made


@pytest.mark.parametrize("answers", [0, 11])
def test_a_field_without_answers_has_no_value(answers: int) -> None:
    found = field_result(running(answers), NEEDED)
    assert (found["verdict"], found["value"]) == (FLOOR, None)
    assert found["reason"] == f"{answers} of 75 replies hold letters"


def test_a_field_with_answers_has_one() -> None:
    assert field_result(running(75), NEEDED)["value"] is not None

"""`sight.exam_scorer`: a reply that was cut off counts only where its answer stood before the cut, alone."""

from __future__ import annotations

import pytest

from snellen.core.types import Prediction, TrialKey
from snellen.sight.cards import eye_test
from snellen.sight.exam_scorer import TRUNCATED, read_outcome

ROW = {"alphabet": "CDHKNORSVZ", "x": 10.0, "y": 10.0, "width": 100, "height": 100}


def outcome(name: str, text: str, truth: str, finish: str) -> tuple[str | None, str]:
    prediction = Prediction(TrialKey("exam-x", "1"), text=text, finish=finish)
    reading, why = read_outcome(eye_test(name), truth, ROW, prediction)
    return (reading.answer if reading else None), why


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orientation", "Let me look. The ring stands in the upper left part of the"),
        ("orientation", "The gap is at the left"),
        ("count", "First I count the discs of the top row: 4"),
        ("acuity", "CDHKN"),
        ("acuity", "The row begins with CDHKNORS and"),
    ],
)
def test_what_a_cut_off_thought_names_is_no_answer(name: str, text: str) -> None:
    assert outcome(name, text, "3", "length") == (None, TRUNCATED)
    assert outcome(name, text, "3", "stop")[0] is not None


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("orientation", "Top left.\nThe ring is open towards", "top left"),
        ("count", "**14**\n\nI counted them row by", "14"),
        ("acuity", "C D H K N O R S\nC D H K", "CDHKNORS"),
        ("locate", "(512, 300)\nwhich is", "512, 300"),
    ],
)
def test_an_answer_alone_before_the_cut_counts(name: str, text: str, answer: str) -> None:
    assert outcome(
        name, text, "100, 100" if name == "locate" else "3" if name == "count" else "CDHKNORS", "length"
    ) == (
        answer,
        "",
    )

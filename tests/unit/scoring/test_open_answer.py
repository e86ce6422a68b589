"""Short answers read out of sentences: right, denied, unread beside a rival, and by which rule."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey
from snellen.scoring.scorers import by_form
from snellen.scoring.scorers.open_answer import score
from snellen.scoring.scorers.text_match import contains, exact

KEY = TrialKey("t", "s")


def run(answer: str, text: str, finish: str | None = None) -> Score:
    sample = Sample("s", "d", Form.OPEN, "What?", answers=(answer,))
    (found,) = score(sample, Request(KEY, ()), Prediction(KEY, text=text, finish=finish), {})
    return found


@pytest.mark.parametrize(
    ("answer", "text", "value", "rule"),
    [
        ("Tesco", "Tesco", 1.0, "whole"),
        ("Tesco", "It is from Tesco.", 1.0, "contained"),
        ("Tesco", "The bag comes from Tesco. You can tell by the blue stripes below the letters.", 1.0, "contained"),
        ("Tesco", "It is not from Tesco.", 0.0, "denied"),
        ("Tesco", "It is from Lidl.", 0.0, "short"),
        ("Paris", "The answer is London. Paris is further south.", 0.0, "short"),
        ("3", "There are three.", 1.0, "only"),
        ("3", "I count 4 of them.", 0.0, "only"),
        ("5 km", "The distance is 5000 m.", 1.0, "only"),
        ("yes", "Yes, there is a dog.", 1.0, "yes_no"),
        ("no", "Yes, there is a dog.", 0.0, "yes_no"),
        ("red", "The car is red because of the paint.", 1.0, "contained"),
    ],
)
def test_a_short_answer_is_read_out_of_a_sentence(answer: str, text: str, value: float, rule: str) -> None:
    found = run(answer, text)
    assert (found.metric, found.value, found.rule) == ("accuracy", value, rule)


@pytest.mark.parametrize(
    ("answer", "text", "reason"),
    [
        ("Tesco", "It is from Tesco or Lidl.", "ambiguous"),
        ("Tesco", "It might be from Tesco.", "ambiguous"),
        ("Tesco", "It is from Tesco. Wait, actually it is from Lidl.", "ambiguous"),
        ("Paris", "It was taken in Paris, Texas.", "ambiguous"),
        ("red", "The flag is red and white.", "ambiguous"),
        ("Tesco", "I cannot see any brand in the picture.", "refused"),
        ("3", "I cannot see how many of the two kinds there are.", "refused"),
        ("Tesco", "", "empty"),
    ],
)
def test_what_is_left_open_is_unread(answer: str, text: str, reason: str) -> None:
    found = run(answer, text)
    assert (found.value, found.reason) == (None, reason)


def test_a_reply_that_was_cut_is_unread_and_not_wrong() -> None:
    assert run("Tesco", "The bag in the picture has blue and red", "length").reason == "truncated"
    assert run("Tesco", "Tesco", "length").value == 1.0
    sample = Sample("s", "d", Form.OPEN, "What?", answers=("Tesco",))
    reply = Prediction(KEY, text="The bag in the picture has blue and red", finish="length")
    for scorer in (exact, contains):
        (found,) = scorer(sample, Request(KEY, ()), reply, {})
        assert (found.value, found.reason) == (None, "truncated")


def test_mixed_rows_read_open_answers_in_the_same_way() -> None:
    sample = Sample("s", "d", Form.OPEN, "What?", answers=("Tesco",))
    (found,) = by_form.score(sample, Request(KEY, ()), Prediction(KEY, text="It is from Tesco."), {})
    assert (found.value, found.rule) == (1.0, "contained")

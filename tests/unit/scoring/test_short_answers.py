"""Short answers in braces, in a JSON field, and by the words they share, each worked out by hand."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers.short_answers import (
    braced_accuracy,
    labels_in,
    score_json_answer,
    score_label_set,
    score_word_f1,
    word_f1,
)

KEY = TrialKey("t", "1")


@pytest.mark.parametrize(
    ("reply", "answer", "value"),
    [
        ("There are {3} lines.", "3", 1.0),
        ("First {2}, no: {3}", "3", 1.0),
        ("{3}, then {2}", "3", 0.0),
        ("rows={3} columns={4}", "3,4", 1.0),
        ("{3}{4}", "3,4", 1.0),
        ("{4}{3}", "3,4", 0.0),
        ("3", "3", 1.0),
        ("3.0", "3", 1.0),
        ("Yes", "yes", 1.0),
        ("{R}", "r", 1.0),
        ("no idea", "3", 0.0),
    ],
)
def test_the_answer_stands_in_braces(reply: str, answer: str, value: float) -> None:
    assert braced_accuracy(reply, [answer]) == value


@pytest.mark.parametrize(
    ("reply", "answer", "value"),
    [
        ("the blue whale", "blue whale", 0.8),
        ("blue whale", "blue whale", 1.0),
        ("red fox", "blue whale", 0.0),
        ("", "blue whale", 0.0),
    ],
)
def test_words_that_are_shared(reply: str, answer: str, value: float) -> None:
    assert word_f1(reply, [answer]) == pytest.approx(value)


def test_word_f1_is_a_scorer() -> None:
    sample = Sample("1", "t", Form.OPEN, "?", answers=("blue whale",))
    [score] = score_word_f1(sample, Request(KEY, ()), Prediction(KEY, text="blue whale"), {})
    assert (score.metric, score.value) == ("word_f1", 1.0)


@pytest.mark.parametrize(
    ("kind", "answer", "reply", "value", "reason"),
    [
        ("float", "3.142", '{"solution": "…", "short answer": "3.142"}', 1.0, None),
        ("float", "3.142", '{"short answer": "3.143"}', 1.0, None),
        ("float", "3.142", '{"short answer": "3.144"}', 0.0, None),
        ("float", "6.283", '{"short answer": "2π"}', 1.0, None),
        ("float", "3.142", '{"short answer": "many"}', None, "unparsed"),
        ("float", "3.142", "The answer is 3.142", 1.0, None),
        ("multiple choice", "B", '{"short answer": "B"}', 1.0, None),
        ("multiple choice", "B", '{"short answer": "b"}', 1.0, None),
        ("multiple choice", "B", '{"short answer": "B. the second"}', 1.0, None),
        ("multiple choice", "B", '{"short answer": "A or B"}', None, "unparsed"),
        ("text", "yes, it is even", '{"short answer": "Even"}', 1.0, None),
        ("text", "yes", '{"short answer": "no"}', 0.0, None),
        ("text", "yes", "", None, "empty"),
        ("text", "yes", "<think>yes", None, "truncated"),
    ],
)
def test_a_json_answer_is_compared_by_its_type(
    kind: str, answer: str, reply: str, value: float | None, reason: str | None
) -> None:
    sample = Sample("1", "t", Form.OPEN, "?", answers=(answer,), tags={"answer_type": kind})
    [score] = score_json_answer(sample, Request(KEY, ()), Prediction(KEY, text=reply), {})
    assert (score.value, score.reason) == (value, reason)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("A", "A"),
        ("A, C", "AC"),
        ("CA", "AC"),
        ("C and A", "AC"),
        ("(B)", "B"),
        ("2", "2"),
        ("B.", "B"),
        ("Because", None),
        ("the second", None),
        ("", None),
    ],
)
def test_labels_and_nothing_else(text: str, labels: str | None) -> None:
    assert labels_in(text) == labels


@pytest.mark.parametrize(
    ("reply", "value", "reason"),
    [
        ("C, A", 1.0, None),
        ("The answer is AC", 1.0, None),
        ("A", 0.0, None),
        ("It turns to the left, so it is the third figure.", None, "unparsed"),
        ("", None, "empty"),
    ],
)
def test_all_labels_and_no_other_are_right(reply: str, value: float | None, reason: str | None) -> None:
    sample = Sample("1", "t", Form.OPEN, "Which?", answers=("A, C",))
    [score] = score_label_set(sample, Request(KEY, ()), Prediction(KEY, text=reply), {})
    assert (score.value, score.reason) == (value, reason)

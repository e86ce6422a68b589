"""Typed answers of long documents: whole numbers, decimals, texts, exact kinds and lists, each worked out by hand."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers.document_answer import document_answer, must_be_exact, score_document_answer

KEY = TrialKey("t", "1")


@pytest.mark.parametrize(
    ("kind", "gold", "reply", "value"),
    [
        ("Int", "7", "7", 1.0),
        ("Int", "7", "7.0", 1.0),
        ("Int", "7", "8", 0.0),
        ("Int", "7", "seven", 0.0),
        ("Int", "1200", "1,200", 1.0),
        ("Float", "0.25", "0.25", 1.0),
        ("Float", "0.25", "25%", 1.0),
        ("Float", "25%", "0.25", 1.0),
        ("Float", "$3.14", "3.14", 1.0),
        ("Float", "100", "100.9", 1.0),
        ("Float", "100", "102", 0.0),
        ("Float", "12.3", "many", 0.0),
        ("Str", "Blue whale", "blue whale", 1.0),
        ("Str", "Blue whale (animal)", "blue whale", 1.0),
        ("Str", "blue whale", "blue while", 0.9),
        ("Str", "blue whale", "red fox", 0.0),
        ("Str", "page 5", "page 6", 0.0),
        ("Str", "page 5", "Page 5", 1.0),
        ("Str", "https://a.org/x", "https://a.org/y", 0.0),
        ("Str", "a@b.org", "a@c.org", 0.0),
        ("Str", "2019-01-02", "2019-01-03", 0.0),
        ("None", "Not answerable", "Not answerable", 1.0),
        ("None", "Not answerable", "4 percent", 0.0),
        ("List", "['a cat', 'a dog']", "['a dog', 'a cat']", 1.0),
        ("List", "['a cat', 'a dog']", "['a cat']", 0.0),
        ("List", "['red rose', 'blue whale']", "['blue whale', 'red nose']", 0.875),
        ("List", "['1', '2']", "['2', '1']", 1.0),
        ("List", "['1', '2']", "['1', '3']", 0.0),
        ("List", "['a cat']", "a cat", 1.0),
    ],
)
def test_each_kind_has_its_rule(kind: str, gold: str, reply: str, value: float) -> None:
    assert document_answer(gold, reply, kind) == pytest.approx(value)


def test_exactly_half_is_not_more_than_half() -> None:
    assert document_answer("abcd", "abxy", "Str") == 0.0
    assert document_answer("abcde", "abcxy", "Str") == pytest.approx(0.6)


@pytest.mark.parametrize("text", ["https://x.y", "main.py", "page 3", "555-0101", "10:30 a.m.", "2020-02", "a@b.c"])
def test_kinds_that_are_right_or_wrong(text: str) -> None:
    assert must_be_exact(text)
    assert not must_be_exact("the blue whale")


@pytest.mark.parametrize(
    ("reply", "value", "reason"),
    [
        ("The answer is 7", 1.0, None),
        ("7", 1.0, None),
        ("9", 0.0, None),
        ("", None, "empty"),
        ("<think>7", None, "truncated"),
    ],
)
def test_a_reply_is_scored_by_the_format_of_its_sample(reply: str, value: float | None, reason: str | None) -> None:
    sample = Sample("1", "t", Form.OPEN, "How many?", answers=("7",), tags={"answer_format": "Int"})
    [score] = score_document_answer(sample, Request(KEY, ()), Prediction(KEY, text=reply), {})
    assert (score.value, score.reason) == (value, reason)

"""Exact, contains and word error scorers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey
from snellen.scoring.scorers.text_match import contains, exact, fold, word_error

KEY = TrialKey("t", "s")


def run(
    scorer: Callable[..., Any], answers: tuple[str, ...], text: str, finish: str | None = None, **options: Any
) -> list[Score]:
    sample = Sample("s", "d", Form.OPEN, "What?", answers=answers)
    return list(scorer(sample, Request(KEY, ()), Prediction(KEY, text=text, finish=finish), options))


@pytest.mark.parametrize(
    ("answers", "text", "value"),
    [
        (("Paris",), "paris.", 1.0),
        (("Paris",), "The answer is Paris.", 1.0),
        (("Paris",), "<think>London?</think>**Paris**", 1.0),
        (("Paris",), "Paris, France", 0.0),
        (("Paris",), "The answer is Paris, Texas.", 0.0),
        (("Paris",), "Answer: Paris. It lies on the Seine.", 1.0),
        (("Paris",), "The answer is Paris because of the Seine.", 1.0),
        (("Dr. No",), "The answer is Dr. No.", 1.0),
        (("Paris",), "The answer is London. Paris is further south.", 0.0),
        (("12", "twelve"), "Twelve", 1.0),
        (("cafe",), "café", 0.0),
        (("ＡＢＣ",), "abc", 1.0),
    ],
)
def test_exact(answers: tuple[str, ...], text: str, value: float) -> None:
    (result,) = run(exact, answers, text)
    assert (result.metric, result.value) == ("exact_match", value)


def test_exact_case_sensitive() -> None:
    assert run(exact, ("Paris",), "paris", case_sensitive=True)[0].value == 0.0


@pytest.mark.parametrize(
    ("answer", "text", "bounded", "anywhere"),
    [
        ("cat", "a cat sat", 1.0, 1.0),
        ("cat", "concatenate", 0.0, 1.0),
        ("$5", "it costs $5!", 1.0, 1.0),
        ("猫", "这是猫吗", 1.0, 1.0),
        ("cat", "a dog", 0.0, 0.0),
        ("12", "112 or 12", 1.0, 1.0),
    ],
)
def test_contains(answer: str, text: str, bounded: float, anywhere: float) -> None:
    assert run(contains, (answer,), text)[0].value == bounded
    loose = run(contains, (answer,), text, boundary=False)[0]
    assert (loose.metric, loose.value) == ("contains_anywhere", anywhere)


def test_word_error_counts_words_of_the_nearest_reference() -> None:
    rate, accuracy = run(word_error, ("the quick brown fox", "nothing like it"), "The quick brown dog.")
    assert (rate.metric, rate.value, rate.detail) == ("wer", 0.25, {"errors": 1, "words": 4})
    assert (accuracy.metric, accuracy.value) == ("word_accuracy", 0.75)


def test_word_error_above_one_keeps_accuracy_at_zero() -> None:
    rate, accuracy = run(word_error, ("one",), "a b c d")
    assert (rate.value, accuracy.value) == (4.0, 0.0)


@pytest.mark.parametrize("scorer", [exact, contains, word_error])
def test_nothing_to_compare_is_unscored(scorer: Callable[..., Any]) -> None:
    assert run(scorer, ("x",), "  ")[0].reason == "empty"
    assert run(scorer, ("x",), "", finish="length")[0].reason == "truncated"
    assert run(scorer, ("x",), "<think>no end")[0].reason == "truncated"
    assert run(scorer, (), "x")[0].reason == "no_reference"


def test_fold() -> None:
    assert fold("  “Straße”\n No. 5! ") == "strasse” no. 5"

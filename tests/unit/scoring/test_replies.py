"""What of a reply is measured, and what is said when there is nothing to measure."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Sample, Score, TrialKey
from snellen.scoring.scorers.replies import answer_text, score_text

KEY = TrialKey("t", "s")


def sample(*answers: str) -> Sample:
    return Sample(id="s", dataset="d", form=Form.OPEN, question="?", answers=answers)


def length(text: str, answers: object) -> float:
    return float(len(text))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("  a cat \n", "a cat"),
        ("<think>a dog? no</think> a cat", "a cat"),
        ("<think>a dog? no", None),
        ("", ""),
    ],
)
def test_the_answer_is_what_comes_after_the_thinking(text: str, answer: str | None) -> None:
    assert answer_text(Prediction(KEY, text=text)) == answer
    assert answer_text(Prediction(KEY, loglikelihoods=(-1.0,))) is None


def test_a_text_is_measured_and_keeps_what_was_measured() -> None:
    score = score_text("length", length, sample("x"), Prediction(KEY, text="<think>long</think> cat"))
    assert score == Score(key=KEY, metric="length", value=3.0, answer="cat", rule="length")


@pytest.mark.parametrize(
    ("prediction", "answers", "answer", "reason"),
    [
        (Prediction(KEY, loglikelihoods=(-1.0, -2.0)), ("x",), None, "no text reply"),
        (Prediction(KEY, text="<think>never ends"), ("x",), None, "truncated inside its thinking block"),
        (Prediction(KEY, text="cat"), (), "cat", "the sample has no reference answer"),
    ],
)
def test_nothing_to_measure_is_unscored_with_its_reason(
    prediction: Prediction, answers: tuple[str, ...], answer: str | None, reason: str
) -> None:
    score = score_text("length", length, sample(*answers), prediction)
    assert (score.value, score.answer, score.reason) == (None, answer, reason)

"""Single replies whose truth a person can tell at sight: no scorer may say otherwise, nor say 0 where nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Image, Prediction, Request, Sample, Score, TrialKey
from snellen.scoring.aggregates.caption_scores import aggregate as caption_figures
from snellen.scoring.aggregates.caption_scores import score as score_caption
from snellen.scoring.scorers.grounding import score_box, score_place
from snellen.scoring.scorers.key_values import score as score_kie
from snellen.scoring.scorers.number_match import score as score_number
from snellen.scoring.scorers.option_choice import score_yesno
from snellen.scoring.scorers.text_match import contains, exact, word_error
from snellen.scoring.scorers.video_scores import score_mra
from snellen.scoring.scorers.vqa import parse_number, score_anls, score_any_exact, score_relaxed, score_vqa
from snellen.scoring.scorers.word_accuracy import score as score_ocr
from snellen.scoring.tables.table import lower_is_better

KEY = TrialKey("t", "1")


def scored(
    scorer: Callable[..., Any], answers: Sequence[str], reply: str, form: Form = Form.OPEN, **options: Any
) -> list[Score]:
    sample = Sample("1", "t", form, "?", (Image("/x.png"),), answers=tuple(answers))
    return list(scorer(sample, Request(KEY, ()), Prediction(KEY, text=reply), options))


def first_value(scorer: Callable[..., Any], answer: str, reply: str, form: Form = Form.OPEN) -> float | None:
    return scored(scorer, [answer], reply, form)[0].value


@pytest.mark.parametrize(
    ("metric", "lower"),
    [
        *((name, True) for name in ("wer", "cer_ptb", "errors", "error_rate")),
        *((name, False) for name in ("certainty", "ceramics", "errorless", "were_right", "accuracy")),
    ],
)
def test_a_metric_is_an_error_by_its_first_word_not_by_three_letters(metric: str, lower: bool) -> None:
    assert lower_is_better(metric) is lower


@pytest.mark.parametrize(
    ("answer", "reply", "same"),
    [
        ("5", ".5", False),
        (".5", "5", False),
        ("0.5", ".5", True),
        ("-0.5", "-.5", True),
        ("1200", "1,200", True),
        ("1,200", "1200.", True),
        ("12", "1,2", False),
        ("*", "?", False),
        ("(", ")", False),
        ("?", "?", True),
        ("5", "... 5", True),
    ],
)
def test_a_number_is_not_another_because_its_point_or_sign_stands_at_the_edge(
    answer: str, reply: str, same: bool
) -> None:
    assert first_value(exact, answer, reply) == float(same)


@pytest.mark.parametrize(
    ("answer", "reply", "holds"),
    [
        ("5", "The ratio is 2.5.", False),
        ("2", "The ratio is 2.5.", False),
        ("200", "There are 1,200 of them.", False),
        ("1200", "There are 1,200 of them.", True),
        ("5", "It is -5 degrees.", False),
        ("-5", "It is -5 degrees.", True),
        ("-5", "See pages 3-5.", False),
        ("5", "See pages 3-5.", True),
        ("5", "It is 5.", True),
        ("5", "2.5 or 5, I think", True),
        (".5", "I see 5 dogs.", False),
        ("19", "COVID-19", True),
    ],
)
def test_a_number_is_not_contained_in_another(answer: str, reply: str, holds: bool) -> None:
    assert first_value(contains, answer, reply) == float(holds)


@given(st.integers(0, 9999), st.integers(0, 9999), st.integers(1, 99))
def test_contains_finds_a_whole_number_only_as_such(wanted: int, whole: int, part: int) -> None:
    reply = f"I count {whole:,} of them, that is {whole}.{part:02d} in all."
    assert first_value(contains, str(wanted), reply) == float(wanted == whole)


@pytest.mark.parametrize(
    ("text", "value"), [("e5", None), ("E5", None), ("%", None), ("\u22125", -5.0), (".5", 0.5), ("5e3", 5000.0)]
)
def test_a_chess_square_is_no_number_and_a_typographic_minus_is_a_sign(text: str, value: float | None) -> None:
    assert parse_number(text) == value
    assert scored(score_relaxed, ["e5"], text)[0].value == float(text.lower() == "e5")


def test_numbers_that_differ_are_two_answers_to_every_vote() -> None:
    first, second = (scored(score_number, ["7"], reply, Form.NUMBER)[0].answer for reply in ("1234567", "1234568"))
    assert (first, second) == ("1234567", "1234568")
    assert scored(score_mra, ["7"], "0.12345678", Form.NUMBER)[0].answer == "0.12345678"


@pytest.mark.parametrize("answer", ["3 to 5", "12 apples and 3 pears"])
def test_of_an_answer_with_several_numbers_none_is_taken_for_the_right_one(answer: str) -> None:
    (score,) = scored(score_number, [answer], "5", Form.NUMBER)
    assert (score.value, score.reason) == (None, "the answer is not a number")


def test_an_answer_that_is_neither_yes_nor_no_makes_no_reply_wrong() -> None:
    (score,) = scored(score_yesno, ["maybe"], "yes", Form.YESNO)
    assert (score.value, score.answer, score.reason) == (None, "yes", "the answer is neither yes nor no")
    assert scored(score_yesno, ["maybe", "yes"], "yes", Form.YESNO)[0].value == 1.0


@pytest.mark.parametrize("scorer", [score_anls, score_any_exact, score_vqa, score_kie, score_ocr, score_caption, exact])
def test_an_empty_reply_is_unscored_by_every_metric(scorer: Callable[..., Any]) -> None:
    assert {(score.value, score.reason) for score in scored(scorer, ["the"], "  ")} == {(None, "empty")}


def test_articles_and_punctuation_alone_are_compared_as_they_are() -> None:
    assert [first_value(score_any_exact, "a", reply) for reply in ("the", "A", "?")] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("people", [2, 3])
def test_the_formula_for_ten_people_is_not_applied_to_two_alternatives(people: int) -> None:
    (score,) = scored(score_vqa, ["cat"] * people, "cat")
    assert score.value is None and "any_exact" in (score.reason or "")
    assert scored(score_vqa, ["cat"] * 4, "cat")[0].value == 1.0


def test_word_errors_of_scripts_without_spaces_are_those_of_characters() -> None:
    rate, accuracy = scored(word_error, ["你好世界再见"], "你好世界再贝")
    assert (rate.value, rate.detail) == (1 / 6, {"errors": 1, "words": 6})
    assert accuracy.value == pytest.approx(5 / 6)
    assert [score.metric for score in scored(word_error, ["x"], "")] == ["wer", "word_accuracy"]


def test_a_caption_in_chinese_is_more_than_one_token() -> None:
    by_metric = {score.metric: score.value for score in scored(score_caption, ["一只猫在桌上"], "一只猫在桌下")}
    assert by_metric["bleu_1_sentence"] == pytest.approx(5 / 6)
    assert by_metric["rouge_l"] == pytest.approx(5 / 6)


def test_cider_of_one_sample_is_not_0_but_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snellen.scoring.aggregates.caption_scores.missing_reason", lambda: "is not asked for here")
    sample = Sample("1", "t", Form.CAPTION, "?", answers=("two dogs play",))
    score = Score(KEY, "rouge_l", 1.0, "two dogs play")
    found = caption_figures(SimpleNamespace(scores=lambda: iter([(sample, score)])), {})
    assert found["bleu_1"].value == pytest.approx(1.0)
    assert (found["cider"].value, found["cider"].unscored) == (None, 1)


@pytest.mark.parametrize("gold", ["[10, 10, 10, 40]", "[40, 10, 10, 40]", "[10, 40, 40, 10]"])
def test_a_gold_box_without_area_makes_no_reply_wrong(gold: str) -> None:
    frames = {"coordinates": {"gold": "0-100", "reply": "0-100"}}
    for scorer, reply in ((score_box, "[10, 10, 40, 40]"), (score_place, "(10, 20)")):
        for score in scored(scorer, [gold], reply, **frames):
            assert score.value is None and "without area" in (score.reason or "")

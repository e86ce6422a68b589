"""Numbers as people of many languages write them, with units or without: each reply has a truth told by hand first.

A reply that is right in one of two readings is unscored (`ambiguous`), never wrong and never right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from snellen.core.frames import FrameProblem, read_frame
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.extract.choice import extract_choice
from snellen.extract.numbers import in_unit, meanings, same_quantity
from snellen.extract.other_kinds import LAST, extract_number
from snellen.extract.places import read_box
from snellen.kits.bridges.open_rules import OPEN_RULES
from snellen.scoring.scorers.number_match import score as score_number
from snellen.scoring.scorers.replies import is_met
from snellen.scoring.scorers.short_answers import score_json_answer, score_label_set
from snellen.scoring.scorers.text_match import contains, exact
from snellen.scoring.scorers.video_scores import read_span, score_mra
from snellen.scoring.scorers.vqa import score_any_exact

KEY = TrialKey("t", "1")


def verdict(scorer: Callable[..., Any], answer: str, reply: str, form: Form = Form.NUMBER) -> float | str | None:
    """Return the value of a reply, or why there is none."""
    sample = Sample("1", "t", form, "?", answers=(answer,))
    score = scorer(sample, Request(KEY, ()), Prediction(KEY, text=reply), {})[0]
    return score.reason if score.value is None else score.value


WRITTEN = [
    ("1234567", "1.234.567", 1.0),
    ("1234567", "12,34,567", 1.0),
    ("1234", "1.234", "ambiguous"),
    ("1.234", "1.234", 1.0),
    ("1.234", "1,234", "ambiguous"),
    ("1234", "1,234", 1.0),
    ("12000", "In total 12.000, of 1.234.567", "ambiguous"),
    ("5", "5 km", 1.0),
    ("20", "20 °F", 1.0),
    ("5000000", "5m", "ambiguous"),
    ("5000000", "5M", 1.0),
    ("8", "There are 8 below.", "ambiguous"),
    ("-8", "It dropped to 8 below", 1.0),
    ("8", "It dropped to 8 below", "ambiguous"),
    ("-8", "8 degrees below zero", 1.0),
    ("-8", "8 degrees below freezing", "ambiguous"),
    ("-8", "8 °C below freezing", 1.0),
    ("-5", "–5", 1.0),
    ("5", "The count - 5", 1.0),
    ("5", "- 5 apples", "ambiguous"),
    ("-5", "- 5", 1.0),
    ("-5", "x = - 5", 1.0),
    ("5", "5 (five)", 1.0),
    ("50%", "0.5", 1.0),
    ("50 %", "50", 1.0),
    ("0.5", "50%", 1.0),
    ("5", "1.2.5", "unparsed"),
    ("30000", "3万", 1.0),
    ("3", "3万", 0.0),
    ("5", "5千克", 1.0),
    ("5", "5 mil personas", "unparsed"),
    ("3", "tres", 1.0),
    ("4.5", "4½", 1.0),
    ("3", "three", 1.0),
    ("1,5", "1.5", 1.0),
    ("3.14", "3,14", 1.0),
    ("0.5", "0,5", 1.0),
    ("0.5", "½", 1.0),
    ("12", "12.0", 1.0),
    ("1000", "1e3", 1.0),
    ("0.001", "1/1000", 1.0),
    ("-3", "negative three", 1.0),
    ("-3", "minus 3", 1.0),
]

UNITS = [
    ("5 km", "5 m", 0.0),
    ("5 km", "5000 m", 1.0),
    ("5 km", "5", 1.0),
    ("5 km", "5 kilometers", 1.0),
    ("5 km", "5 apples", 1.0),
    ("5 kg", "5 N", 0.0),
    ("5 km", "3.1 miles", "ambiguous"),
    ("5 km", "3 miles", 0.0),
    ("20 °C", "68 °F", 1.0),
    ("20 °C", "20 degrees", 1.0),
    ("20 °C", "20 °F", 0.0),
    ("$5", "5 €", 0.0),
    ("$5", "5 dollars", 1.0),
    ("$0.50", "50 cents", 1.0),
    ("$5", "$5$", 1.0),
    ("5 km", "$5$ km", 1.0),
    ("5 min", "5 m", 1.0),
    ("5 m", "5m", 1.0),
    ("5 m", "5 m", 1.0),
    ("$5 million", "$5m", 1.0),
    ("-8 °C", "8 degrees below freezing", 1.0),
    ("-8 °F", "8 degrees below freezing", "ambiguous"),
    ("24 °F", "8 degrees below freezing", "ambiguous"),
    ("5 千克", "5 kg", 1.0),
    ("1e5", "10^5", 1.0),
    ("6 ft", "6'", 1.0),
    ("90 min", "1.5 h", 1.0),
    ("90 min", "1.5 hours", 1.0),
    ("2 years", "24 months", 1.0),
    ("5 pm", "5 am", 0.0),
    ("60 mph", "60 km/h", 0.0),
    ("60 mph", "60 miles per hour", 1.0),
    ("36 km/h", "10 m/s", 1.0),
    ("5 L", "5000 cm³", 1.0),
    ("5 square meters", "5 m²", 1.0),
    ("5 m", "5 m²", 0.0),
    ("3 apples", "3 pears", 1.0),
    ("5 and/or", "5 m", 1.0),
    ("5 thousandths", "5", 1.0),
    ("2.5 kg", "2,5 kg", 1.0),
    ("2.5 kg", "2500 g", 1.0),
    ("2.500 kg", "2500 g", 1.0),
]

CHOSEN = [
    ("1234567", "The answer is 12,34,567.", 1.0),
    ("12000", "Answer: 12.000. Population 1.234.567", 1.0),
    ("17", "The answer is 12 + 5 = 17.", 1.0),
    ("12", "The answer is 12 + 5 = 17.", 0.0),
    ("5", "The answer is 5, because 3 + 2 = 5", 1.0),
    ("3", "The answer is 3 to 5", "ambiguous"),
    ("10", "The answer is 10:30", "ambiguous"),
    ("1.5", "The answer is 1 1/2", 1.0),
    ("5", "The answer is 5 (3 red and 2 blue).", 1.0),
    ("3", "The answer is 3 red and 2 blue", "ambiguous"),
    ("2020", "Answer: In 2020 there were 500", "ambiguous"),
    ("5", "Answer: 5 ft 3 in", "ambiguous"),
    ("5", "The answer is 5 out of 10.", 1.0),
    ("3", "\\boxed{3, 4}", "ambiguous"),
    ("7", "\\boxed{3+4=7}", 1.0),
    ("5", "\\boxed{\\text{cannot say}} we had 5", "unparsed"),
    ("5", "**Answer:** 5", 1.0),
    ("5", "Final answer:\n\n**5**", 1.0),
    ("5", "Answer: about 5", 1.0),
    ("5", "Answer - 5", 1.0),
]


@pytest.mark.parametrize(("answer", "reply", "truth"), WRITTEN)
def test_a_number_is_what_it_says_however_it_is_written(answer: str, reply: str, truth: float | str) -> None:
    assert verdict(score_number, answer, reply) == truth


@pytest.mark.parametrize(("answer", "reply", "truth"), UNITS)
def test_a_number_with_another_unit_is_converted_or_differs(answer: str, reply: str, truth: float | str) -> None:
    assert verdict(score_number, answer, reply) == truth


@pytest.mark.parametrize(("answer", "reply", "truth"), CHOSEN)
def test_of_several_numbers_the_one_that_is_the_answer_is_read(answer: str, reply: str, truth: float | str) -> None:
    assert verdict(score_number, answer, reply) == truth


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("１，２３４", 1234.0),
        ("١٬٢٣٤٬٥٦٧", 1234567.0),
        ("١٢٫٥", 12.5),
        ("१२३४", 1234.0),
        ("1'234'567", 1234567.0),
        ("1\u202f234\u202f567,5", 1234567.5),
        ("1.234.567,89", 1234567.89),
        ("1,234,567.89", 1234567.89),
        ("₹1,00,000.50", 100000.5),
        ("答案是3", 3.0),
        ("一共有3万人。", 30000.0),
        ("1,5 Mio. Menschen", 1.5e6),
        ("192.168.1.10", None),
        ("03.05.2021", None),
    ],
)
def test_numbers_of_many_languages(text: str, value: float | None) -> None:
    assert extract_number(text).value == value


def test_units_convert_by_what_they_measure() -> None:
    assert same_quantity((32.0, "°F"), (0.0, "°C")) and same_quantity((6.0, "nm"), (5e-9, "m")) is False
    assert same_quantity((36.0, "km/h"), (10.0, "m/s")) and same_quantity((212.0, "°F"), (100.0, "°C"))
    assert in_unit(5.0, "kg", "m") == [] and in_unit(5.0, "", "m") == [5.0]
    assert {unit for unit, _, _ in meanings("pounds")} == {"g", "GBP"} and meanings("and/or") == ()


def test_relative_accuracy_converts_units_too() -> None:
    assert verdict(score_mra, "2 m", "200 cm") == 1.0
    assert verdict(score_mra, "2 m", "2 kg") == 0.0
    assert verdict(score_mra, "2", "2 m") == 1.0


JOINED = [
    ("red <AND> blue", "It is blue and red.", 1.0),
    ("red <AND> blue", "It is blue.", 0.0),
    ("red <AND> blue", "red <AND> blue", 1.0),
    ("7 <OR> seven", "I count seven.", 1.0),
    ("7 <OR> seven", "I count 17.", 0.0),
    ("x=-1 <AND> x=-5", "The roots are x=-1 and x=-5", 1.0),
    ("a cat <OR> a dog <AND> a hat", "a dog with a hat", 1.0),
]


@pytest.mark.parametrize(("answer", "reply", "truth"), JOINED)
def test_an_answer_of_several_texts_is_asked_as_its_owners_mean_it(answer: str, reply: str, truth: float) -> None:
    for scorer in (exact, contains):
        assert verdict(scorer, answer, reply, Form.OPEN) == truth
    sample = Sample("1", "t", Form.OPEN, "?", answers=(answer,))
    assert OPEN_RULES["exact"](reply, sample) == truth


def test_where_nobody_says_which_joint_binds_nothing_is_guessed() -> None:
    assert is_met("cat <OR> dog <AND> hat", {"cat"}.__contains__) is None
    assert "which of them binds" in str(verdict(exact, "cat <OR> dog <AND> hat", "a cat", Form.OPEN))
    assert "<AND>" in str(verdict(score_any_exact, "red <AND> blue", "red", Form.OPEN))


@pytest.mark.parametrize(
    ("answer", "reply", "truth"),
    [
        ("Paris", "The answer is Paris. It is the capital of France.", 1.0),
        ("Paris", "The answer is Parma. Paris is larger.", 0.0),
        ("St. Louis", "The answer is St. Louis.", 1.0),
        ("Paris", "The answer is Paris. Wait, it is Lyon.", 0.0),
        ("12", "Answer: 12; the rest are hidden", 1.0),
        ("东京", "答案是东京。它是首都。", 1.0),
    ],
)
def test_what_follows_an_announced_answer_is_no_part_of_it(answer: str, reply: str, truth: float) -> None:
    assert verdict(exact, answer, reply, Form.OPEN) == truth


def test_an_answer_that_cannot_be_compared_makes_no_reply_wrong() -> None:
    kinds = {"answer_type": "float"}
    for scorer, answer, reply in (
        (score_json_answer, "sqrt(3)", '{"short answer": "1.732"}'),
        (score_label_set, "none of them", "A, C"),
        (score_mra, "3 to 5", "4"),
    ):
        sample = Sample("1", "t", Form.NUMBER, "?", answers=(answer,), tags=kinds)
        (score,) = scorer(sample, Request(KEY, ()), Prediction(KEY, text=reply), {})
        assert score.value is None and (score.reason or "").startswith("the answer ")


def test_of_several_numbers_none_is_taken_for_the_value_of_a_benchmark() -> None:
    sample = Sample("1", "t", Form.OPEN, "?", answers=("2020",), tags={"answer_type": "integer"})
    for rule in ("typed", "mra"):
        assert OPEN_RULES[rule]("There were 500 in 2020", sample) is None
        assert OPEN_RULES[rule]("The answer is 2020.", sample) == 1.0


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("from 24.5s to 30.2s", (24.5, 30.2)),
        ("1:02 - 1:10", (62.0, 70.0)),
        ("starts at 7.0, ends at 15.5 in the film", (7.0, 15.5)),
        *((text, None) for text in ("5 minutes to 10 minutes", "frames 5 to 10", "20% to 50%", "2 m to 3 m")),
    ],
)
def test_minutes_frames_and_per_cent_are_no_seconds(text: str, span: tuple[float, float] | None) -> None:
    assert read_span(text) == span


@pytest.mark.parametrize("frame", ["0-100", "0-1000", "pixels"])
def test_the_whole_picture_in_fractions_is_no_corner_of_it(frame: str) -> None:
    with pytest.raises(FrameProblem, match="fractions"):
        read_frame(frame).place((0.0, 0.0, 1.0, 1.0), (640, 480))
    assert read_frame(frame).place((0.0, 0.0), (640, 480)) == [0.0, 0.0]


REPLIES = [
    ("The answer is: **42** km.", 42.0),
    ("Answer: $42", 42.0),
    ("The final answer is $\\boxed{42}$.", 42.0),
    ("The answer is \\(\\boxed{3.5 \\text{ m/s}}\\)", 3.5),
    ("**Final Answer:** 7 apples\n\nExplanation: 3 + 4 = 7.", 7.0),
    ("Answer: 7 (out of 10)", 7.0),
    ("Answer: 7/10", 0.7),
    ("The answer is 5 because 2 and 3 make 5", 5.0),
    ("Answer: approximately 3.5 meters", 3.5),
    ("Answer: the number is 12", 12.0),
    ("The answer is x = 5.", 5.0),
    ("The answer is therefore 12.", 12.0),
    ("The answer is 1,234 people in 2020.", 1234.0),
    ("Answer: 12 of them in row 3", 12.0),
    ("The answer is 2 hours and 30 minutes", None),
    ("The answer is 25%.", 25.0),
    ("The answer is 10^3", 1000.0),
    ("Answer: -5", -5.0),
    ("Answer: - 5", -5.0),
    ("Answer: −3.2", -3.2),
    ("The answer is 5 - 3 = 2", 2.0),
    ("The answer is 3 × 4", None),
    ("The answer is (3, 4)", None),
    ("The answer is 3:2", None),
    ("The answer is 2021-05-03", None),
    ("The answer is #4", 4.0),
    ("The answer is no. 4", 4.0),
    ("Step 1: count. Step 2: add. The answer is 9.", 9.0),
    ("1. 5 red\n2. 3 blue\nTotal: 8", None),
    ("Total: 8", 8.0),
    ('{"count": 3, "answer": 8}', 8.0),
    ('{"answer": "8 cats"}', 8.0),
    ("<answer>8</answer>", 8.0),
    ("<answer>eight</answer>", 8.0),
    ("I count eight (8).", 8.0),
    ("Answer: about 1.5 million", 1500000.0),
    ("Answer: 5 or so", 5.0),
    ("The answer is 5, not 6.", 5.0),
    ("The answer is not 5 but 6.", 6.0),
    ("The answer isn't 5. It is 6.", 6.0),
    ("Answer: 5\nAnswer: 6", 6.0),
    ("The answer is 5. Wait, actually it's 6.", 6.0),
    ("There are 5. No, 6.", None),
    ("Answer: between 5 and 6", None),
    ("Answer: 5 to 6 people", None),
    ("Answer: 5–6", None),
    ("Answer: at least 5", None),
    ("The answer is 5 km/h.", 5.0),
    ("Answer: 12:30", None),
    ("Answer: 12.30", 12.3),
    ("Answer: 3.000.000 €", 3000000.0),
    ("Réponse : 5", 5.0),
    ("La respuesta es 1.234,5", 1234.5),
    ("答案：5个", 5.0),
    ("Antwort: 3,5", 3.5),
    ("Ответ: 12 345", 12345.0),
    ("The answer is option 3", 3.0),
    ("Answer: Figure 2 shows 5", 5.0),
    ("Answer:\n\n| a | b |\n| 3 | 4 |", None),
    ("Answer: 4 + 5", None),
    ("The answer is one.", 1.0),
    ("The answer is that one dog and two cats are there", None),
    ("No one is there; the answer is 0", 0.0),
    ("Answer: Only one of the 3 dogs", 1.0),
    ("The answer is 5°C", 5.0),
    ("Answer: 1e3", 1000.0),
    ("Answer: 2 x 10^3", 2000.0),
    ("Answer: 2×10⁻³", 0.002),
    ("Answer: 12 in.", 12.0),
    ("Answer: 5'7\"", None),
    ("Answer: $1.2M", 1200000.0),
    ("Answer: 100,000", 100000.0),
    ("Answer: 1,00,000", 100000.0),
    ("Answer: 5,6", 5.6),
    ("Answer: 5, 6", None),
    ("Answer: 12 (twelve)", 12.0),
    ("Answer: 1/2 cup", 0.5),
    ("Answer: 50 percent", 50.0),
    ("The answer is around 40-50.", None),
    ("answer 3", 3.0),
    ("The answer is not 5.", None),
    ("It isn't 5.", None),
    ("It is not 5, it is 7.", 7.0),
    ("The answer is 5. Note that 6 is wrong.", 5.0),
]
"""A reply and the number that it answers with; None where it answers with none, or nobody can tell with which."""


@pytest.mark.parametrize(("reply", "number"), REPLIES)
def test_the_number_that_a_reply_answers_with(reply: str, number: float | None) -> None:
    found = extract_number(reply)
    assert (None if found.rule == LAST else found.value) == (None if number is None else pytest.approx(number))


def test_votes_tell_kilometres_from_metres_and_per_cent_is_no_length() -> None:
    sample = Sample("1", "t", Form.NUMBER, "?", answers=("5 km",))
    said = [
        score_number(sample, Request(KEY, ()), Prediction(KEY, text=text), {})[0] for text in ("5000 m", "5", "5 m")
    ]
    assert [(one.value, one.answer) for one in said] == [(1.0, "5"), (1.0, "5"), (0.0, "5 m")]
    assert verdict(score_number, "5 %", "5 km") == 0.0


def test_per_cent_is_no_pixel() -> None:
    assert read_box("10 20 30 40").values == (10.0, 20.0, 30.0, 40.0)
    assert read_box("10%, 10%, 30%, 50%").reason == "no box found"


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("共有3万人。", ["3", "30000", "300"], "B"),
        ("Es kostet 3 Tausend Euro.", ["3", "3000"], "B"),
        ("Es sind 1.234.567 Einwohner.", ["1234567", "1234", "1.2"], "A"),
        ("It is 12,34,567 rupees", ["1234567", "567"], "A"),
        ("There are 3 of them.", ["3", "3000"], "A"),
        ("Version 1.2.3", ["1.2", "3"], None),
    ],
)
def test_options_that_are_numbers_are_found_as_they_are_written(
    reply: str, options: list[str], letter: str | None
) -> None:
    assert extract_choice(reply, options).letter == letter

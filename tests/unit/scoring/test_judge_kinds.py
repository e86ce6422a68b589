"""Judges that grade, extract and compare pairs: strict verdicts, and one judge after another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from snellen.core.errors import ConfigError, DataError
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.judges.judge_card import Judge, case_number, judge_identity, plan_votes, read_judge
from snellen.scoring.judges.verdicts import extracted_answer, parse_verdict, score_votes, scores_of_trial

PROMPT = "{question}\n{answers}\nCase {case}.\n{fence}\n{answer}\n{fence}"
KEY = TrialKey("t", "1")
SAMPLE = Sample("1", "t", Form.OPEN, "How many?", answers=("7",), tags={"template": 3, "detail": "seven of them"})
REPLY = Prediction(KEY, text="There are seven of them.")


def judge(**fields: Any) -> Judge:
    return read_judge({"prompt": PROMPT, **fields}, "j")


GRADE, PAIR = judge(verdict="number", votes=3), judge(verdict="pair", scale=[1, 10])
EXTRACT = judge(verdict="text", compare="number", metric="extracted")


def votes(of: Judge, *said: dict[str, Any] | None) -> list[str | None]:
    case = case_number(of, KEY, REPLY.text or "")
    return [None if one is None else json.dumps({"case": case, **one}) for one in said]


@pytest.mark.parametrize(
    ("grades", "value", "reason"),
    [
        ((0.5, 0.5, 0.8), 0.6, None),
        ((0.0, 1.0, None), 0.5, None),
        ((0.3, None, None), None, "not judged: 1 valid grades of 3 votes"),
        ((None, None, None), None, "no valid verdict"),
        ((1.5, -1, "high"), None, "no valid verdict"),
        (("0.4", "0.4", 0.4), 0.4, None),
        ((True, True, True), None, "no valid verdict"),
        ((float("nan"), float("nan"), 0.1), None, "not judged: 1 valid grades of 3 votes"),
    ],
)
def test_grades_are_averaged_and_what_is_no_grade_is_void(
    grades: tuple[Any, ...], value: float | None, reason: str | None
) -> None:
    said = votes(GRADE, *(None if grade is None else {"verdict": grade} for grade in grades))
    score = score_votes(GRADE, REPLY, said)
    assert score.value == (None if value is None else pytest.approx(value))
    assert score.reason == reason


def test_a_pair_gives_the_grades_of_answer_and_reference() -> None:
    scores = scores_of_trial(PAIR, SAMPLE, Request(KEY, ()), REPLY, votes(PAIR, {"reference": 8, "answer": 6}))
    assert {score.metric: score.value for score in scores} == {"judge": 6.0, "judge_reference": 8.0}
    scores = scores_of_trial(PAIR, SAMPLE, Request(KEY, ()), REPLY, votes(PAIR, {"reference": 8, "answer": 60}))
    assert {score.metric: score.value for score in scores} == {"judge": None, "judge_reference": None}


@pytest.mark.parametrize(
    ("said", "value", "reason"),
    [
        ({"answer": "7"}, 1.0, None),
        ({"answer": "8"}, 0.0, None),
        ({"answer": "no number"}, None, "unparsed"),
        ({"answer": ""}, None, "the judge found no answer in the reply"),
        ({"answer": None}, None, "no valid verdict"),
        ({"verdict": "7"}, None, "no valid verdict"),
        (None, None, "no valid verdict"),
    ],
)
def test_what_is_extracted_is_compared_by_a_rule(
    said: dict[str, Any] | None, value: float | None, reason: str | None
) -> None:
    [score] = scores_of_trial(EXTRACT, SAMPLE, Request(KEY, ()), REPLY, votes(EXTRACT, said))
    assert (score.metric, score.value, score.reason) == ("extracted", value, reason)


def test_the_extraction_is_what_most_votes_found() -> None:
    three = judge(verdict="text", compare="number", votes=3)
    assert extracted_answer(three, REPLY, votes(three, {"answer": "7"}, {"answer": "9"}, {"answer": "7"})) == "7"
    assert extracted_answer(three, REPLY, votes(three, {"answer": "7"}, {"answer": "9"}, None)) is None


def test_a_verdict_of_another_case_or_kind_is_none() -> None:
    assert parse_verdict('{"case": "000000000000", "verdict": 0.5}', "111111111111", GRADE) is None
    assert parse_verdict('{"case": "1", "verdict": 0.5, "score": 1}', "1", GRADE) is None
    assert parse_verdict('{"case": "1", "reference": 5}', "1", PAIR) is None


def test_a_judge_sees_tags_and_the_rubric_of_its_template() -> None:
    told = judge(
        prompt=PROMPT + "\n{detail}\n{rubric}",
        verdict="number",
        shows=["detail"],
        rubric_tag="template",
        rubrics={"3": "Count every one.", "4": "Name it."},
    )
    [request] = plan_votes(told, [(SAMPLE, REPLY)])
    assert request.messages[-1].text.endswith("seven of them\nCount every one.")
    with pytest.raises(DataError, match="has no detail, which judge 'j' must see"):
        list(plan_votes(told, [(Sample("1", "t", Form.OPEN, "?", tags={"template": 3}), REPLY)]))
    other = Sample("1", "t", Form.OPEN, "How many?", tags={"template": 5, "detail": "x"})
    with pytest.raises(DataError, match="template 5, for which judge 'j' has no rubric; it has rubrics for 3, 4"):
        list(plan_votes(told, [(other, REPLY)]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"verdict": "colour"}, "colour"),
        ({"verdict": "number", "scale": [1, 1]}, "go up"),
        ({"verdict": "text"}, "compare"),
        ({"verdict": "number", "compare": "exact"}, "compare"),
        ({"verdict": "number", "rubric_tag": "template"}, "rubric"),
        ({"verdict": "number", "prompt": PROMPT + "{rubric}"}, "rubric"),
        ({}, "two choices"),
    ],
)
def test_a_card_that_cannot_judge_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        judge(**fields)


def test_a_judge_of_before_keeps_its_identity_and_a_new_one_says_what_is_new() -> None:
    old = judge(choices={"A": 1.0, "B": 0.0})
    assert set(judge_identity(old)) == {
        *("prompt", "choices", "title", "role", "system", "votes", "params", "metric", "without_judge", "fallback"),
    }
    assert judge_identity(EXTRACT)["compare"] == "number"

"""Open questions by FlagEvalMM's rules: what is read, what is right, and that hostile text costs little."""

from __future__ import annotations

import time
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.data.files.records import Record
from snellen.kits.reform.flageval_rules import (
    Verdict,
    extract_numbers,
    extract_open,
    judge_inference,
    judge_typed,
    question_type,
)
from snellen.scoring.scorers.mmmu_open import judge_open, parse_open


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ("\\boxed{4} or \\boxed{-\\frac{3}{4}}", "-0.75"),
        ("\\boxed{\\frac{1}{0}}", "\\frac{1}{0}"),
        ("\\boxed{a}\n{b}", "a"),
        ("\\boxed{\\text{a}  \\text {b}} }", "a b}"),
        ("Answer: 3 \\boxed{}", "3 \\boxed{}"),
        ("\\boxed{7", "\\boxed{7"),
        ("Answer 1. Answer: 2. Answer 3", "2. Answer 3"),
        ("答案:4 答案：5", "5"),
    ],
)
def test_what_is_read(reply: str, read: str) -> None:
    assert extract_open(reply) == read


def test_numbers_in_their_forms() -> None:
    assert extract_numbers("1,234.5 and 12\u00a0345, 1234 567") == [1234.5, 12345.0, 1234.0, 567.0]
    assert extract_numbers("-2.5E-3, 3×10^-2, 10^5, 4 x 10^{ 2 }") == [-0.0025, 0.03, 10.0, 5.0, 400.0]
    assert extract_numbers("1 x 10^999999999") == [float("inf")]
    assert extract_numbers("none") == []


@pytest.mark.parametrize(
    ("answer_type", "answer", "reply", "right"),
    [
        ("integer", "12", "10 plus 2 is 12", True),
        ("integer", 12, "12.002", False),
        ("integer", [1, 2], "1 and 2", True),
        ("integer", [1, 2], "2 and 1", False),
        ("integer", [1, 2], "1, 2, 3", False),
        ("integer", [], "none", False),
        ("float", "2.0", "about 2.19", True),
        ("float", 2.0, "2.21", False),
        ("float", 0, "0", False),
        ("float", [2.5, 4], "2.6; 4", True),
        ("float", [2.5, 4], "2.5; 4.1", False),
        ("true_false", [True, "False"], "True, then false", True),
        ("true_false", [True], "untrue", False),
        ("true_false", ["yes"], "yes", False),
        ("text match", ["dog", "Cat"], "A CATALOGUE", True),
        ("text match", "90°", "Answer: 90\\circ", True),
        ("text match", "dog", "cat", False),
    ],
)
def test_what_is_right(answer_type: str, answer: Any, reply: str, right: bool) -> None:
    assert judge_typed(reply, answer_type, answer)[0] is right


def test_mmmu_reads_the_shortest_tail_of_each_line_and_its_numbers() -> None:
    assert parse_open("x = 3\nSo the result is 1,200.50 m.") == ["1,200.50 m", 1200.0, 200.5]
    assert parse_open("a=1\nb = 2") == [2.0]
    assert parse_open("The answer is :") == ["the answer is :"]
    assert parse_open("1e3") == [1000.0, 3.0]
    assert judge_open("It is 0.333", "1/3") is False
    assert judge_open("It is 0.333", ["1/3", "0.33"]) is True
    assert judge_open("a cat", "t") is False


def score(annotation: dict[str, Any], *replies: str) -> float:
    asked = record(question_id=1, question="?", **annotation)
    return sum(bool(judge_inference(asked, reply, "flageval").correct) for reply in replies) / len(replies)


def test_the_profile_scores_open_questions() -> None:
    assert score({"question_type": "open", "answer": ["four", "4"]}, "It is 4.", "so five") == 0.5
    assert (
        score({"question_type": "short-answer", "answer_type": "integer", "answer": "4"}, "\\boxed{4}", "4 or 5") == 0.5
    )
    assert score({"question_type": "multiple-choice", "answer_type": "integer", "answer": "B"}, "B") == 1.0


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (
            {"question_type": "open", "answer_type": "integer", "answer": "four"},
            "'four' is not of answer_type 'integer'",
        ),
        ({"question_type": "open", "answer_type": "integer", "answer": 10**400}, "is not of answer_type 'integer'"),
        (
            {"question_type": "open", "answer_type": "true_false", "answer": True},
            "True is not of answer_type 'true_false'",
        ),
        (
            {"question_type": "open", "answer_type": "open_ended", "answer": "x"},
            "no rule for question_type 'open' with answer_type 'open_ended'",
        ),
        ({"question_type": "open", "answer_type": ["integer"], "answer": "4"}, "'answer_type' must be text"),
        (
            {"question_type": "llm-judge", "answer_type": "integer", "answer": "4"},
            "no rule for question_type 'llm-judge'",
        ),
        ({"question_type": "open", "answer": 4}, "'answer' must be text or a list of texts"),
    ],
)
def test_bad_annotations_are_one_line(annotation: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"record 1: .*{message}") as error:
        score(annotation, "4")
    assert "\n" not in str(error.value)


HOSTILE = ("1", "1x", "5x10^" + " " * 50, "\\text{", "1,000", "1 000 ", "so ", "1.1.", "1e", "is \n", "\\boxed{", " ")


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("before", ["", "5x10^", "\\boxed{", "\\boxed{}"])
def test_hostile_text_costs_little(piece: str, before: str) -> None:
    text = before + piece * (50_000 // len(piece))
    start = time.process_time()
    judge_typed(text, "float", 1.0)
    judge_open(text, "1")
    assert time.process_time() - start < 2.0  # CPU time: what others do on this machine hardly counts


ANIMALS = ["cat", "dog", "cow"]


def record(number: int = 1, **fields: Any) -> Record:
    return Record("f.json", number, fields)


class TestInferenceRules:
    @pytest.mark.parametrize(
        ("fields", "kind"),
        [
            ({}, "open"),
            ({"options": ["a", "b"]}, "multiple-choice"),
            ({"question_type": "yes-no", "options": ["a"]}, "yes-no"),
        ],
    )
    def test_the_type_of_a_question(self, fields: dict[str, Any], kind: str) -> None:
        assert question_type(record(**fields)) == kind

    @pytest.mark.parametrize(
        ("fields", "reply", "verdict"),
        [
            ({"options": ANIMALS, "answer": "B"}, "The answer is B.", Verdict(True, "B")),
            ({"options": ANIMALS, "answer": "cow"}, "B", Verdict(False, "B")),
            ({"options": ANIMALS, "answer": "b"}, "hard to tell", Verdict(None, None)),
            ({"question_type": "yes-no", "answer": "no"}, "No.", Verdict(True, "B")),
            ({"answer": ["Paris", "paris city"]}, " paris ", Verdict(True, "paris")),
            ({"answer": "12"}, "13", Verdict(False, "13")),
        ],
    )
    def test_our_own_rules(self, fields: dict[str, Any], reply: str, verdict: Verdict) -> None:
        assert judge_inference(record(**fields), reply, "snellen") == verdict

    @pytest.mark.parametrize(
        ("fields", "profile", "words"),
        [
            ({"question_type": "llm-judge", "answer": "x"}, "snellen", "needs a judge"),
            (
                {"question_type": "multiple-choice", "answer": "A"},
                "snellen",
                "'options' must be a list of 2 to 26 texts",
            ),
            (
                {"options": ["same", "same"], "answer": "same"},
                "snellen",
                "neither the letter nor the text of one option",
            ),
            ({"question_type": "yes-no", "answer": "yes"}, "flageval", "has no rule for question_type 'yes-no'"),
        ],
    )
    def test_what_cannot_be_judged_is_named(self, fields: dict[str, Any], profile: str, words: str) -> None:
        with pytest.raises(DataError, match=words):
            judge_inference(record(**fields), "A", profile)

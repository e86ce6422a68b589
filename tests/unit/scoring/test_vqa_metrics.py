"""VQA accuracy, ANLS, relaxed accuracy and any-of: against the definitions written out, and at their edges."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.builtins import default_registry
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.scoring.scorers.vqa import (
    CONTRACTIONS,
    anls,
    any_exact,
    contains_word,
    normalise_vqa,
    parse_number,
    relaxed_accuracy,
    vqa_accuracy,
    vqa_accuracy_simple,
)

KEY = TrialKey("t", "s")


@given(st.lists(st.sampled_from(["red", "blue", "green"]), min_size=2, max_size=12))
def test_soft_accuracy_is_the_mean_over_annotators_left_out(answers: list[str]) -> None:
    subsets = list(combinations(answers, len(answers) - 1))
    written_out = sum((min(Fraction(subset.count("red"), 3), Fraction(1)) for subset in subsets), Fraction(0)) / len(
        subsets
    )
    assert vqa_accuracy("Red.", answers) == pytest.approx(float(written_out))


def test_soft_accuracy_of_ten_annotators() -> None:
    assert [round(vqa_accuracy("yes", ["yes"] * k + ["no"] * (10 - k)), 10) for k in range(5)] == [
        0.0,
        0.3,
        0.6,
        0.9,
        1.0,
    ]
    assert vqa_accuracy_simple("yes", ["yes"] * 2 + ["no"] * 8) == pytest.approx(2 / 3)
    assert vqa_accuracy_simple("yes", ["yes", "no"]) == 0.5
    assert vqa_accuracy("two", ["2"]) == 1.0
    assert vqa_accuracy("x", []) == vqa_accuracy_simple("x", []) == 0.0


def test_the_official_quirk_of_unanimous_answers() -> None:
    assert vqa_accuracy("Yes", ["yes"] * 10) == 1.0
    assert vqa_accuracy("Yes", ["yes"] * 10, skip_unanimous=True) == 0.0
    assert vqa_accuracy("yes\n", ["yes"] * 10, skip_unanimous=True) == 1.0


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Cat", "cat"),
        ("1,000", "1000"),
        ("a/b", "b"),
        ("3.14.", "3.14"),
        ("dont", "don't"),
        ("hed've", "he'd've"),
        ("None", "0"),
        ("x - y", "x y"),
        ("", ""),
        ("line\none\ttab", "line 1 tab"),
    ],
)
def test_normal_form(text: str, plain: str) -> None:
    assert normalise_vqa(text) == plain


def test_every_contraction_mends_to_a_form_with_one_more_apostrophe() -> None:
    assert len(CONTRACTIONS) == 114
    assert all(right.replace("'", "") == wrong.replace("'", "") for wrong, right in CONTRACTIONS.items())


def test_word_boundaries() -> None:
    assert contains_word("a cat sat", "cat")
    assert not contains_word("concatenate", "cat")
    assert not contains_word("$5", "$5")


def test_anls() -> None:
    assert anls("Hello  World", ["hello world"]) == 1.0
    assert anls("hallo", ["hello"]) == pytest.approx(0.8)
    assert anls("ab", ["cd"]) == 0.0
    assert anls("abcd", ["abxx"]) == 0.0, "a distance of half is already too far"
    assert anls("x", ["y", "x"]) == 1.0
    assert anls("", [""]) == 1.0
    assert anls("x", []) == 0.0


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3))
def test_anls_stays_in_its_range(prediction: str, answers: list[str]) -> None:
    assert anls(prediction, answers) == 0.0 or 0.5 < anls(prediction, answers) <= 1.0


@pytest.mark.parametrize(
    ("prediction", "answer", "right"),
    [
        ("105", "100", 1),
        ("105.1", "100", 0),
        ("95", "100", 1),
        ("-95", "-100", 1),
        ("1,050", "1000", 1),
        ("50%", "0.5", 1),
        ("50", "50%", 0),
        ("0", "0", 1),
        ("0.001", "0", 0),
        ("Yes", "yes", 1),
        ("12", "twelve", 0),
        ("$5", "5", 1),
        ("1e3", "1000", 1),
    ],
)
def test_relaxed_accuracy(prediction: str, answer: str, right: int) -> None:
    assert relaxed_accuracy(prediction, [answer]) == right


def test_numbers() -> None:
    assert parse_number("about 5") is None
    assert parse_number("") is None
    assert parse_number(".") is None
    assert parse_number("1,00") is None
    assert parse_number("12.") == 12.0
    assert parse_number("-1,234.5") == -1234.5
    assert parse_number("1e999") is None


def test_any_exact() -> None:
    assert any_exact("the Dog!", ["cat", "dog"]) == 1.0
    assert any_exact("dogs", ["cat", "dog"]) == 0.0


@pytest.mark.parametrize(
    ("scorer", "metric", "value"),
    [
        ("vqa", "vqa_accuracy", 1.0),
        ("vqa_simple", "vqa_accuracy_simple", 1.0),
        ("anls", "anls", 1.0),
        ("relaxed", "relaxed_accuracy", 1.0),
        ("any_exact", "any_exact", 1.0),
    ],
)
def test_scorers_by_name(scorer: str, metric: str, value: float) -> None:
    sample = Sample(id="s", dataset="d", form=Form.OPEN, question="?", answers=("red", "red", "red", "red"))
    score = default_registry().get("scorer", scorer)
    (result,) = score(sample, Request(KEY, ()), Prediction(key=KEY, text="<think>blue?</think> red"), {})
    assert (result.metric, result.value, result.answer) == (metric, value, "red")


def test_nothing_to_score_is_unscored_never_zero() -> None:
    score = default_registry().get("scorer", "anls")
    sample = Sample(id="s", dataset="d", form=Form.OPEN, question="?", answers=("red",))
    (truncated,) = score(sample, Request(KEY, ()), Prediction(key=KEY, text="<think>red or"), {})
    (likelihood,) = score(sample, Request(KEY, ()), Prediction(key=KEY, loglikelihoods=(0.0,)), {})
    (no_reference,) = score(
        Sample(id="s", dataset="d", form=Form.OPEN, question="?"), Request(KEY, ()), Prediction(key=KEY, text="x"), {}
    )
    assert [item.value for item in (truncated, likelihood, no_reference)] == [None, None, None]
    assert "truncated" in truncated.reason and "no text" in likelihood.reason and "reference" in no_reference.reason

"""Choice and yes/no scorers: letter to option text, unscored with a reason, likelihoods, profiles."""

from __future__ import annotations

import math
from typing import Any

import pytest

from snellen.core.builtins import default_registry
from snellen.core.errors import DataError
from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey
from snellen.scoring.scorers.option_choice import score, score_index, score_yesno

KEY = TrialKey("t", "s")
SAMPLE = Sample("s", "d", Form.CHOICE, "Colour?", options=("red", "blue", "green"), answers=("blue", "green"))
SHOWN = Request(KEY, (), marks=("A", "B", "C"), shown=("green", "red", "blue"))


def one(
    text: str | None = None, *, request: Request = SHOWN, options: dict[str, Any] | None = None, **fields: Any
) -> Score:
    (result,) = score(SAMPLE, request, Prediction(KEY, text=text, **fields), options or {})
    return result


@pytest.mark.parametrize(
    ("chosen", "answer"), [(0, "green"), (2, "blue"), (3, None), (-1, "blue"), (-3, "green"), (-4, None), (None, None)]
)
def test_an_index_names_its_option_and_beyond_the_options_none(chosen: int | None, answer: str | None) -> None:
    found = score_index(KEY, chosen, 2, SHOWN.shown)
    assert (found.answer, found.value) == (answer, float(chosen == 2))
    assert (found.reason is not None) == (chosen is None)


def test_answer_is_the_text_shown_under_the_letter() -> None:
    assert (one("A").value, one("A").answer) == (1.0, "green")
    assert (one("B").value, one("B").answer) == (0.0, "red")
    assert one("The answer is C.").answer == "blue"
    assert one("The answer is C.").rule == "cue"
    assert one("So: the answer is C").detail["span"] == (18, 19)


def test_unread_is_unscored_with_a_reason() -> None:
    assert (one("I can't see it, sorry.").value, one("I can't see it, sorry.").reason) == (None, "refused")
    assert one("Let me look at A first", finish="length").reason == "truncated"
    assert one("A or B").reason == "ambiguous"


def test_marks_default_to_letters_in_the_sample_order() -> None:
    assert one("B", request=Request(KEY, ())).answer == "blue"


def test_profile_counts_unread_as_wrong_and_says_format_hit() -> None:
    hit, miss, strange = (one(text, options={"profile": "reform"}) for text in ("(C)", "C", "(Z)"))
    assert (hit.value, hit.detail["format_hit"], hit.rule) == (1.0, True, "reform")
    assert (miss.value, miss.detail["format_hit"], miss.reason) == (0.0, False, "unparsed")
    assert (strange.value, strange.detail["format_hit"], strange.reason) == (0.0, True, "not_offered")


def test_likelihood_takes_the_largest() -> None:
    result = one(loglikelihoods=(-3.0, -1.0, -2.0))
    assert (result.answer, result.value, result.rule) == ("red", 0.0, "likelihood")


@pytest.mark.parametrize("order", [("green", "red", "blue"), ("blue", "green", "red")])
def test_likelihood_ties_go_to_the_canonical_first_whatever_was_shown(order: tuple[str, ...]) -> None:
    result = one(
        request=Request(KEY, (), marks=("A", "B", "C"), shown=order),
        loglikelihoods=tuple(-1.0 if text != "red" else -2.0 for text in order),
    )
    assert result.answer == "blue"
    assert result.detail["ties"] == 2


def test_likelihood_without_any_finite_value_is_unscored() -> None:
    assert one(loglikelihoods=(-math.inf, -math.inf, math.nan)).reason == "no_likelihood"
    assert one(loglikelihoods=(-math.inf, -5.0, math.nan)).answer == "red"


def test_likelihood_count_must_fit() -> None:
    with pytest.raises(DataError, match="2 log-likelihoods for 3 options"):
        one(loglikelihoods=(-1.0, -2.0))


@pytest.mark.parametrize(
    ("text", "value", "answer"),
    [("Yes, it is.", 1.0, "yes"), ("No.", 0.0, "no"), ("Hmm", None, None), ("True", 1.0, "yes")],
)
def test_yesno(text: str, value: float | None, answer: str | None) -> None:
    sample = Sample("s", "d", Form.YESNO, "Is it?", answers=("yes",))
    (result,) = score_yesno(sample, Request(KEY, ()), Prediction(KEY, text=text), {})
    assert (result.value, result.answer) == (value, answer)


def test_yesno_with_marks_is_read_as_a_choice() -> None:
    sample = Sample("s", "d", Form.YESNO, "Is it?", options=("yes", "no"), answers=("no",))
    (result,) = score_yesno(
        sample, Request(KEY, (), marks=("A", "B"), shown=("yes", "no")), Prediction(KEY, text="B"), {}
    )
    assert (result.value, result.answer) == (1.0, "no")


def test_registry_names_resolve() -> None:
    registry = default_registry()
    assert registry.get("scorer", "choice") is score
    assert registry.get("scorer", "yesno") is score_yesno
    assert all(callable(registry.get("scorer", name)) for name in ("exact", "contains", "wer"))

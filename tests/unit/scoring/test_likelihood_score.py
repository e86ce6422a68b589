"""Reductions, priors, aliases, ties and impossible candidates: what each means is held here."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from snellen.core.errors import DataError, UsageError
from snellen.core.types import Form, Likelihood, Prediction, Request, Sample, TrialKey, Turn
from snellen.scoring.scorers.option_likelihood import IMPOSSIBLE, choose, option_values, score

KEY = TrialKey("t", "s")
SAMPLE = Sample("s", "d", Form.CHOICE, "?", options=("a", "bb", "cc"), answers=("bb",))


def request(**changes):
    return Request(
        KEY, (Turn("user", "?"),), choices=("a", "bb", "cc"), shown=("a", "bb", "cc"), likelihood=Likelihood(**changes)
    )


def prediction(values, **detail):
    return Prediction(KEY, loglikelihoods=tuple(values), detail=detail)


def test_sum_mean_and_bytes_by_hand():
    reply = prediction([-3.0, -4.0, -6.0], tokens=[1, 2, 4], bytes=[1, 2, 3])
    assert option_values(request(), reply) == [-3.0, -4.0, -6.0]
    assert option_values(request(reduction="mean"), reply) == [-3.0, -2.0, -1.5]
    assert option_values(request(reduction="per-byte"), reply) == [-3.0, -2.0, -2.0]
    assert option_values(request(reduction="none"), reply) == [-3.0, -4.0, -6.0]


def test_prompt_mean_is_the_mean_of_the_whole_text():
    reply = prediction([-3.0, -5.0], tokens=[1, 2], prompt_logprobs=[-1.0, -2.0])
    assert option_values(request(reduction="prompt-mean"), reply) == [-2.0, -2.0]
    assert choose([-2.0, -2.0]).likeliest == (0, 1)


def test_the_mean_of_the_whole_text_has_no_prior_and_does_not_leave_one_out_in_silence():
    with pytest.raises(UsageError, match="no prior to take off"):
        option_values(
            request(reduction="prompt-mean"), prediction([-3.0], priors=[-1.0], tokens=[1], prompt_logprobs=[-1.0])
        )


def test_priors_are_taken_off_before_the_length():
    reply = prediction([-3.0, -4.0], priors=[-1.0, -3.5], tokens=[1, 2])
    assert option_values(request(), reply) == [-2.0, -0.5]
    assert option_values(request(reduction="mean"), reply) == [-2.0, -0.25]


def test_aliases_join_by_probability_under_sum_and_by_the_best_otherwise():
    reply = prediction([math.log(0.1), math.log(0.2), math.log(0.25)], tokens=[1, 1, 1])
    assert option_values(request(stands_for=(0, 0, 1)), reply) == pytest.approx([math.log(0.3), math.log(0.25)])
    assert option_values(request(stands_for=(0, 0, 1), reduction="mean"), reply) == pytest.approx(
        [math.log(0.2), math.log(0.25)]
    )


@pytest.mark.parametrize("values", [[-1.0, -1.0, -1.0], [-2.0, -1.0, -1.0]])
def test_a_tie_of_right_and_wrong_is_no_choice(values: list[float]) -> None:
    """In data that list the right option first, equal values for all would be 100 %."""
    (scored,) = score(SAMPLE, request(), prediction(values), {})
    assert (scored.value, scored.answer, scored.reason) == (None, None, "tie")


def test_ties_go_to_the_first_in_the_samples_own_order_however_shuffled():
    shuffled = replace(request(), shown=("cc", "bb", "a"), choices=("cc", "bb", "a"))
    (scored,) = score(SAMPLE, shuffled, prediction([-1.0, -2.0, -1.0]), {})
    assert (scored.value, scored.answer, scored.detail["ties"]) == (0.0, "a", 2)
    assert choose([-1.0, -2.0]).likeliest == (0,)


def test_impossible_candidates_never_win_and_never_hide_others():
    assert choose([-1e30, -5.0]).likeliest == (1,)
    lost = choose([-1e30, -1e30])
    assert lost.likeliest == ()
    assert lost.reason == choose([]).reason == "no_likelihood"
    assert option_values(request(), prediction([float("nan"), -1.0]))[0] <= IMPOSSIBLE
    reply = prediction([-1e30, -4.0, -5.0], priors=[-1e30, -1.0, -1.0], tokens=[3, 1, 1])
    assert option_values(request(reduction="mean"), reply)[0] <= IMPOSSIBLE


def test_scores_carry_the_answer_its_confidence_and_the_rule():
    (scored,) = score(SAMPLE, request(), prediction([math.log(0.2), math.log(0.6), math.log(0.2)]), {})
    assert (scored.value, scored.answer, scored.rule) == (1.0, "bb", "likelihood")
    assert scored.detail["confidence"] == pytest.approx(0.6)
    (wrong,) = score(SAMPLE, request(), prediction([-1.0, -2.0, -3.0]), {})
    assert (wrong.value, wrong.answer) == (0.0, "a")


def test_any_reduction_can_be_asked_for_later():
    reply = prediction([-3.0, -4.0, -9.0], tokens=[1, 2, 1], bytes=[1, 2, 2])
    assert score(SAMPLE, request(), reply, {})[0].answer == "a"
    again = score(SAMPLE, request(), reply, {"reduction": "mean"})[0]
    assert (again.answer, again.rule) == ("bb", "likelihood:mean")


def test_all_impossible_is_unscored_not_wrong():
    (scored,) = score(SAMPLE, request(), prediction([-1e30] * 3), {})
    assert scored.value is None
    assert scored.reason == "no_likelihood"


def test_what_cannot_be_reduced_says_so():
    with pytest.raises(UsageError, match="did you mean 'mean'"):
        option_values(request(), prediction([-1.0]), "meen")
    with pytest.raises(UsageError, match="holds no tokens"):
        option_values(request(reduction="mean"), prediction([-1.0]))


def test_a_value_must_be_there_for_every_option():
    with pytest.raises(DataError, match="2 log-likelihoods for 3 options"):
        score(SAMPLE, request(), prediction([-1.0, -2.0]), {})


def test_the_choice_scorer_hands_likelihoods_over():
    from snellen.scoring.scorers.option_choice import score as by_choice

    reply = prediction([-3.0, -1.0, -9.0])
    assert by_choice(SAMPLE, request(), reply, {}) == score(SAMPLE, request(), reply, {})


def test_yes_and_no_need_no_options():
    asked = Request(KEY, (), choices=("yes", "no"))
    (scored,) = score(
        replace(SAMPLE, form=Form.YESNO, options=(), answers=("Yes",)), asked, prediction([-1.0, -2.0]), {}
    )
    assert (scored.value, scored.answer) == (1.0, "yes")


@given(st.lists(st.floats(-1e3, 0), min_size=1, max_size=20))
def test_the_choice_is_always_a_largest_value(values):
    found = choose(values)
    assert {values[place] for place in found.likeliest} == {max(values)}
    assert len(found.likeliest) == values.count(max(values))


def test_confidence_is_held_against_being_right():
    from types import SimpleNamespace

    from snellen.core.types import Score
    from snellen.scoring.aggregates.calibration import calibration

    scores = [
        Score(KEY, "accuracy", value, detail={"confidence": sure})
        for value, sure in ((1.0, 0.9), (0.0, 0.9), (1.0, 0.6))
    ]
    scores += [Score(KEY, "accuracy", 1.0), Score(KEY, "accuracy", None, reason="x", detail={"confidence": 0.5})]
    found = calibration(SimpleNamespace(scores=lambda: iter((SAMPLE, each) for each in scores), tables={}), {})
    assert found["confidence"].value == pytest.approx(0.8)
    assert found["ece"].value == pytest.approx((2 * abs(0.9 - 0.5) + abs(0.6 - 1.0)) / 3)
    assert found["brier"].value == pytest.approx((0.01 + 0.81 + 0.16) / 3)
    assert found["ece"].n == 3
    empty = calibration(SimpleNamespace(scores=lambda: iter(()), tables={}), {})
    assert empty["ece"].value is None

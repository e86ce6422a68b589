"""The ladder of needle scores against the false hits and misses that plain containment is known for."""

from __future__ import annotations

import pytest

from snellen.core.types import Form, Prediction, Request, Sample, TrialKey, Turn
from snellen.kits.pages.needle_scorer import error_rate, is_abstention, score, score_case, word_contains

KEY = TrialKey("t", "s")


def scores(
    reply: str, answers: tuple[str, ...], match: str = "any", planted: tuple[str, ...] = (), case: bool = False
) -> dict[str, float]:
    sample = Sample("s", "t", Form.OPEN, "q", answers=answers, meta={"match": match, "planted": list(planted)})
    function = score_case if case else score
    found = function(sample, Request(KEY, (Turn("user", "q"),)), Prediction(KEY, text=reply), {})
    (one,) = found
    return {one.metric: one.value, **one.detail["ladder"]}


@pytest.mark.parametrize(
    "reply, answer",
    [
        ("1042", "42"), ("the environment", "iron"), ("see the figure", "fig"), ("Irish", "iris"), ("Marseille", "Mars"), ("sharp", "harp"),
        ("steal", "teal"), ("chamber", "amber"), ("comparison", "Paris"), ("expandable", "panda"), ("jargon", "argon"), ("titanium", "Titan"),
    ],
)  # fmt: skip
def test_substrings_of_other_words_do_not_count(reply: str, answer: str) -> None:
    found = scores(reply, (answer,))
    assert found["contains"] == 1.0  # what the scripts would say
    assert found["accuracy"] == 0.0


@pytest.mark.parametrize(
    "reply, answer",
    [
        ("It is 1,024,377.", "1024377"),
        ("1 024 377", "1024377"),
        ("dragon-fruit", "dragon fruit"),
        ("the ４２", "42"),
        ("IRON!", "iron"),
        ("‘velomar’", "velomar"),
    ],
)
def test_separators_dashes_width_and_case_do_not_hide_an_answer(reply: str, answer: str) -> None:
    assert word_contains(reply, answer)


def test_thinking_is_not_an_answer() -> None:
    assert scores("<think>perhaps 4711?</think> I do not know", ("4711",))["accuracy"] == 0.0
    for nothing in ("<think>is it 4711", "  "):
        sample = Sample("s", "t", Form.OPEN, "q", answers=("4711",))
        (one,) = score(sample, Request(KEY, (Turn("user", "q"),)), Prediction(KEY, text=nothing), {})
        assert (one.value, one.reason) == (None, "empty"), "unscored, as by every metric"
    assert scores("<think>hm</think> 4711", ("4711",)) | {"cer": 0.0} == scores("4711", ("4711",))


def test_listing_everything_is_flagged() -> None:
    found = scores("111, 222 and 333", ("222",), planted=("111", "222", "333"))
    assert found["accuracy"] == 1.0 and found["listing"] == 1.0
    assert scores("222", ("222",), planted=("111", "222", "333"))["listing"] == 0.0


def test_all_answers_are_needed_where_all_are_asked() -> None:
    half = scores("alpha", ("alpha", "beta"), "all")
    assert half["accuracy"] == 0.0 and half["recall"] == 0.5 and half["contains"] == 0.0
    assert scores("beta and alpha", ("alpha", "beta"), "all")["accuracy"] == 1.0


@pytest.mark.parametrize(
    "reply",
    ["Not found.", "The document does not mention it", "I couldn't find that.", "There is no information on this"],
)
def test_abstaining_is_right_where_nothing_was_planted(reply: str) -> None:
    assert is_abstention(reply)
    assert scores(reply, ("not found",), "abstain")["accuracy"] == 1.0
    assert scores("4711", ("not found",), "abstain")["accuracy"] == 0.0
    assert scores(f"{reply} Perhaps 4711?", ("not found",), "abstain", planted=("4711",))["accuracy"] == 0.0


def test_exact_anls_and_character_errors() -> None:
    assert scores("The iron.", ("iron",))["exact"] == 1.0
    close = scores("velomer", ("velomar",))
    assert close["accuracy"] == 0.0 and close["anls"] == pytest.approx(6 / 7) and close["cer"] == pytest.approx(1 / 7)
    assert error_rate("", "abc") == 1.0 and error_rate("xyz", "") == 0.0
    assert error_rate("the code is ab-cd", "abcd") == 0.0


def test_case_matters_only_where_asked() -> None:
    assert scores("Iron", ("iron",))["contains"] == 1.0
    assert scores("Iron", ("iron",), case=True)["contains"] == 0.0


def test_a_number_is_not_part_of_another_nor_found_where_none_is_asked_for() -> None:
    assert [
        scores(reply, ("42",))["accuracy"] for reply in ("It is 42.7", "3.42", "1042", "42.", "**42**", "_42_")
    ] == [
        *(0.0, 0.0, 0.0),
        *(1.0, 1.0, 1.0),
    ]
    sample = Sample("s", "t", Form.OPEN, "q", meta={"match": "all"})
    (one,) = score(sample, Request(KEY, (Turn("user", "q"),)), Prediction(KEY, text="anything"), {})
    assert (one.value, one.reason) == (None, "no_reference"), "all of nothing was right"

"""Answers that are not right to groups that say why (`scoring.aggregates.error_groups`)."""

from __future__ import annotations

from collections import Counter

import pytest

from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Score, TrialKey
from snellen.extract.extraction import AMBIGUOUS, REFUSED
from snellen.scoring.aggregates.error_groups import KINDS, group_errors
from snellen.store.reader import Trial


def trial(
    reply: str, answer: str, *, given: str | None = "", value: float | None = 0.0, number: int = 0, **how: object
) -> tuple[Trial, Score]:
    key = TrialKey("t", f"q{number}")
    options = tuple(how.get("options", ()))  # type: ignore[arg-type]
    question = str(how.get("question", f"What is it in picture {number}?"))
    form = Form.CHOICE if options else Form.OPEN
    sample = Sample(key.sample, "t", form, question, options=options, answers=(answer,))
    prediction = Prediction(key, reply, finish=str(how.get("finish", "stop")))
    reason = how.get("reason", AMBIGUOUS if value is None else None)
    score = Score(key, "accuracy", value, reply if given == "" else given, "short", reason)  # type: ignore[arg-type]
    return Trial(sample, Request(key, (), shown=options), prediction, number), score


def only_kind(one: tuple[Trial, Score]) -> str:
    (group,) = group_errors([one])
    return group.kind


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("empty", trial("  ", "3", value=None)),
        ("cut_off", trial("Let us count", "3", value=None, finish="length")),
        ("refused", trial("I cannot help with that.", "3", value=None, reason=REFUSED)),
        ("refused", trial("Sorry, I cannot see any picture.", "a cat")),
        ("unread", trial("3 or 4", "3", value=None)),
        ("other_words", trial("The shop is called Tesco, or so it seems.", "Tesco")),
        ("other_words", trial("the T-shirts", "t shirt")),
        ("other_words", trial("cafe", "Café")),
        ("format", trial("0.45", "45")),
        ("format", trial("-47", "47")),
        ("format", trial("12.34", "12.3")),
        ("off_by_one", trial("6", "7")),
        ("misread", trial("Tesca", "Tesco")),
        ("misread", trial("2013", "2016")),
        ("other", trial("8", "3")),
        ("other", trial("0.31", "0.33")),
        ("other", trial("a dog", "a horse")),
        ("neighbour", trial("B", "30", given="20", options=("10", "20", "30"))),
        ("other", trial("A", "30", given="10", options=("10", "20", "30"))),
        ("other", trial("A", "red", given="blue", options=("blue", "red", "green"))),
    ],
)
def test_each_reason_is_told_apart(kind: str, one: tuple[Trial, Score]) -> None:
    assert only_kind(one) == kind


def test_right_answers_and_failed_calls_are_in_no_group() -> None:
    right = trial("3", "3", value=1.0)
    key = TrialKey("t", "q9")
    failed = Prediction(key, failure=Failure(FailureKind.SERVER, "500"))
    lost = (Trial(right[0].sample, right[0].request, failed, 9), Score(key, "accuracy", None, reason="failed"))
    assert group_errors([right, lost, trial("3 of 4 lines", "4 lines", value=0.75)]) == []


def test_the_shares_add_up_and_the_largest_group_comes_first() -> None:
    groups = group_errors([*(trial("6", "7", number=n) for n in range(3)), trial("", "7", number=8, value=None)])
    assert [(group.kind, len(group.trials), group.share) for group in groups] == [
        ("off_by_one", 3, 0.75),
        ("empty", 1, 0.25),
    ]


def test_a_habit_is_found_where_wrong_answers_stand_at_one_place() -> None:
    options = ("a", "b", "c", "d")
    habit = [trial("A", "b", given="a", number=n, options=options) for n in range(30)]
    spread = [
        trial("x", options[n % 4], given=options[(n + 1 + n // 4 % 3) % 4], number=n, options=options)
        for n in range(30)
    ]
    assert {group.kind for group in group_errors(habit)} == {"position"}
    assert {group.kind for group in group_errors(habit[:10])} == {"position"}
    assert {group.kind for group in group_errors(habit[:9])} == {"other"}, "fewer than ten are no habit"
    assert {group.kind for group in group_errors(spread)} == {"other"}


def test_the_answer_of_another_picture_is_one_only_if_it_is_rare() -> None:
    names = ("Tesco", "Aldi", "Lidl", "Spar", "Coop", "Edeka")
    rows = [trial(name, name, value=1.0, number=n, question="Which shop?") for n, name in enumerate(names)]
    wrong = trial("Lidl", "Migros", number=9, question="Which shop?")
    assert only_kind_of([*rows, wrong]) == "other_picture"
    common = [trial("Lidl", "Lidl", value=1.0, number=20 + n, question="Which shop?") for n in range(9)]
    assert only_kind_of([*rows, *common, wrong]) == "other"


def only_kind_of(trials: list[tuple[Trial, Score]]) -> str:
    (group,) = group_errors(trials)
    return group.kind


def test_every_group_says_what_it_is() -> None:
    assert Counter(kind.title for kind in KINDS.values()).most_common(1)[0][1] == 1
    assert all(kind.rule.endswith(".") for kind in KINDS.values())

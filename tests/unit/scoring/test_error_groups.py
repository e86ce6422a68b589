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


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("neighbour", trial("x", "30", given="-5", options=("100", "30", "-5"))),
        ("neighbour", trial("x", "100", given="30", options=("100", "-5", "30"))),
        ("neighbour", trial("x", "0", given="-5", options=("100", "-5", "0"))),
        ("other", trial("x", "100", given="-5", options=("100", "-5", "30"))),
        ("other", trial("x", "100", given="0", options=("100", "-5", "0", "30"))),
        ("other", trial("x", "2", given="1", options=("1", "2"))),
        ("other", trial("x", "2", given="1", options=("1", "2", "2"))),
        ("other", trial("x", "2", given=None, options=("1", "2", "3"))),
        ("other", trial("x", "2", given="1", options=("1", "2", "many"))),
        ("format", trial("450", "45")),
        ("format", trial("4.5e10", "45")),
        ("other", trial("4.5e11", "45")),
        ("other", trial("460", "45")),
        ("format", trial("100.9", "100")),
        ("other", trial("102.1", "100")),
        ("off_by_one", trial("100", "101")),
        ("other", trial("0", "0.001")),
        ("off_by_one", trial("0", "1")),
        ("off_by_one", trial("-1", "0")),
        ("other", trial("6.5", "7.5")),
        ("other", trial("5", "7")),
        ("misread", trial("20134", "2013")),
        ("misread", trial("Tes", "Tesc")),
        ("other", trial("ab", "ac")),
        ("misread", trial("abx", "aby")),
        ("misread", trial("abcdxy", "abcdef")),
        ("other", trial("abcxyz", "abcdef")),
        ("other_words", trial("the naïve apples", "naive apple")),
        ("other", trial("3", "3 4")),
        ("refused", trial("I cannot see it", "a cat", given="cannot")),
        ("neighbour", trial("I cannot see it", "30", given="20", options=("10", "20", "30"))),
        ("cut_off", trial("A", "30", given="10", reason="truncated", options=("10", "20", "30"))),
    ],
)
def test_the_edge_of_each_reason(kind: str, one: tuple[Trial, Score]) -> None:
    assert only_kind(one) == kind


def test_a_group_knows_the_places_of_its_trials() -> None:
    chosen = trial("C", "20", given="10", number=4, options=("10", "20", "30"))
    unlisted = trial("?", "50", given="60", number=5, options=("10", "20", "30"))
    first, second = (one for group in group_errors([chosen, unlisted]) for one in group.trials)
    assert (first.place, first.right, first.places, first.row) == (0, 1, 3, 4)
    assert (second.place, second.right, second.places, second.row) == (-1, -1, 3, 5)
    assert (first.reply, first.expected, first.given) == ("C", ("20",), "10")


def test_of_an_error_rate_the_high_value_is_the_mistake() -> None:
    sample, score = trial("a dog", "a horse")
    rate = Score(score.key, "wer", 1.0, "a dog", "words")
    assert [group.kind for group in group_errors([(sample, rate)])] == ["other"]
    assert group_errors([(sample, Score(score.key, "wer", 0.0, "a dog", "words"))]) == []
    assert group_errors([(sample, Score(score.key, "wer", 0.9, "a dog", "words"))]) == []


def test_a_habit_needs_far_more_than_chance_and_spares_what_is_explained() -> None:
    options = ("a", "b", "c", "d")

    def chosen(counts: dict[str, int]) -> list[tuple[Trial, Score]]:
        given = [name for name, count in counts.items() for _ in range(count)]
        return [trial("x", "b", given=name, number=n, options=options) for n, name in enumerate(given)]

    kinds = {group.kind: len(group.trials) for group in group_errors(chosen({"a": 40, "c": 5, "d": 5}))}
    assert kinds == {"position": 40, "other": 10}
    even = {group.kind: len(group.trials) for group in group_errors(chosen({"a": 24, "c": 13, "d": 13}))}
    assert even == {"other": 50}, "24 of 50 are less than half more than a third"
    last = {group.kind: len(group.trials) for group in group_errors(chosen({"a": 3, "d": 30}))}
    assert last == {"position": 30, "other": 3}
    numbers = [trial("x", "20", given="10", number=n, options=("10", "20", "30")) for n in range(30)]
    assert {group.kind for group in group_errors(numbers)} == {"neighbour"}, "what is explained stays so"


def test_another_pictures_answer_needs_five_answers_and_is_no_number() -> None:
    names = ("Tesco", "Aldi", "Lidl", "Spar", "Coop")
    rows = [trial(name, name, value=1.0, number=n, question="Which shop?") for n, name in enumerate(names)]
    wrong = trial("Lidl", "Tesco", number=0, question="Which shop?")
    assert only_kind_of([*rows, wrong]) == "other_picture"
    assert only_kind_of([*rows[:4], trial("Lidl", "Tesco", number=0, question="Which shop?")]) == "other"
    elsewhere = trial("Lidl", "Tesco", number=7, question="Which street?")
    assert only_kind_of([*rows, elsewhere]) == "other"
    digits = [trial(str(n * 11), str(n * 11), value=1.0, number=n, question="How many?") for n in range(1, 8)]
    assert only_kind_of([*digits, trial("33", "77", number=7, question="How many?")]) == "other"

"""`--until-ci`: questions are taken in the order of the plan, whatever order replies come in."""

from __future__ import annotations

import random
from typing import Any

import pytest

from snellen.core.jobs import Item
from snellen.core.types import BASE_VARIANT, Failure, FailureKind, Form, Prediction, Request, Sample, Score, TrialKey
from snellen.engine.limits import IntervalLimit


def scorer(sample: Sample, request: Request, prediction: Prediction, options: Any) -> list[Score]:
    text = prediction.text or ""
    return [Score(prediction.key, "m", None if text == "?" else float(text), reason="unread" if text == "?" else None)]


def observe(early: IntervalLimit, number: int, text: str | None, repeat: int = 0, variant: str = BASE_VARIANT) -> None:
    key = TrialKey("t", str(number), variant, repeat)
    failure = None if text is not None else Failure(FailureKind.SERVER, "x")
    early.observe(
        Item(number, Sample(str(number), "t", Form.OPEN, "?")),
        Request(key, ()),
        Prediction(key, text=text, failure=failure),
    )


def ready(trials: int = 1, points: float = 20.0, questions: int = 3000) -> tuple[IntervalLimit, list[int]]:
    early = IntervalLimit(points, scorer, trials)
    order = [
        item.position
        for item in early.shuffle([Item(n, Sample(str(n), "t", Form.OPEN, "?")) for n in range(questions)], 0)
    ]
    return early, order


def test_the_order_is_drawn_from_the_seed_alone() -> None:
    assert ready()[1] == ready()[1] != list(range(3000))
    assert sorted(ready()[1]) == list(range(3000))


def test_arms_are_waited_for_and_not_counted() -> None:
    plain, order = ready()
    armed, _ = ready()
    armed.leave_beside({"control=none"}, 1)
    for number in order[:30]:
        observe(plain, number, str(number % 2))
        observe(armed, number, str(number % 2))
        assert armed.summary()["questions"] == plain.summary()["questions"] - 1, "its arm has not come yet"
        observe(armed, number, "0", variant="control=none")
        assert armed.summary() == plain.summary()


@pytest.mark.parametrize("seed", range(3))
def test_replies_in_any_order_stop_at_the_same_question(seed: int) -> None:
    straight, order = ready()
    for number in order:
        observe(straight, number, str(number % 2))
    mixed, order = ready()
    shuffled = list(order)
    random.Random(seed).shuffle(shuffled)
    for number in shuffled:
        observe(mixed, number, str(number % 2))
    assert straight.summary() == mixed.summary()
    assert straight.stopped
    low, high = straight.summary()["interval"]
    assert high - low <= 0.4
    assert straight.summary()["questions"] < 3000


def test_a_question_counts_once_as_the_mean_of_its_trials() -> None:
    early, order = ready(trials=2)
    observe(early, order[0], "1", 0)
    assert early.sequence.n == 0
    observe(early, order[0], "0", 1)
    assert early.sequence.n == 1
    low, high = early.sequence.interval
    assert low + high == pytest.approx(1.0, abs=1e-6)


def test_failed_questions_are_passed_over_and_unread_ones_are_not_right() -> None:
    early, order = ready(trials=2)
    for repeat in (0, 1):
        observe(early, order[0], None, repeat)
        observe(early, order[1], "?", repeat)
        observe(early, order[2], "1" if repeat else None, repeat)
    assert early.sequence.n == 2
    assert not early.stopped


def grouped(sizes: list[int], points: float) -> tuple[IntervalLimit, list[Item]]:
    samples = [
        Sample(f"{group}-{place}", "t", Form.OPEN, "?", group=f"g{group}")
        for group, size in enumerate(sizes)
        for place in range(size)
    ]
    early = IntervalLimit(points, scorer, 1)
    return early, early.shuffle([Item(place, sample) for place, sample in enumerate(samples)], 0)


def told(early: IntervalLimit, item: Item, text: str) -> None:
    key = TrialKey("t", item.sample.id)
    early.observe(item, Request(key, ()), Prediction(key, text=text))


def test_questions_of_one_group_are_one_piece_of_news() -> None:
    early, items = grouped([10] * 30, 10.0)
    for item in items[:40]:  # four documents, all of them easy
        told(early, item, "1")
    assert (early.sequence.n, early.stopped) == (4, False)
    low, _ = early.summary()["interval"]
    assert low < 0.5, "four documents cannot show more"
    assert (early.summary()["questions"], early.summary()["groups"]) == (40, 4)


@pytest.mark.parametrize("seed", range(4))
def test_groups_of_other_sizes_weigh_by_their_questions(seed: int) -> None:
    """Small groups are right, large ones wrong: the mean over questions is 0.2, that over groups 0.5."""
    random_ = random.Random(seed)
    sizes = [random_.choice((2, 8)) for _ in range(3000)]
    truth = sum(size for size in sizes if size == 2) / sum(sizes)
    early, items = grouped(sizes, 5.0)
    for item in items:
        told(early, item, "1" if sizes[int((item.sample.group or "g0")[1:])] == 2 else "0")
    low, high = early.summary()["interval"]
    assert early.stopped and low <= truth <= high
    assert (high - low) / 2 <= 0.05 + 1e-9

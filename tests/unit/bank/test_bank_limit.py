"""`--bank`: the prefix in its drawn order is what counts, whatever order replies come in and whatever fails."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from drawn_banks import drawn_bank
from snellen.core.errors import UsageError
from snellen.core.jobs import Item
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Score, TrialKey
from snellen.kits.bank.bank_file import Bank, BankModel, item_of
from snellen.kits.bank.bank_limit import BankLimit

RESULTS = drawn_bank(12, 200)
TESTED = RESULTS[11]


def scorer(sample: Sample, request: Request, prediction: Prediction, options: Any) -> list[Score]:
    unread = prediction.text == "?"
    return [Score(prediction.key, "m", None if unread else float(prediction.text), reason="unread" if unread else None)]


def items(group: int = 0) -> list[Item]:
    tags = [{"half": "low" if n < 100 else "high"} for n in range(200)]
    groups = [f"g{n // group}" if group else None for n in range(200)]
    return [Item(n, Sample(str(n), "t", Form.OPEN, f"{n}?", tags=tags[n], group=groups[n])) for n in range(200)]


def bank(of: list[Item]) -> Bank:
    known = [item_of(item.sample) for item in of]
    return Bank({"task": "t", "metric": "m"}, known, [BankModel(f"m{n}") for n in range(11)], RESULTS[:11])


def limit(of: list[Item], trials: int = 1, **how: Any) -> tuple[BankLimit, list[Item]]:
    made = BankLimit(bank(of), (), scorer, trials, **how)
    return made, made.shuffle(list(of), 0)


def observe(early: BankLimit, item: Item, text: str | None, repeat: int = 0) -> None:
    key = TrialKey("t", item.sample.id, repeat=repeat)
    failure = None if text is not None else Failure(FailureKind.SERVER, "x")
    early.observe(item, Request(key, ()), Prediction(key, text=text, failure=failure))


def answered(early: BankLimit, order: list[Item]) -> dict[str, Any]:
    for item in order:
        observe(early, item, f"{TESTED[item.position]}")
    return early.summary()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("group", [0, 4])
def test_replies_in_any_order_give_the_same_estimate(seed: int, group: int) -> None:
    straight = answered(*limit(items(group), budget=80))
    early, order = limit(items(group), budget=80)
    late = order[:100]
    random.Random(seed).shuffle(late)
    assert answered(early, late + order[100:]) == straight
    assert straight["stopped"] and straight["whole"]["asked"] == 80
    low, high = straight["whole"]["interval"]
    assert low <= TESTED.mean() <= high


def test_a_gap_in_the_prefix_waits(group: int = 0) -> None:
    early, order = limit(items(), budget=80)
    for item in order[1:150]:
        observe(early, item, "1")
    assert not early.stopped and early.summary()["questions"] == 0
    observe(early, order[0], "1")
    assert early.stopped and early.summary()["questions"] == 80


def test_failed_and_unread_are_not_right_and_bound_the_value() -> None:
    early, order = limit(items(), budget=100)
    for place, item in enumerate(order[:100]):
        observe(early, item, None if place % 10 == 0 else "?" if place % 10 == 1 else "1")
    whole = early.summary()["whole"]
    assert whole["failed"] == 10 and whole["mean"] == pytest.approx(0.8)
    assert whole["bounds"][0] == whole["value"] < whole["bounds"][1] == pytest.approx(1.0, abs=0.02)


def test_repeats_are_one_question_and_tell_their_error() -> None:
    early, order = limit(items(), 2, budget=100)
    for item in order[:100]:
        for repeat in range(2):
            observe(early, item, str(float((item.position + repeat) % 2)), repeat)
    whole = early.summary()["whole"]
    assert whole["mean"] == pytest.approx(0.5) and whole["repetition_error"] == pytest.approx(np.sqrt(0.5 / 2 / 200))


def test_tags_have_their_own_estimates_or_say_too_few() -> None:
    tags = answered(*limit(items(), budget=150))["whole"]["tags"]["half"]
    for name, part in (("low", TESTED[:100]), ("high", TESTED[100:])):
        low, high = tags[name]["interval"]
        assert tags[name]["items"] == 100 and low - 0.05 <= part.mean() <= high + 0.05
    few = answered(*limit(items(), budget=60))["whole"]["tags"]["half"]
    assert all(one["too_few"] for one in few.values())


def test_another_content_is_outside_and_none_inside_is_refused() -> None:
    of = items()
    changed = [item._replace(sample=Sample(item.sample.id, "t", Form.OPEN, "else?")) for item in of[:20]] + of[20:]
    made = BankLimit(bank(of), (), scorer, 1, budget=60)
    whole = answered(made, made.shuffle(changed, 0))["whole"]
    assert (whole["outside_the_bank"], whole["of_another_content"]) == (20, 20)
    foreign = [item._replace(sample=Sample(f"x{item.position}", "t", Form.OPEN, "?")) for item in of]
    with pytest.raises(UsageError, match="none of the 200"):
        BankLimit(bank(of), (), scorer, 1, budget=60).shuffle(foreign, 0)


def test_values_beyond_one_are_refused() -> None:
    early, order = limit(items(), budget=60)
    with pytest.raises(UsageError, match="0 to 1"):
        observe(early, order[0], "7")

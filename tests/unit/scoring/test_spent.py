"""scoring.spent: costs of tasks add up, and no share is told where some replies have no price."""

from __future__ import annotations

import pytest

from snellen.core.types import Prediction, TrialKey, Usage
from snellen.model.served.prices import Bill, Prices
from snellen.scoring.tables.gathered import describe_bill, sum_costs

PRICES = Prices(1e6, 2e6, "USD", 5e5)
KEY = TrialKey("t", "s")


def bill_of(*usages: Usage | None) -> Bill:
    bill = Bill(PRICES)
    for usage in usages:
        bill.add(Prediction(KEY, text="x", usage=usage))
    return bill


def test_a_right_answers_share() -> None:
    cost = describe_bill(bill_of(Usage(10, 5, cached_tokens=4)), 2.0)
    assert cost["value"] == pytest.approx(6 + 2 + 10)
    assert cost["per_right_answer"] == pytest.approx(9.0)
    assert cost["cached_tokens"] == 4


@pytest.mark.parametrize("right", [None, 0.0])
def test_without_right_answers_there_is_no_share(right: float | None) -> None:
    assert describe_bill(bill_of(Usage(10, 5)), right)["per_right_answer"] is None


def test_a_share_of_a_part_of_the_bill_is_not_told() -> None:
    bill = bill_of(Usage(10, 5), None)
    cost = describe_bill(bill, 1.0)
    assert (cost["unpriced"], cost["per_right_answer"]) == (1, None)
    assert (sum_costs({"t": {"cost": cost}}, [bill]) or {})["per_right_answer"] is None


def test_a_reply_from_the_cache_without_a_count_makes_no_answer_cheap() -> None:
    bill = bill_of(Usage(10, 5))
    bill.add(Prediction(KEY, text="x", cached=True))
    cost = describe_bill(bill, 2.0)
    assert (cost["value"], cost["replies"], cost["unpriced"], cost["per_right_answer"]) == (20.0, 2, 1, None)
    assert bill.unpriced == 0, "it was free: a budget is not unsure of it"
    both = Bill(PRICES)
    both.include(bill)
    assert describe_bill(both, 2.0) == cost


def test_tasks_add_up() -> None:
    bills = [bill_of(Usage(10, 0)), bill_of(Usage(20, 0))]
    bills[1].add(Prediction(KEY, text="x", usage=Usage(5, 0), cached=True))
    tasks = {str(right): {"cost": describe_bill(bill, right)} for bill, right in zip(bills, (1.0, 4.0), strict=True)}
    whole = sum_costs(tasks, bills)
    assert whole is not None
    assert (whole["value"], whole["paid"], whole["right_answers"]) == (35.0, 30.0, 5.0)
    assert whole["per_right_answer"] == 7.0
    assert whole["prices"]["currency"] == "USD"
    assert sum_costs({}, []) is None

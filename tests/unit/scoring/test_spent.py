"""scoring.spent: costs of tasks add up, and no share is told where some replies have no price."""

from __future__ import annotations

import pytest

from snellen.core.types import Prediction, TrialKey, Usage
from snellen.model.providers.prices import Bill, Prices
from snellen.scoring.spent import describe_bill, sum_costs

PRICES = Prices(1e6, 2e6, "USD", 5e5)
KEY = TrialKey("t", "s")


def bill_of(*usages: Usage | None) -> Bill:
    bill = Bill(PRICES)
    for usage in usages:
        bill.add(Prediction(KEY, text="x", usage=usage))
    return bill


def test_a_right_answers_share() -> None:
    cost = describe_bill(bill_of(Usage(10, 5, cached_tokens=4)), 2.0)
    assert cost["value"] == cost["paid"] == pytest.approx(6 + 2 + 10)
    assert cost["per_right_answer"] == pytest.approx(9.0)
    assert cost["cached_tokens"] == 4


@pytest.mark.parametrize("right", [None, 0.0])
def test_without_right_answers_there_is_no_share(right: float | None) -> None:
    assert describe_bill(bill_of(Usage(10, 5)), right)["per_right_answer"] is None


def test_a_share_of_a_part_of_the_bill_is_not_told() -> None:
    cost = describe_bill(bill_of(Usage(10, 5), None), 1.0)
    assert (cost["unpriced"], cost["per_right_answer"]) == (1, None)
    assert (sum_costs([cost], PRICES) or {})["per_right_answer"] is None


def test_tasks_add_up() -> None:
    costs = [describe_bill(bill_of(Usage(10, 0)), 1.0), describe_bill(bill_of(Usage(20, 0)), 4.0)]
    whole = sum_costs(costs, PRICES)
    assert whole is not None
    assert (whole["value"], whole["right_answers"], whole["per_right_answer"]) == (30.0, 5.0, 6.0)
    assert whole["prices"]["currency"] == "USD"
    assert sum_costs([], PRICES) is None
    assert sum_costs([None], None) is None

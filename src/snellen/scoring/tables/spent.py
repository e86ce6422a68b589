"""What the replies of a task cost: their tokens at the prices the run was asked at, and a right answer's share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...model.served.prices import Bill, Prices
from ...store.reader import RunReader

PRICES = "prices"
"""Where run.db keeps the prices."""


def stored_prices(reader: RunReader) -> Prices | None:
    """Return the prices a run was last asked at, if they were known."""
    kept = reader.meta(PRICES)
    return None if kept is None else msgspec.convert(kept, Prices)


def describe_bill(bill: Bill, right: float | None) -> dict[str, Any]:
    """Return the cost of one task as results.json has it."""
    worth, unpriced = bill.worth, bill.unpriced + bill.spared_unpriced
    return {
        "value": worth,
        "currency": bill.prices.currency,
        "per_right_answer": worth / right if right and not unpriced else None,
        "right_answers": right,
        "replies": bill.replies,
        "unpriced": unpriced,
        "cached_tokens": sum(tokens.cached for tokens in (bill.billed, bill.spared, bill.batched, bill.spared_batched)),
    }


def sum_costs(tasks: Mapping[str, Mapping[str, Any]], bills: Sequence[Bill]) -> dict[str, Any] | None:
    """Return the cost of all tasks together, what was paid of it, and the prices; None where there are none.

    What was paid is of the run alone: the figures of a task are the same whether replies came from the cache.
    """
    if not bills:
        return None
    prices = bills[0].prices
    found = [task["cost"] for task in tasks.values()]
    sums = {name: sum(cost[name] for cost in found) for name in ("value", "replies", "unpriced", "cached_tokens")}
    rights = [cost["right_answers"] for cost in found]
    right = None if None in rights else sum(rights)
    share = sums["value"] / right if right and not sums["unpriced"] else None
    told: dict[str, Any] = {"paid": sum(bill.paid for bill in bills), "currency": prices.currency}
    told |= {"right_answers": right, "per_right_answer": share}
    return sums | told | {"prices": msgspec.to_builtins(prices)}


def sum_extractors(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what the models that found answers cost together; it is in no other sum, as it buys no reply."""
    found = [(task.get("protocol") or {}).get("extractor", {}).get("cost") for task in tasks.values()]
    costs = [cost for cost in found if cost]
    if not costs:
        return None
    sums = {name: sum(cost[name] for cost in costs) for name in ("value", "paid", "replies", "unpriced")}
    return sums | {"currency": costs[0]["currency"]}

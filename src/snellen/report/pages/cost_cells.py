"""The cost of a run or task, as results.json has it, to the words of tables and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.text import plural
from ...model.served.prices import money

COST_COLUMNS = ("cost", "cost a right answer")
Cost = Mapping[str, Any]


def cost_cells(cost: Cost | None) -> tuple[str, str]:
    """Return the cost and that of a right answer; `≥` where some replies have no known price."""
    if cost is None:
        return "–", "–"
    least = "≥ " if cost["unpriced"] else ""
    share = cost["per_right_answer"]
    return least + money(cost["value"], cost["currency"]), "–" if share is None else money(share, cost["currency"])


def cost_lines(results: Mapping[str, Any]) -> Iterator[str]:
    """Say what the run cost, each task where there are several, what was not paid again, and what has no price."""
    if extractors := results.get("cost_of_extractors"):
        least = "≥ " if extractors["unpriced"] else ""
        value = least + money(extractors["value"], extractors["currency"])
        yield f"cost of the extractor: {value} for {plural(extractors['replies'], 'reply')}"
    whole = results.get("cost")
    if whole is None:
        return
    parts = {name: task["cost"] for name, task in results["tasks"].items() if task.get("cost")}
    for name, cost in (*(parts.items() if len(parts) > 1 else ()), ("all replies", whole)):
        value, share = cost_cells(cost)
        yield f"cost of {name}: {value}" + (f", {share} a right answer" if share != "–" else "")
    if whole["paid"] != whole["value"]:
        yield f"paid: {money(whole['paid'], whole['currency'])}; the other replies came from the response cache"
    if whole["unpriced"]:
        yield f"{plural(whole['unpriced'], 'reply')} without a known price (no token count, or too long): not in it"

"""A limit of money is never passed by trials whose requests grow: each counts as the last turn from the beginning."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from look_doubles import ask_all, box_call, chat, look_task, sample
from snellen.api.run_cost import Turns
from snellen.engine.limits import Limits
from snellen.model.served.prices import Prices, Tokens

PRICES = Prices(3.0, 15.0)


def grower(draw: random.Random, turns: Turns, most: int) -> Any:
    """Return a server that bills prompts as long as their history may make them, or shorter by chance."""

    def says(body: dict[str, Any], number: int) -> Any:
        results = sum(message["role"] == "tool" for message in body["messages"])
        given = round((turns.first + results * turns.added) * draw.choice((1.0, 1.0, draw.random())))
        usage = {"prompt_tokens": max(1, given), "completion_tokens": draw.randint(1, most)}
        if body.get("tool_choice") == "none" or draw.random() < 0.3:
            return chat("a cat", usage=usage)
        return chat(None, [box_call(0, 0, 900 - 100 * results, 500)], usage=usage)

    return says


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.nightly)])
def test_the_money_of_emulated_runs_is_never_passed(
    tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten runs here and 190 more at night, of random prices, lengths, workers and limits."""
    monkeypatch.setattr("snellen.data.images.encode.APART", False)
    shown = [sample(tmp_path, number, size=(64, 48)) for number in range(4)]
    for seed in range(first, 10 if not first else 200):
        draw = random.Random(seed)
        most = draw.randint(5, 50)
        turns = Turns(5, float(draw.randint(50, 400)), float(most + draw.randint(0, 300)))
        dearest = PRICES.cost(Tokens(round(turns.last) + 1, 0, most))
        money = dearest * draw.uniform(0.5, 12.0)
        limits = Limits(money=money, prices=PRICES, expected=dearest)
        task = look_task({"max_turns": 5}, ("base", "grey"), max_tokens=most)
        workers = draw.choice((1, 2, 4))
        ask_all(tmp_path / f"run{seed}", grower(draw, turns, most), task, shown, limits=limits, workers=workers)
        assert limits.spent <= money, seed
        assert limits.sent or money < dearest

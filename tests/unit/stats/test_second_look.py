"""What looking again was worth: the split adds up, chance is taken off, simulated agents give back what they are."""

from __future__ import annotations

import numpy as np
import pytest

from look_agents import EFFECTS, ask, figures, truths, try_agents
from snellen.kits.looks.second_look import (
    Replies,
    chance_flips,
    held,
    price_of_one,
    reliance,
    split_worth,
    union_area,
)

USES = (0.0, 0.5, 1.0)


def test_repaired_less_spoilt_is_the_worth() -> None:
    draw = np.random.default_rng(1)
    plain, base, called = draw.random((3, 80))
    right_called = base * called * draw.random(80)
    right_called = np.maximum(right_called, base + called - 1.0)  # as shares of replies can be
    split = split_worth(plain, Replies(base, right_called, called), None)
    parts = [split.repaired, split.repaired_uncalled, split.spoilt, split.spoilt_uncalled]
    values = [part.rate.value or 0.0 for part in parts]
    assert values[0] + values[1] - values[2] - values[3] == pytest.approx(float((base - plain).mean()))
    assert all(part.chance is None and part.beyond is None for part in parts)


def test_single_outcomes_are_counted_into_four_classes() -> None:
    plain = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    base = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    called = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    split = split_worth(plain, Replies(base, base * called, called), None)
    counted = [
        part.rate.value for part in (split.repaired, split.repaired_uncalled, split.spoilt, split.spoilt_uncalled)
    ]
    assert counted == pytest.approx([1 / 6] * 4)


def test_flips_are_those_of_all_pairs_of_replies() -> None:
    values, questions = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), np.array([0, 0, 0, 1, 1, 3])
    assert chance_flips(values, questions, 4) == pytest.approx([1 / 3, 0.0, np.nan, np.nan], nan_ok=True)


def test_what_chance_alone_does_is_taken_off() -> None:
    """An agent whose tools change nothing repairs a fifth of the questions, and none beyond chance."""
    asked = ask(np.random.default_rng(2), 0.0, 4000, 3)
    plain = asked.right["plain"]
    flips = chance_flips(plain.ravel(), np.repeat(np.arange(4000), 3), 4000)
    base, called = asked.right["base"].mean(axis=1), asked.called.astype(float)
    found = split_worth(plain.mean(axis=1), Replies(base, base * called, called), flips).repaired
    assert found.rate.value == pytest.approx(found.chance or 0.0, abs=0.01)
    assert (found.rate.value or 0.0) > 0.1
    assert found.beyond is not None and found.beyond.ci95 is not None
    assert found.beyond.ci95[0] <= 0.0 <= found.beyond.ci95[1]


def test_reliance_is_absent_where_the_right_region_adds_nothing() -> None:
    same = np.tile([0.0, 1.0], 50)
    assert reliance(same, same, same).value is None
    grey, gold = np.zeros(100), np.ones(100)
    found = reliance(same, grey, gold)
    assert found.value == pytest.approx(0.5)
    assert found.ci95 is not None and 0.35 < found.ci95[0] < 0.5 < found.ci95[1] < 0.65


def test_a_reliance_of_one_on_all_questions_has_a_width() -> None:
    low, high = reliance(np.ones(60), np.zeros(60), np.ones(60)).ci95 or (1.0, 1.0)
    assert low < 1.0 < high


def test_the_price_of_a_repaired_question() -> None:
    gained = np.tile([1.0, 0.0, 0.0, 0.0], 25)
    found = price_of_one(np.full(100, 30.0), gained)
    assert found.value == pytest.approx(120.0)
    assert found.ci95 is not None and found.ci95[0] < 120.0 < found.ci95[1]
    assert price_of_one(np.full(100, 30.0), np.tile([1.0, -1.0], 50)).value is None


def test_crops_hold_shares_of_gold_boxes() -> None:
    crops = np.array([[0.0, 0.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
    golds = np.array([[5.0, 0.0, 15.0, 10.0], [2.0, 2.0, 4.0, 4.0]])
    assert held(crops, golds) == pytest.approx(np.array([[0.5, 1.0], [0.0, 0.0]]))


def test_the_union_of_boxes_counts_each_place_once() -> None:
    boxes = np.array([[0.0, 0.0, 4.0, 4.0], [2.0, 2.0, 6.0, 6.0], [0.0, 0.0, 1.0, 1.0]])
    assert union_area(boxes) == pytest.approx(28.0)
    assert union_area(np.empty((0, 4))) == 0.0
    draw = np.random.default_rng(5)
    corners = np.sort(draw.integers(0, 30, (8, 2, 2)), axis=1).reshape(8, 4).astype(float)
    grid = np.zeros((30, 30), bool)
    for left, top, right, bottom in corners.astype(int):
        grid[left:right, top:bottom] = True
    assert union_area(corners) == grid.sum()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("greedy", [True, False])
def test_simulated_agents_give_back_what_they_are(use: float, greedy: bool) -> None:
    tried = {one.name: one for one in try_agents(use, 200, 200, greedy=greedy)}
    assert set(EFFECTS) <= set(tried)
    for name, one in tried.items():
        if name == "reliance" and use == 0.0:
            assert one.told <= 10  # there is nothing that could be relied on
            continue
        assert one.covered >= 0.91
        assert abs(one.bias) < (0.1 if name == "reliance" else 0.02)  # a ratio of small gains is skew
        assert use > 0.0 or one.called_an_effect <= 0.075
    if use == 1.0:
        assert tried["picture_effect"].called_an_effect == 1.0


def test_repeats_narrow_the_interval_and_bring_the_split() -> None:
    once, thrice = (figures(ask(np.random.default_rng(6), 1.0, 200, repeats)) for repeats in (1, 3))
    assert width(thrice["worth"].ci95) < 0.8 * width(once["worth"].ci95)
    assert thrice["repaired"].value == pytest.approx(truths(1.0)["repaired"], abs=0.06)
    assert "repaired" not in once


@pytest.mark.nightly
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("repeats", "greedy"), [(1, True), (1, False), (3, False)])
def test_intervals_of_looks_cover_what_they_say(use: float, repeats: int, greedy: bool) -> None:
    for one in try_agents(use, 2000, 200, repeats, greedy=greedy):
        if one.name != "reliance" or use > 0.0:
            assert one.covered >= 0.93, one
            assert use > 0.0 or one.called_an_effect <= 0.06, one


def width(interval: tuple[float, float] | None) -> float:
    assert interval is not None
    return interval[1] - interval[0]

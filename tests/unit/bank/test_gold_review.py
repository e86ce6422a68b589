"""Planted wrong gold answers come first, with options and without; ranges over undecided rows are exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from drawn_banks import drawn_bank
from snellen.kits.bank.gold_review import (
    NOBODY,
    gold_range,
    model_weights,
    option_votes,
    rasch_abilities,
    wrong_gold_ratios,
)


def planted(seed: int, models: int = 20, items: int = 500):
    """Chosen options of drawn models, 2 % of golds flipped: (chosen, gold, flips)."""
    draw = np.random.default_rng(seed)
    right = drawn_bank(models, items, seed, stronger=1.5)
    chosen = np.where(right == 1, 0, draw.integers(1, 4, right.shape))
    flips = draw.permutation(items)[: items // 50]
    gold = np.zeros(items, int)
    gold[flips] = draw.integers(1, 4, flips.size)
    return chosen, gold, flips


def recall(doubt: np.ndarray, flips: np.ndarray) -> float:
    return float(np.isin(flips, np.argsort(-doubt)[: doubt.size // 20]).mean())


def test_planted_flips_are_among_the_worst_twentieth() -> None:
    votes, ratios = [], []
    for seed in range(8):
        chosen, gold, flips = planted(seed)
        votes.append(recall(option_votes(chosen, gold, 4).doubt, flips))
        ratios.append(recall(wrong_gold_ratios((chosen == gold).astype(float)), flips))
    assert np.mean(votes) >= 0.8
    assert np.mean(ratios) >= 0.6


def test_the_rival_is_the_option_that_the_strong_agree_on() -> None:
    chosen, gold, flips = planted(3)
    found = option_votes(chosen, gold, 4)
    easy = flips[(chosen[:, flips] == 0).mean(axis=0) > 0.8]
    assert easy.size and (found.rival[easy] == 0).all()
    assert (found.vote[easy] > 0.3).all()


def test_an_item_that_nobody_answered_is_last_and_has_no_rival() -> None:
    chosen, gold, _ = planted(1)
    chosen[:, 7] = NOBODY
    found = option_votes(chosen, gold, 4)
    assert found.rival[7] == NOBODY
    assert found.doubt[7] == -np.inf


def test_weights_are_one_for_the_median_and_none_for_the_weakest() -> None:
    results = drawn_bank(21, 400)
    weights = model_weights(results)
    assert weights[np.argsort(results.mean(axis=1))[10]] == pytest.approx(1.0, abs=0.05)
    assert weights.min() == pytest.approx(0.0, abs=0.3) and weights.max() <= 3.0
    holes = np.where(np.random.default_rng(1).random(results.shape) < 0.3, np.nan, results)
    assert np.corrcoef(rasch_abilities(results), rasch_abilities(holes))[0, 1] > 0.95


def test_the_range_is_what_trying_everything_gives() -> None:
    nan = np.nan
    admissible = [np.array(of) for of in ([1.0], [0.0], [0.0, 1.0], [1.0, nan], [0.0, nan], [0.0, 1.0, nan], [1.0])]
    means = [np.nanmean(one) for one in product(*admissible) if not np.isnan(one).all()]
    official = np.array([of[0] for of in admissible])
    found = gold_range(official, official, admissible)
    assert (found.low, found.high) == pytest.approx((min(means), max(means)))
    assert (found.official, found.undecided, found.rows) == (pytest.approx(3 / 7), 4, 7)


def test_abilities_and_rises_are_those_of_the_textbook() -> None:
    results = drawn_bank(15, 200, 4)
    ability = rasch_abilities(results)
    assert (ability.mean(), ability.std()) == pytest.approx((0.0, 1.0), abs=1e-9)
    assert (np.argsort(ability, kind="stable") == np.argsort(results.sum(axis=1), kind="stable")).mean() > 0.8
    # Equal slopes: who has the same number right is equally able, and the place solves the share right of its logits.
    same = results.copy()
    same[1] = np.roll(same[0], 0)
    twins = rasch_abilities(same)
    assert twins[0] == pytest.approx(twins[1])
    assert (rasch_abilities(np.ones((4, 9))) == 0.0).all(), "who cannot be told apart is average"


def test_a_rise_is_the_correlation_among_those_who_answered() -> None:
    chosen, gold, _ = planted(5, 18, 60)
    chosen[np.random.default_rng(2).random(chosen.shape) < 0.2] = NOBODY
    found = option_votes(chosen, gold, 4)
    ability = rasch_abilities(np.where(chosen == NOBODY, np.nan, (chosen == gold).astype(float)))
    checked = 0
    for item in range(60):
        answered = chosen[:, item] != NOBODY
        takes = (chosen[answered, item] == found.rival[item]).astype(float)
        if found.rival[item] == NOBODY or takes.std() == 0.0:
            continue
        rise = float(np.corrcoef(takes, ability[answered])[0, 1])
        assert found.rise[item] == pytest.approx(rise, abs=1e-9)
        assert found.doubt[item] == pytest.approx(found.vote[item] + 0.35 * rise, abs=1e-9)
        checked += 1
    assert checked > 20


def test_a_vote_is_the_weight_of_the_rival_less_that_of_gold() -> None:
    chosen, gold, _ = planted(6, 12, 40)
    found = option_votes(chosen, gold, 4)
    weight = model_weights((chosen == gold).astype(float))
    for item in range(40):
        tally = {option: float(weight[chosen[:, item] == option].sum()) for option in range(4)}
        for_gold = tally.pop(int(gold[item]))
        rival, most = max(tally.items(), key=lambda pair: pair[1])
        assert found.vote[item] == pytest.approx((most - for_gold) / weight.sum())
        assert found.rival[item] == (rival if most > 0.0 else NOBODY)


def test_a_row_that_may_be_dropped_is_dropped_only_while_it_helps() -> None:
    nan = np.nan
    draw = np.random.default_rng(3)
    for _ in range(30):
        rows = int(draw.integers(1, 6))
        admissible = []
        for _ in range(rows):
            values = [round(float(value), 2) for value in draw.random(int(draw.integers(1, 3)))]
            admissible.append(np.array([*values, nan] if draw.random() < 0.5 else values))
        means = [np.nanmean(one) for one in product(*admissible) if not np.isnan(one).all()]
        official = np.array([of[0] for of in admissible])
        found = gold_range(official, official, admissible)
        assert (found.low, found.high) == pytest.approx((min(means), max(means)))
    nothing = gold_range(np.array([nan]), np.array([nan]), [np.array([nan])])
    assert np.isnan([nothing.official, nothing.low, nothing.high]).all()
    assert (nothing.undecided, nothing.rows) == (0, 1)

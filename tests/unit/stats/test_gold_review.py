"""Planted wrong gold answers come first, with options and without; ranges over undecided rows are exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from drawn_banks import drawn_bank
from snellen.stats.gold_review import (
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

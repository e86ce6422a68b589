"""`stats.threshold_grid`: one table for every level, what it learns, and what it asks next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.stats.psychometric import Rows, fit_threshold, logistic_curve
from snellen.stats.threshold_grid import (
    FINE_SLOPES,
    LATTICE,
    SLOPES,
    ThresholdGrid,
    flat_evidence,
    log_evidence,
    shared_lapses,
)


def learn_all(grid: ThresholdGrid, places: np.ndarray, right: np.ndarray) -> np.ndarray:
    belief = grid.start()
    for place, hits in zip(places, right, strict=True):
        belief = grid.learn(belief, np.array([place]), np.array([float(hits)]))
    return belief


@given(place=st.integers(0, 170), right=st.integers(0, 8), guess=st.sampled_from([0.03125, 0.1, 0.25]))
@settings(max_examples=30, deadline=None)
def test_a_row_from_the_table_is_the_row_computed(place: int, right: int, guess: float) -> None:
    grid = ThresholdGrid(0.0, 3.4, guess, 8)
    table = grid.learn(grid.start(), np.array([place]), np.array([float(right)]))
    direct = grid.learn_at(grid.start(), place * LATTICE, float(right), 8, guess)
    assert np.allclose(table, direct, atol=2e-3)


def test_chance_credit_lies_between_wrong_and_right() -> None:
    grid = ThresholdGrid(0.0, 3.0, 0.25)
    wrong, none, right = (grid.learn(grid.start(), np.array([75]), np.array([v])) for v in (0.0, 0.25, 1.0))
    assert np.allclose(none, 0.75 * wrong + 0.25 * right, atol=1e-5)
    assert np.all(none <= np.maximum(wrong, right) + 1e-9)


def test_it_agrees_with_the_fit_of_the_eye_chart() -> None:
    draw = np.random.default_rng(3)
    grid = ThresholdGrid(0.0, 3.4, 0.1, 8)
    places = draw.integers(0, grid.levels, 120)
    share = 0.1 + 0.88 * logistic_curve(6.0 * (places * LATTICE - 1.7))
    right = draw.binomial(8, share)
    known = grid.known(learn_all(grid, places, right))
    rows = Rows(places * LATTICE, np.full(120, 8.0), right.astype(float), np.full(120, 0.1), np.ones(120))
    fitted = fit_threshold(rows)
    assert fitted is not None
    assert known.middle[0] == pytest.approx(fitted.value, abs=0.03)
    assert known.low[0] < 1.7 < known.high[0]


def test_the_next_level_lies_where_the_threshold_may_be() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.25)
    places = np.arange(0, grid.levels, 20)
    belief = learn_all(grid, places, (places * LATTICE > 1.5).astype(float))
    chosen = grid.choose(belief, 8, easiest_first=False)[0] * LATTICE
    assert chosen.min() > 1.0
    assert chosen.max() < 2.4
    assert len(set(chosen)) > 1, "a level already picked has less left to tell"


def test_many_observers_are_the_same_as_one_by_one() -> None:
    grid = ThresholdGrid(0.0, 3.0, 0.125)
    places, right = np.array([20, 90]), np.array([0.0, 1.0])
    both = grid.learn(grid.start(2), places, right)
    for number in (0, 1):
        alone = grid.learn(grid.start(), places[[number]], right[[number]])
        assert np.allclose(both[[number]], alone)
        assert (
            grid.choose(both, 4, easiest_first=True)[number].tolist()
            == grid.choose(alone, 4, easiest_first=True)[0].tolist()
        )


def test_a_chance_that_differs_by_level_is_used() -> None:
    guesses = np.linspace(0.5, 0.1, 151)
    grid = ThresholdGrid(0.0, 3.0, 0.3, guesses=guesses)
    belief = grid.start()
    for _ in range(6):
        belief = grid.learn(belief, np.array([0]), np.array([1.0]))
    known = grid.known(belief)
    plain = ThresholdGrid(0.0, 3.0, 0.02)
    other = plain.start()
    for _ in range(6):
        other = plain.learn(other, np.array([0]), np.array([1.0]))
    assert known.below[0] < plain.known(other).below[0], "six lucky hits at one in two say little"


def test_easy_trials_elsewhere_move_the_lapse() -> None:
    few, many = shared_lapses(np.array([0.0, 12.0]), np.array([60.0, 60.0]))
    assert few.argmax() <= 1 and many.argmax() == 4


def test_replies_that_ignore_the_level_speak_for_flat() -> None:
    draw = np.random.default_rng(1)
    grid = ThresholdGrid(0.0, 3.0, 0.25)
    places = draw.integers(0, grid.levels, 300)
    flat = (draw.random(300) < 0.6).astype(float)
    odds = flat_evidence(flat[None], np.ones((1, 300)), 0.25) - log_evidence(learn_all(grid, places, flat))
    assert odds[0] > np.log(20)
    curve = (draw.random(300) < 0.25 + 0.75 * logistic_curve(6 * (places * LATTICE - 1.5))).astype(float)
    odds = flat_evidence(curve[None], np.ones((1, 300)), 0.25) - log_evidence(learn_all(grid, places, curve))
    assert odds[0] < 0


def test_a_refined_grid_knows_the_same_threshold_and_where_95_percent_is_right_more_smoothly() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.25)
    fine = grid.refined(1, FINE_SLOPES)
    beliefs = [grid.start(), fine.start()]
    draw = np.random.default_rng(4)
    for place in np.tile(np.arange(40, 130, 6), 8):
        right = float(draw.random() < 0.25 + 0.74 * logistic_curve(np.array([5.0 * (place * LATTICE - 1.6)]))[0])
        beliefs = [
            one.learn(b, np.array([place]), np.array([right])) for one, b in zip((grid, fine), beliefs, strict=True)
        ]
    coarse_known, known = grid.known(beliefs[0]), fine.known(beliefs[1])
    assert abs(known.middle[0] - coarse_known.middle[0]) < 0.03
    assert known.far[0] < known.far_bound[0] < known.far_high[0]
    assert np.diff(np.log(FINE_SLOPES)).max() <= 0.5 * np.diff(np.log(SLOPES)).max() + 1e-9


def test_a_refined_grid_keeps_a_chance_that_differs_by_level() -> None:
    guesses = np.linspace(0.02, 0.5, 171)
    fine = ThresholdGrid(0.0, 3.4, 0.5, guesses=guesses).refined(1, FINE_SLOPES)
    low, high = (fine.learn(fine.start(), np.array([place]), np.array([1.0])) for place in (0, 170))
    assert float(np.ptp(low)) > float(np.ptp(high)), "a hit where a guess rarely hits tells more"


def test_a_chance_that_is_the_same_at_each_level_is_learnt_from_as_one_chance() -> None:
    plain = ThresholdGrid(0.0, 3.0, 0.3)
    by_level = ThresholdGrid(0.0, 3.0, 0.3, guesses=np.full(plain.levels, 0.3))
    places, right = np.array([5, 40, plain.levels - 1]), np.array([0.0, 1.0, 0.0])
    told = [grid.learn(grid.start(observers=3), places, right) for grid in (plain, by_level)]
    np.testing.assert_allclose(told[1], told[0], atol=1e-4)

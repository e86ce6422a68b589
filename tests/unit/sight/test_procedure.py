"""`sight.procedure`: where to ask first and next, when to stop, and what to call it."""

from __future__ import annotations

import math

import numpy as np

from snellen.sight import procedure
from snellen.sight.adaptive import AdaptiveTest, compare_with_expected, final_grid
from snellen.sight.cards import exam_cards, eye_test
from snellen.sight.sitting import rules_of_test
from snellen.stats.psychometric import FAR, logistic_curve
from snellen.stats.threshold_grid import LATTICE, SLOPES, ThresholdGrid


def sit(threshold: float, guess: float, seed: int, lapse: float = 0.02) -> tuple[str, float, float, int]:
    """One simulated observer through the whole procedure."""
    draw = np.random.default_rng(seed)
    grid, rules = ThresholdGrid(0.0, 3.4, guess), procedure.rules_for("standard", rows=False)
    belief, asked = grid.start(), rules.easy
    places = np.full((1, rules.easy), grid.levels - 1)
    while True:
        share = guess + (1 - guess - lapse) * logistic_curve(6.0 * (places[0] * LATTICE - threshold))
        for place, hit in zip(places[0], draw.random(places.shape[1]) < share, strict=True):
            belief = grid.learn(belief, np.array([place]), np.array([float(hit)]))
        known = grid.known(belief)
        if asked > rules.easy and procedure.finished(known, asked, rules)[0]:
            break
        first = asked == rules.easy
        places = (
            procedure.first_places(grid, 8, 1, draw)
            if first
            else procedure.next_places(grid, belief, range(asked, asked + 8), rules, draw)
        )
        asked += 8
    return procedure.verdicts(known, np.array([-9.0]), procedure.Drawn(0.0, 3.4))[0], known.low[0], known.high[0], asked


def test_thresholds_are_found_within_their_interval() -> None:
    inside = 0
    for seed in range(20):
        threshold = 0.7 + 0.1 * seed
        verdict, low, high, asked = sit(threshold, 0.125, seed)
        assert verdict == procedure.MEASURED and asked <= 240
        inside += low <= threshold <= high
    assert inside >= 17


def test_what_is_always_right_is_at_ceiling_and_has_no_threshold() -> None:
    assert sit(-3.0, 0.125, 1, lapse=0.0)[0] == procedure.CEILING


def test_what_is_never_right_is_not_measurable() -> None:
    assert sit(80.0, 0.125, 1)[0] == procedure.FLOOR


def test_the_first_round_is_spread_over_the_whole_axis() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.25)
    places = procedure.first_places(grid, 8, 1, np.random.default_rng(0))[0]
    middles = (np.arange(8) + 0.5) * grid.levels / 8
    assert np.all(np.abs(places - middles) <= grid.levels / 16 + 1)


def test_confirming_trials_stand_at_x95_and_below() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.25)
    known = grid.known(grid.start())
    rules = procedure.rules_for("standard", rows=False)
    places = procedure.confirming_places(grid, known, rules)[0]
    assert places.size == 32 and len(set(places.tolist())) == 2


def test_a_guesser_is_not_ready() -> None:
    assert not procedure.is_ready(3, 8)
    assert procedure.is_ready(7, 8)
    assert not procedure.is_ready(0, 0)


def test_rows_may_end_after_sixteen_and_are_chosen_four_at_a_time() -> None:
    rules = procedure.rules_for("standard", rows=True)
    assert (rules.batch, rules.least) == (4, 16)


def test_oblong_canvases_are_measured_more_narrowly_than_square_ones() -> None:
    cards = {name: card for name, card in exam_cards().items() if name.startswith("resolution-")}
    widths = {card.canvas[0] == card.canvas[1]: rules_of_test(name, card, "standard") for name, card in cards.items()}
    assert widths[False].half_width == 0.8 * widths[True].half_width


def test_the_bound_of_x95_takes_no_slope_for_usual() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.25)
    belief = grid.start()
    belief[:, np.arange(grid.thresholds.size) != grid.thresholds.size // 2] -= 60.0
    known = grid.known(belief)
    reach = known.far_bound[0] - known.middle[0]
    # seven slopes alike: nine tenths lie between the two shallowest, nearer to the shallowest
    assert FAR * (0.7 / SLOPES[0] + 0.3 / SLOPES[1]) < reach < FAR / SLOPES[0]


def test_pages_are_asked_for_fewer_lines_than_rows() -> None:
    card = exam_cards()["page"]
    most = {mode: rules_of_test("page", card, mode).most for mode in ("quick", "standard", "fine")}
    assert most == {"quick": 24, "standard": 48, "fine": 96}
    assert rules_of_test("acuity", exam_cards()["acuity"], "quick").most == 64


def test_figures_of_single_trials_come_from_finer_slopes_than_levels_are_chosen_by() -> None:
    single, rows = ThresholdGrid(0.0, 3.4, 0.25), ThresholdGrid(0.0, 3.4, 0.1, 8)
    assert final_grid(single).slopes.size > single.slopes.size == SLOPES.size
    assert final_grid(rows).slopes.size == SLOPES.size and final_grid(rows).coarse == 1


def test_what_confirming_trials_are_expected_to_do_goes_by_the_chance_of_their_level() -> None:
    test = eye_test("images")
    running = AdaptiveTest("images", test, 1, rules_of_test("images", test.card, "standard"), blanks=False)
    places = np.full(40, running.grid.place_of(test.card.axis.x(32.0)))
    belief = running.grid.start(1)
    for x in np.linspace(-3.5, -1.0, 12):  # nobody is right from three pictures on
        belief = running.grid.learn_at(belief, float(x), 0.0, 1, test.chance(math.exp(-x)))
    _, expected, off = compare_with_expected(running.grid, belief, places, 40 / 32, np.random.default_rng(1))
    assert expected < 0.1 and off > 0.05

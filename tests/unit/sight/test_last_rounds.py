"""How many trials the next round has, how a server's limit is looked for, and bounds that claim no more than was seen."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from snellen.sight.adaptive import AdaptiveTest, far_sure, laws_of
from snellen.sight.advice import careful, words_of
from snellen.sight.cards import eye_test
from snellen.sight.exam_trials import CONFIRM, Outcome
from snellen.sight.plate import Reading
from snellen.sight.procedure import Taken, beyond_taken, round_size, rules_for, within_taken
from snellen.sight.row_plates import jpeg_quality_at_least, jpeg_scale_of
from snellen.sight.sitting import rules_of_test
from snellen.stats.psychometric import OTHER_LAWS
from snellen.stats.threshold_grid import Known, ThresholdGrid, across_laws

ROWS, TRIALS = rules_for("standard", rows=True), rules_for("standard", rows=False)


def known(half_width: float) -> Known:
    """Return what is known of one observer whose interval is so wide."""
    one = np.array([0.0])
    return Known(*([one] * len(Known._fields)))._replace(low=one - half_width, high=one + half_width)


@pytest.mark.parametrize(
    ("half_width", "asked", "size"),
    [(0.6, 16, 4), (0.16, 16, 1), (0.18, 24, 4), (0.17, 20, 2), (0.15, 13, 3), (0.6, 126, 2)],
)
def test_the_last_rows_are_asked_as_the_interval_needs_them(half_width: float, asked: int, size: int) -> None:
    assert round_size(known(half_width), asked, ROWS)[0] == size


def test_single_trials_end_in_small_rounds_too() -> None:
    sizes = [int(round_size(known(width), 100, TRIALS)[0]) for width in (0.3, 0.16, 0.153, 0.1501)]
    assert sizes == [8, 6, 2, 1]


def test_a_round_stays_within_what_a_server_takes_and_one_trial_looks_for_its_limit() -> None:
    places = np.array([10, 100, 40, 60])
    assert within_taken(places, None) is places
    assert within_taken(places, Taken(50, 20)).tolist() == [35, 100, 50, 60]
    assert within_taken(places, Taken(50, 48)).tolist() == [50, 100, 50, 60]
    assert within_taken(places, Taken(10, 4)).tolist() == [10, 100, 40, 60]


def test_a_threshold_beyond_the_limit_ends_the_test_when_the_limit_is_known() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.25)
    sure = known(0.5)._replace(high=np.array([0.9]))
    assert beyond_taken(grid, sure, Taken(50, 48))
    assert not beyond_taken(grid, sure, Taken(50, 20)) and not beyond_taken(grid, sure, Taken(40, 38))
    assert not beyond_taken(grid, sure, None)


@pytest.mark.parametrize(
    ("value", "unit", "up", "said"),
    [
        (1.7738, "px", True, 1.78),
        (416.67, "% quantiser", False, 416.0),
        (0.0039216, "of full contrast", True, 0.00393),
        (16.94, "pictures", False, 16.0),
        (20.0, "pictures", False, 20.0),
        (7839.6, "characters", False, 7839.0),
        (2.0, "px", True, 2.0),
    ],
)
def test_bounds_are_rounded_away_from_the_bolder_claim(value: float, unit: str, up: bool, said: float) -> None:
    assert careful(value, unit, up=up) == pytest.approx(said, abs=1e-12)


def test_sentences_round_where_95_percent_is_right_towards_the_easier_level() -> None:
    result = {"unit": "share", "value": 0.01, "x95_upper90": 0.0063431, "axis": [0.005, 0.8], "ci95": None}
    words = words_of(result)
    assert (words["safe"], words["safe_percent"]) == ("0.00635", "0.635")
    harder = result | {"unit": "heights", "x95_upper90": 0.76079, "axis": [0.8, 0.02]}
    assert words_of(harder)["safe"] == "0.76"


@pytest.mark.parametrize("scale", [4.0, 27.9, 28.7, 99.0, 101.0, 378.72, 400.0])
def test_a_jpeg_of_the_quality_said_is_no_worse_than_what_was_read(scale: float) -> None:
    assert jpeg_scale_of(jpeg_quality_at_least(scale)) <= scale


def test_laws_agree_at_the_threshold_and_reach_95_percent_where_they_say() -> None:
    for law in OTHER_LAWS:
        assert law.curve(np.array(0.0)) == pytest.approx(0.5) and law.curve(np.array(law.far)) == pytest.approx(0.95)
        steep = (law.curve(np.array(1e-4)) - law.curve(np.array(-1e-4))) / 2e-4
        assert steep == pytest.approx(0.25, rel=1e-3)


def test_threshold_and_level_of_95_percent_go_over_laws() -> None:
    grid = ThresholdGrid(0.0, 3.4, 0.1, 8)
    beliefs = []
    for one in laws_of(grid):
        belief = one.start()
        for place, right in ((160, 8), (90, 4), (100, 6), (80, 3), (120, 8), (70, 1)):
            belief = one.learn(belief, np.array([place]), np.array([float(right)]))
        beliefs.append((one, belief))
    alone = grid.known(beliefs[0][1])
    over = across_laws(alone, beliefs)
    each = [one.known(belief) for one, belief in beliefs]
    assert (
        min(one.low[0] for one in each)
        <= over.low[0]
        < over.middle[0]
        < over.high[0]
        <= max(one.high[0] for one in each)
    )
    assert over.high[0] - over.low[0] > min(one.high[0] - one.low[0] for one in each)
    ends = [one.known(belief).far_bound[0] for one, belief in beliefs]
    assert min(ends) < over.far_bound[0] < max(ends)
    assert far_sure(confirmed=False) == 0.9 < far_sure(confirmed=True)


def _far_reader(slope: float, draw: random.Random) -> AdaptiveTest:
    """Return a quick letters test sat by a reader with half at 8 px."""
    test = eye_test("acuity")
    running = AdaptiveTest("acuity", test, 5, rules_of_test("acuity", test.card, "quick"), blanks=False)
    while planned := running.plan():
        shares = [0.1 + 0.9 / (1.0 + math.exp(-slope * math.log(one.level / 8.0))) for one in planned]
        right = [sum(draw.random() < share for _ in range(8)) for share in shares]
        running.take(
            [Outcome(one, one.level, Reading(float(k), 8, 0.1, "")) for one, k in zip(planned, right, strict=True)]
        )
    return running


def test_more_rows_confirm_where_the_bound_of_95_percent_is_far_from_its_median() -> None:
    confirmed = {}
    for slope in (3.0, 14.0):
        running = _far_reader(slope, random.Random(3))
        confirmed[slope] = sum(one.planned.stage == CONFIRM for one in running.outcomes)
        assert len(running.retested) == running.rules.confirm
        assert running.plan() == []
    assert confirmed[3.0] > confirmed[14.0] == running.rules.confirm
    assert confirmed[3.0] <= running.rules.confirm_most

"""What the level of a drawn figure says is what is drawn."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from snellen.sight.figure_plates import HIDDEN_RADIUS, SPOT_PX, SPOTTED, by_corner
from snellen.sight.recipe import page_recipe


@pytest.mark.parametrize("level", [0.5, 8.0, 25.0, 40.0])
def test_one_corner_of_the_odd_pair_is_moved_by_the_level(level: float) -> None:
    for number in range(60):
        first, second = by_corner(level, True, random.Random(number))
        moved = [math.dist(a, b) for a, b in zip(first[0], second[0], strict=True)]
        assert sorted(moved)[-2] == 0.0
        assert max(moved) == pytest.approx(level)


def test_spots_hide_the_tips_of_a_shape_as_often_as_its_middle() -> None:
    tip, draw = 1.24 * HIDDEN_RADIUS, np.random.default_rng(0)
    centres, radii = draw.uniform(-SPOTTED, SPOTTED, (2, 100_000)), draw.uniform(*SPOT_PX, 100_000)
    hidden = [np.mean(np.hypot(centres[0] - x, centres[1]) < radii) for x in (0.0, tip)]
    assert hidden[1] == pytest.approx(hidden[0], rel=0.1)


@pytest.mark.parametrize("safe", [5.04, 5.85, 9.0, 13.3])
def test_the_recipe_asks_for_no_smaller_letters_than_the_line_on_text(safe: float) -> None:
    acuity = {"x95_upper90": safe, "canvas": [672, 672], "chance": 0.1, "lapse": 0.01}
    recipe = page_recipe(acuity, None)
    assert recipe is not None and recipe.capital_px >= math.ceil(safe)

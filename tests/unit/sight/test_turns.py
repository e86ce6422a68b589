"""Quarter turns: the row is turned exactly, read in its own order, and every turn is judged by its rows."""

from __future__ import annotations

import io
import random

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.sight.advice import prescribe
from snellen.sight.cards import eye_test
from snellen.sight.exam_trials import Outcome, Planned
from snellen.sight.fixed import TURNS, FixedTest, turn_words, turns_result
from snellen.sight.plate import Bench, Reading

GLYPHS = 8


def running(shares: dict[int, float], rows: int = 8) -> FixedTest:
    """Return a running test whose rows of a turn are all read to one share."""
    made = FixedTest("quarter-turns", eye_test("quarter-turns"), 0, places=3, trials=3 * rows)
    planned = Planned("search", 0, 0, 1.0, "0", 0)
    made.outcomes = [
        Outcome(planned, float(turn), Reading(share * GLYPHS, GLYPHS, 0.1, "x"))
        for turn, share in shares.items()
        for _ in range(rows)
    ]
    return made


def test_a_turned_row_is_the_upright_row_turned_exactly() -> None:
    test = eye_test("quarter-turns")
    inks = []
    for number, turn in enumerate(TURNS):
        stimulus = test.draw(1.0, str(number), random.Random(4), Bench())
        assert stimulus.detail["turn"] == turn == stimulus.level
        page = np.asarray(PIL.Image.open(io.BytesIO(stimulus.pictures[0])).convert("L"))
        upright = np.rot90(page, turn // 90)  # numpy turns against the clock, and so undoes it
        rows, columns = np.where(upright < 128)
        inks.append((int(np.ptp(rows)), int(np.ptp(columns))))
    assert all(wide > 4 * tall for tall, wide in inks), "every row lies flat once its turn is undone"


def test_a_row_read_from_its_end_is_named_and_is_not_right() -> None:
    test = eye_test("quarter-turns")
    stimulus = test.draw(1.0, "1", random.Random(1), Bench())
    assert stimulus.truth != stimulus.truth[::-1]
    right, back = (test.read(text, stimulus.truth, stimulus.detail) for text in (stimulus.truth, stimulus.truth[::-1]))
    assert right.right == GLYPHS and not right.detail["backwards"]
    assert back.right < GLYPHS and back.detail["backwards"]


@pytest.mark.parametrize(
    ("shares", "words", "advice"),
    [
        ({90: 1.0, 180: 1.0, 270: 1.0}, "read at 90°, 180° and 270°", "turned-any"),
        ({90: 0.1, 180: 1.0, 270: 0.0}, "read at 180°, not read at 90° and 270°", "turned"),
        ({90: 0.6, 180: 0.95, 270: 0.05}, "read at 180°, not read at 270°, not settled at 90°", "turned"),
        ({90: 0.1, 180: 0.1, 270: 0.1}, "not read at 90°, 180° and 270°", "turned"),
    ],
)
def test_every_turn_has_its_verdict_and_the_advice_says_which(
    shares: dict[int, float], words: str, advice: str
) -> None:
    result = turns_result(running(shares))
    assert result["verdict"] == "measured" and turn_words(result["turns"]) == words
    assert result["value"] == pytest.approx(min(shares.values()))
    lines = [line for line in prescribe({"quarter-turns": result}, None) if line.test == "quarter-turns"]
    assert [line.id for line in lines] == [advice]
    assert advice == "turned-any" or words in lines[0].sentence


def test_a_turn_without_answers_settles_nothing() -> None:
    missing = running({90: 1.0, 180: 1.0})
    result = turns_result(missing)
    assert result["verdict"] == "not settled" and result["value"] is None and "270°" in result["reason"]
    assert prescribe({"quarter-turns": result}, None) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3), st.integers(4, 30))
def test_an_interval_holds_its_share_and_only_one_side_of_half_is_called(shares: list[float], rows: int) -> None:
    result = turns_result(running(dict(zip(TURNS, shares, strict=True)), rows))
    for turn, share in zip(TURNS, shares, strict=True):
        one = result["turns"][str(turn)]
        low, high = one["ci95"]
        assert low - 1e-3 <= share <= high + 1e-3
        assert {"read": low > 0.5, "not read": high < 0.5, "not settled": low <= 0.5 <= high}[one["verdict"]]

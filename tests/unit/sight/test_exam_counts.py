"""What an exam counts: whole numbers that add up to what was asked, for single trials and for the glyphs of rows."""

from __future__ import annotations

import pytest

from snellen.sight.adaptive import easy_words
from snellen.sight.exam_trials import EASY, Outcome, Planned, counted
from snellen.sight.plate import Reading, credit
from snellen.sight.reply_reading import read_choice, read_row

ROW, SLOAN = "CDHKNORS", "CDHKNORSVZ"
PLANNED = Planned(EASY, 0, 0, 52.0, "", 0)


def outcomes(*readings: Reading | None) -> list[Outcome]:
    return [Outcome(PLANNED, 52.0, reading) for reading in readings]


ROWS = outcomes(
    read_row(ROW, ROW, SLOAN),
    read_row("CDHKNOR?", ROW, SLOAN),
    read_row("CDHKVV??", ROW, SLOAN),
    read_row("CDHKNOR", ROW, SLOAN),
    read_row("I cannot see any letters.", ROW, SLOAN),
    None,
)


def test_rows_are_counted_by_their_glyphs_and_as_rows() -> None:
    found = counted(ROWS, 8)
    assert found.pop("glyphs") == {"asked": 48, "right": 26, "wrong": 3, "no_answer": 11, "failed": 8}
    assert found == {"trials": 6, "right": 1, "wrong": 3, "no_answer": 1, "failed": 1}


def test_single_trials_have_no_glyphs() -> None:
    words = ("left", "right")
    told = outcomes(read_choice("left", "left", words), read_choice("right", "left", words), credit(1, 0.5), None)
    assert counted(told, 1) == {"trials": 4, "right": 1, "wrong": 1, "no_answer": 1, "failed": 1}
    assert counted([], 1) == {"trials": 0, "right": 0, "wrong": 0, "no_answer": 0, "failed": 0}


@pytest.mark.parametrize(
    ("easy", "words"),
    [
        (ROWS, "26 of 32 in 4 rows right when it is easy, 1 trials without an answer"),
        (outcomes(credit(8, 0.1), credit(8, 0.1)), "none of 2 trials got an answer when it is easy"),
    ],
)
def test_easy_rows_are_told_in_glyphs_of_rows(easy: list[Outcome], words: str) -> None:
    assert easy_words(easy, 8) == words

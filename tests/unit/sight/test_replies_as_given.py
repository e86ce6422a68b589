"""Replies as servers give them: the same reading however it is written down, and none where a reply takes it back."""

from __future__ import annotations

import pytest

from snellen.sight.cards import eye_test
from snellen.sight.reply_reading import read_number, read_row, read_word
from snellen.sight.scenes import codes_told

SLOAN, ROW = "CDHKNORSVZ", "CDHKNORS"
RING = ("top", "top right", "right", "bottom right", "bottom", "bottom left", "left", "top left")


@pytest.mark.parametrize(
    ("reply", "truth", "alphabet"),
    [
        ("CDHKN0RS", ROW, SLOAN),
        ("C D H K N 0 R S", ROW, SLOAN),
        ("The row is CDHKN0RS.", ROW, SLOAN),
        ("CDHK\nNORS", ROW, SLOAN),
        ("1. C\n2. D\n3. H\n4. K\n5. N\n6. O\n7. R\n8. S", ROW, SLOAN),
        (
            "Here they are:\n\n1) **C**\n2) **D**\n3) **H**\n4) **K**\n5) **N**\n6) **O**\n7) **R**\n8) **S**",
            ROW,
            SLOAN,
        ),
        ("O1234567", "01234567", "0123456789"),
        ("0l234567", "01234567", "0123456789"),
        ("1: 0\n2: 1\n3: 2\n4: 3\n5: 4\n6: 5\n7: 6\n8: 7", "01234567", "0123456789"),
    ],
)
def test_a_row_is_read_however_it_is_written(reply: str, truth: str, alphabet: str) -> None:
    reading = read_row(reply, truth, alphabet)
    assert (reading.right, reading.guess) == (8, 1 / 10)


def test_what_an_alphabet_has_is_not_changed() -> None:
    assert read_row("0000", "OOOO", "O0").right == 0
    assert read_row("1. C\n2. D", ROW, SLOAN).right < 8


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("**Top right**\n\nExplanation: it is open on the right and at the top.", "top right"),
        ("TopRight", "top right"),
        ("bottomleft", "bottom left"),
        ("Left\n\nWait, it is on the right of the top.", None),
        ("Left\n\nActually the top or the right.", None),
    ],
)
def test_an_answer_with_reasons_after_it_counts_unless_it_is_taken_back(reply: str, word: str | None) -> None:
    assert read_word(reply, RING) == word


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("3 rows of 4, so 12", 12),
        ("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12. So 12 discs.", 12),
        ("5 left, 7 right. Total 12", 12),
        ("12\n\n5 of them on the left, 7 on the right.", 12),
        ("12\n\nNo, sorry: 5 on the left and 8 on the right.", None),
        ("Total 5 left and 7 right", None),
    ],
)
def test_a_number_is_read_where_a_count_ends(reply: str, number: float | None) -> None:
    assert read_number(reply) == number


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("I think it says house", "HOUSE"),
        ("H-O-U-S-E", "HOUSE"),
        ("It shows the English word 'House', which has five letters.", "HOUSE"),
        ("I think I cannot read it", None),
        ("It might be HOUSE or HORSE", None),
    ],
)
def test_talk_about_a_word_is_not_the_word(reply: str, answer: str | None) -> None:
    assert eye_test("words").read(reply, "HOUSE", {}).answer == answer


def test_a_zero_in_a_code_is_its_letter() -> None:
    assert codes_told("0RSVZ", ["CDHKN", "ORSVZ"]) == ["ORSVZ"]

"""`sight.reply_reading`: one answer, or none; never the likelier of two."""

from __future__ import annotations

import pytest

from snellen.sight.reply_reading import read_choice, read_number, read_pair, read_row, read_word

QUADS = ("top left", "top right", "bottom left", "bottom right")
RING = ("top", "top right", "right", "bottom right", "bottom", "bottom left", "left", "top left")


@pytest.mark.parametrize(
    ("reply", "words", "answer"),
    [
        ("Top-Left", QUADS, "top left"),
        ("**bottom right**.", QUADS, "bottom right"),
        ("The upper right group.", QUADS, "top right"),
        ("top right", RING, "top right"),
        ("It is open to the right", RING, "right"),
        ("Either left or right.", RING, None),
        ("Not left. Final answer: right", RING, "right"),
        ("I cannot tell.", RING, None),
        ("", RING, None),
        ("top, right", RING, None),
        ("brightness", RING, None),
    ],
)
def test_a_word_is_read(reply: str, words: tuple[str, ...], answer: str | None) -> None:
    assert read_word(reply, words) == answer


def test_no_answer_gets_the_credit_of_chance() -> None:
    reading = read_choice("I am not able to see it", "left", RING)
    assert reading.answer is None and reading.right == pytest.approx(1 / 8)
    assert read_choice("left", "left", RING).right == 1.0
    assert read_choice("right", "left", RING).right == 0.0


@pytest.mark.parametrize(
    ("reply", "number"),
    [("14", 14), ("There are 14 discs.", 14), ("Fourteen? 14", 14), ("seven", 7), ("3 or 4", None), ("1,200", 1200)],
)
def test_a_number_is_read(reply: str, number: float | None) -> None:
    assert read_number(reply) == number


def test_a_pair_is_read() -> None:
    assert read_pair("512, 300") == (512, 300)
    assert read_pair("(0.5, 0.25)") == (0.5, 0.25)
    assert read_pair("[10, 20, 30, 40]") == (20, 30)
    assert read_pair("somewhere") is None


def test_a_row_is_read_by_place() -> None:
    alphabet = "CDHKNORSVZ"
    assert read_row("CDHKNORS", "CDHKNORS", alphabet).right == 8
    assert read_row("C D H K N O R Z", "CDHKNORS", alphabet).right == 7
    half = read_row("CDHK????", "CDHKNORS", alphabet)
    assert half.right == pytest.approx(4 + 4 * 0.1) and half.detail["unseen"] == 4
    assert read_row("The row is:\nCDHKNORS", "CDHKNORS", alphabet).right == 8


def test_talk_about_a_row_is_no_answer() -> None:
    reading = read_row("I am sorry, I cannot read the letters in this image.", "CDHKNORS", "CDHKNORSVZ")
    assert reading.answer is None and reading.right == pytest.approx(0.8)


def test_a_row_of_another_length_has_its_own_chance() -> None:
    reading = read_row("CDHKNOR", "CDHKNORS", "CDHKNORSVZ")
    assert reading.right == 7 and reading.guess > 0.1 and not reading.detail["by_place"]

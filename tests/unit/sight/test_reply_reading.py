"""`sight.reply_reading`: one answer, or none; never the likelier of two."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.sight.cards import eye_test
from snellen.sight.reply_reading import TENS, UNITS, read_choice, read_number, read_row, read_word

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
        ("The candidates are top and left.\n\n**Right**.", RING, "right"),
        ("The candidates are top and left.\n\nIt is not right.", RING, None),
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
    [
        ("14", 14),
        ("There are 14 discs.", 14),
        ("Fourteen? 14", 14),
        ("seven", 7),
        ("3 or 4", None),
        ("1,200", 1200),
        ("Twenty-three", 23),
        ("There are forty discs", 40),
        ("two dozen", None),
        ("one hundred and two", None),
        ("图中有12个圆", 12),
        ("4 above, 5 below and 3 beside. Total: 12", 12),
        ("4 + 5 + 3 = 12", 12),
        ("There are 12 in total, of which 4 are cut", None),
        ("2 on the left, 3 on the right.\n\n**5 discs**", 5),
        ("I see 3 rows.\nThere are 4 in the last.", None),
    ],
)
def test_a_number_is_read(reply: str, number: float | None) -> None:
    assert read_number(reply) == number


@given(st.integers(0, 99))
def test_numbers_are_read_as_they_are_spelt(number: int) -> None:
    spelt = UNITS[number] if number < 20 else f"{TENS[number // 10 - 2]}-{UNITS[number % 10]}".removesuffix("-zero")
    assert read_number(f"I count {spelt} of them.") == number


def test_a_row_is_read_by_place() -> None:
    alphabet = "CDHKNORSVZ"
    assert read_row("CDHKNORS", "CDHKNORS", alphabet).right == 8
    assert read_row("C D H K N O R Z", "CDHKNORS", alphabet).right == 7
    half = read_row("CDHK????", "CDHKNORS", alphabet)
    assert half.right == pytest.approx(4 + 4 * 0.1) and half.detail["unseen"] == 4
    assert read_row("The row is:\nCDHKNORS", "CDHKNORS", alphabet).right == 8


SAID = [
    "The row reads {row}.",
    "I see {row}",
    "{row} {row}",
    "{row}\n{row}",
    "**Answer:** `{row}`",
    "```\n{row}\n```",
    '{{"answer": "{row}"}}',
    "$\\boxed{{\\text{{{row}}}}}$",
    "这一行是：{row}",
    "Row 1: {row}",
    "It could be C or O first.\n\n{row}",
    "It says: {row} ({count} characters)",
]
WRITTEN = {"letters": "CDHKNORSVZ", "digits": "0123456789", "page": "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"}


@pytest.mark.parametrize("sentence", SAID)
@pytest.mark.parametrize(("script", "length"), [("letters", 8), ("letters", 4), ("digits", 8), ("page", 40)])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_row_is_the_same_however_it_is_said(sentence: str, script: str, length: int, data: st.DataObject) -> None:
    alphabet = WRITTEN[script]
    truth, said = (data.draw(st.text(alphabet, min_size=length, max_size=length)) for _ in range(2))
    spoken = read_row(sentence.format(row=said, count=length), truth, alphabet)
    plain = read_row(said, truth, alphabet)
    assert (spoken.right, spoken.answer, spoken.guess) == (plain.right, plain.answer, plain.guess)


def test_a_row_named_letter_by_letter_is_read() -> None:
    assert read_row("First C, then D, H, K, N, O, R and S.", "CDHKNORS", "CDHKNORSVZ").right == 8
    assert read_row("The letters are C D H K N O R Z.", "CDHKNORS", "CDHKNORSVZ").right == 7


@pytest.mark.parametrize("reply", ["I don't know.", "None", "Unknown", "Sorry, no", "No answer", "Unclear"])
@pytest.mark.parametrize("length", [4, 8])
def test_words_made_of_the_alphabet_are_no_row(reply: str, length: int) -> None:
    assert read_row(reply, "CDHKNORS"[:length], "CDHKNORSVZ").answer is None


def test_two_rows_are_no_answer() -> None:
    assert read_row("CDHKNORS or CDHKNORZ", "CDHKNORS", "CDHKNORSVZ").answer is None


def test_a_row_in_small_letters_is_read() -> None:
    for reply in ("cdhknors", "c d h k n o r s", "cdhk nors", "cdhknorx"):
        assert read_row(reply, "CDHKNORS", "CDHKNORSVZ").right >= 7


@pytest.mark.parametrize(
    "reply", ["CDHKNoRs", "CDHK NoRs", "cDHKN oRS", "cd HKNORS", "CDHK NoBs", "C dHK No RX", "CDHKN ors"]
)
def test_what_a_reader_of_shapes_makes_of_capitals_is_a_row(reply: str) -> None:
    assert read_row(reply, "CDHKNORS", "CDHKNORSVZ").right >= 7


def test_a_word_is_told_from_what_is_said_of_it() -> None:
    test = eye_test("words")
    assert test.read("I think the word shown is HOUSE.", "HOUSE", {}).right == 1
    assert test.read("house", "HOUSE", {}).right == 1
    assert test.read("HOUSE or MOUSE", "HOUSE", {}).answer is None


def test_one_code_of_several_is_the_one_announced() -> None:
    test, detail = eye_test("images"), {"codes": ["CDHKN", "ORSVZ"], "picture": 2}
    listed = "Picture 1: CDHKN, picture 2: ORSVZ."
    assert test.read(f"{listed} Answer: ORSVZ", "ORSVZ", detail).right == 1
    assert test.read(f"{listed}\n\nORSVZ", "ORSVZ", detail).right == 1
    assert test.read(listed.replace(", ", "\n"), "ORSVZ", detail).answer is None


def test_talk_about_a_row_is_no_answer() -> None:
    reading = read_row("I am sorry, I cannot read the letters in this image.", "CDHKNORS", "CDHKNORSVZ")
    assert reading.answer is None and reading.right == pytest.approx(0.8)


def test_a_row_of_another_length_has_its_own_chance() -> None:
    reading = read_row("CDHKNOR", "CDHKNORS", "CDHKNORSVZ")
    assert reading.right == 7 and reading.guess > 0.1 and not reading.detail["by_place"]

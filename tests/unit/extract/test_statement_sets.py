"""Options that are sets of counted statements, and replies that judge these one by one or together."""

from __future__ import annotations

import time

import pytest

from snellen.extract.choice import extract_choice

ROMAN = ["I only", "II only", "I and II only", "I, II and III"]
NUMBERS = ["1 and 2", "2 and 3", "1 and 3", "1, 2 and 3"]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Only statement I holds.", "A"),
        ("All three statements are true.", "D"),
        ("The slope is negative, thus only II is correct.", "B"),
        ("I is true because x = 3. II is true as well. III is false.", "C"),
        ("Statements I and II are correct, but III is incorrect.", "C"),
        ("Statement I: true. Statement II: false. Statement III: false.", "A"),
        ("I – false; II – true; III – false", "B"),
        ("I, II and III are all true.", "D"),
        ("I is true.", None),
        ("Only II is false.", None),
        ("All three statements are false.", None),
        ("Not all three statements are true.", None),
        ("I believe II is true.", None),
        ("Only I think so.", None),
    ],
)
def test_counted_in_roman(reply: str, letter: str | None) -> None:
    assert extract_choice(reply, ROMAN).letter == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Statement 1 is false. Statement 2 is true. Statement 3 is true.", "B"),
        ("Statements 1 and 3 are correct; statement 2 is wrong.", "C"),
    ],
)
def test_counted_in_figures(reply: str, letter: str) -> None:
    assert extract_choice(reply, NUMBERS).letter == letter


def test_a_set_that_no_option_names_is_none_of_them() -> None:
    found = extract_choice("I is true, II is false and III is true.", ROMAN)
    assert (found.letter, found.reason) == (None, "not_offered")


@pytest.mark.parametrize("piece", ["1,", "I, ", "only I and ", "II is true. "])
def test_long_lists_take_no_longer_than_other_text(piece: str) -> None:
    """Of three tries the best, in processor time, so that a busy machine does not count."""
    text, best = piece * (20_000 // len(piece)), float("inf")
    for _ in range(3):
        begun = time.process_time()
        extract_choice(text, ROMAN)
        best = min(best, time.process_time() - begun)
    assert best < 0.2

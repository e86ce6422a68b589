"""Options named beside the point (`extract.rules.aside`), and the replies that were written as an examination."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.extract.choice import extract_choice

EXAMINATIONS = Path(__file__).resolve().parents[2] / "golden" / "data" / "extraction"
LETTERS = ["a cat", "a dog", "a horse", "a cow"]
LONG = "The picture was taken in the afternoon, and the animal stands in front of the barn with its back to us. "
NUMBERS = ["2", "4", "6", "8"]


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        ("Stripes would be D, spots would be C. The coat here is plain brown.", LETTERS),
        ("With the other curve we'd get (C), but that is not the one asked for. The rest is plain.", LETTERS),
        ("Choice A is a trap here. Look at the ears and the tail again.", LETTERS),
        ('The third says "a horse" – the shape of the head speaks against it. Look again.', LETTERS),
        (LONG + "First we count the legs, then we turn to a dog and to what the owner", LETTERS),
        (LONG + "The left part shows 2 crossings. Going on to the middle region, the curves", NUMBERS),
    ],
)
def test_what_is_named_beside_the_point_is_no_answer(reply: str, options: list[str]) -> None:
    assert extract_choice(reply, options).letter is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The answer would be D.", "D"),
        ("From its ears, the animal in the picture would be a horse.", "C"),
        ("So not A (stripes would be needed) but B.", "B"),
        (LONG + "So the animal is\n\na horse", "C"),
        ("B would be the best choice.", "B"),
    ],
)
def test_what_is_said_in_the_same_words_and_meant_is_read(reply: str, letter: str) -> None:
    assert extract_choice(reply, LETTERS).letter == letter


def test_a_factor_of_a_term_is_not_the_result() -> None:
    options = ["mg", "mg sinθ", "mg tanθ", "mg/cosθ"]
    assert extract_choice("There is no vertical acceleration, which yields T = mg / cos θ.", options).letter in {
        None,
        "D",
    }


def test_a_factor_still_speaks_against_another_option() -> None:
    reply = "The ratio is 3/4 of the bar. Look at 5."
    assert extract_choice(reply, ["3", "4", "5", "6"]).letter is None

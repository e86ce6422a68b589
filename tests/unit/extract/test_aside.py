"""Options named beside the point (`extract.rules.aside`), and the replies that were written as an examination."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.other_kinds import extract_choices, extract_yesno

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


def read(row: dict[str, Any]) -> str | None:
    """Read a reply as its question is asked: for one option, for all that are right, or for yes or no."""
    if row.get("form") == "yesno":
        return extract_yesno(row["reply"], finish=row.get("finish")).letter
    if row.get("form") == "several":
        return ",".join(sorted(extract_choices(row["reply"], row["options"]).letters)) or None
    return extract_choice(row["reply"], row["options"], finish=row.get("finish")).letter


@pytest.mark.parametrize(
    ("name", "least_right", "most_wrong"),
    [
        ("examination", 0.90, 0.015),
        ("examination-2", 0.96, 0.016),
        ("examination-3", 0.93, 0.011),
        ("examination-4", 0.93, 0.0),
        ("examination-5", 0.99, 0.0),
        ("examination-6", 0.99, 0.0),
        ("examination-7", 0.99, 0.0),
        ("examination-8", 0.99, 0.0),
        ("examination-9", 0.99, 0.0),
        ("examination-10", 0.9, 0.0),
        ("examination-11", 0.98, 0.0),
        ("examination-12", 0.95, 0.0),
        ("examination-13", 0.96, 0.0),
    ],
)
def test_examinations_are_read_hardly_ever_wrongly(name: str, least_right: float, most_wrong: float) -> None:
    rows = [json.loads(line) for line in (EXAMINATIONS / f"{name}.jsonl").read_text("utf-8").splitlines()]
    found = [read(row) for row in rows]
    right = sum(letter == row["label"] for letter, row in zip(found, rows, strict=True))
    wrong = sum(letter not in {None, row["label"]} for letter, row in zip(found, rows, strict=True))
    assert len(rows) > 70
    assert right / len(rows) >= least_right
    assert wrong / len(rows) <= most_wrong

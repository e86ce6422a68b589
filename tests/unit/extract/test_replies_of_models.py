"""What replies of real models showed: each misreading and crash that was found in published prediction files, in our words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.extract import edge_sentences
from snellen.extract.choice import extract_choice
from snellen.extract.other_kinds import (
    extract_choices,
    extract_labels,
    extract_number,
    extract_short,
    extract_yesno,
)

IMAGES = ["the second image", "the third image"]
POINTS = ["Point A", "Point B", "Point C", "Point D"]
SIDES = ["left", "right"]
LONGEST_SECONDS = 0.1


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        # A place is a text where the options are called by places.
        ("The best choice to fill the gap would be:\n\n(B) the third image\n\nThe second image shows a wall.", IMAGES, "B"),
        ("The second image shares the same style. The third image, on the other hand, is a photograph.", IMAGES, "A"),
        # What is stated first and then explained.
        ("The camera is moving to the right. This is evident because the cup shifts to the left.", SIDES, "B"),
        ("Box B more accurately encloses the bus. Box A is drawn around a car.", ["Box A", "Box B"], "B"),
        ("Point D in the second picture corresponds to the mark. Between the door and point D lies a wall.", POINTS, "D"),
        ("The clip plays at normal speed. This can be seen by the clock, unlike in slow motion.", ["slow motion", "normal speed"], "B"),
        ("The knight is drawing his sword from the sheath. This is indicated by the motion; no bow is raised for shooting an arrow.",
         ["drawing sword from sheath", "shooting an arrow"], "A"),
        # What is said of marks.
        ("Point A, which lies on the car, is closer to the lens compared to point B, which lies on a post.", ["A is closer", "B is closer"], "A"),
        ('The man labelled "B" looks closer than the boy labelled "A".', ["A is closer", "B is closer"], "B"),
        # Letters that count other things than the options.
        ("The third image (C) is most similar to the first image (A), whereas the second image (B) differs.", IMAGES, "B"),
        ("The second image (B) is the best match.", IMAGES, None),
        ("A: False", ["True", "False"], "B"),
        ("No, the girl does not jump. It is not clear whether she swims later.", ["yes", "no"], "B"),
        ("No, the person in the image is not behind a cup.", ["yes", "no"], "B"),
        ("Hence CD = 5√3. None of the options match this answer, D is the midpoint.", ["5", "6", "8", "10"], None),
        ("(E) 4.5\n(F) 5.5", ["4", "5", "5.5", "6"], None),
        ("Based on the picture, the correct answer is (A) the solution is option D.", ["the solution is option D", "the answer is option A"], "A"),
        ("Therefore, the corresponding point is (C).\nThe bottom right corner of the", POINTS, "C"),
        # A box is the answer, whatever stands beside it.
        ("So it is $\\boxed{\\text{(D)}}$.", ["1", "2", "3", "4"], "D"),
        ("The ratio is 3:2, so the answer is $\\boxed{\\frac{7}{\\pi}}$", ["3:2", "2:3"], None),
        ("So it is $\\boxed{1}$.", ["$\\frac{1}{2}$", "$1$"], "B"),
        # A model that was shown examples goes on with questions of its own.
        ("The angle is 70°. The answer is B.\n\nQuestion: How many eggs are left?\nA) 2\nB) 3\n\nSolution: Two. The answer is A.", ["60°", "70°"], "B"),
        ("The answer is (A) up.\n\nHint: Please give the letter, e.g., A, B, at the end.\nQuestion: Which way?\nChoices:\n(A) up\n(B) down\n(", ["up", "down"], "A"),
        ("I cannot tell without the chart.\n\nQuestion: What is 2 + 2?\nSolution: It is 4. The answer is A.", ["yes", "no"], None),
        ("Let us look again.\n\nQuestion: Which side?\nThe answer is B.", SIDES, None),
        ("Of course:\n\nQuestion: Which side?\nThe answer is B.", SIDES, "B"),
        ("(C) yes\n(D) no", ["yes", "no"], None),
        ("(B) no", ["yes", "no"], "B"),
        ("The bowl costs more. X if it rains. If not, Y is the better choice.", ["X", "Y"], None),
    ],
)  # fmt: skip
def test_a_reply_is_read_as_it_is_meant(reply: str, options: list[str], letter: str | None) -> None:
    assert extract_choice(reply, options).letter == letter


@pytest.mark.parametrize(
    "reply",
    [
        "As an AI I am unable to view pictures, so I can't tell the ages of the two people.",
        "It is impossible to determine the value of f(0).",
        "I cannot identify the smallest one.",
        "The text does not provide the radius. Please provide more than 10 words.",
        "The two people in the picture shake hands.",
    ],
)
def test_a_refusal_holds_no_number(reply: str) -> None:
    assert extract_number(reply).value is None


def test_a_number_said_all_the_same_is_read() -> None:
    assert extract_number("I can't be sure, but the answer is 4.").value == 4
    assert extract_number("There are two.").value == 2


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        ("A. Alpha", "A"),
        ("B) Germany has the most.", "B"),
        ("(C) 50%", "C"),
        ("The correct answer is option A: 36.38$", "A"),
        ("A, C", "AC"),
        ("Both B and D.", "BD"),
        ("It may be A or B.", ""),
        ("None that I see", ""),
    ],
)
def test_labels_are_read_where_nobody_knows_the_options(reply: str, labels: str) -> None:
    assert "".join(sorted(extract_labels(reply).letters)) == labels


def test_options_in_latex_and_no_options_at_all_are_read() -> None:
    assert extract_choice("It is 20\\%.", ["20\\%", "30\\%"]).letter == "A"
    assert extract_choice("hello", ["20\\%", "x"]).letter is None
    assert extract_choice("(B) 0.21", {}).reason == "unparsed"
    assert extract_choice("so \x00", {"a": "oak", "i": "elm"}).letter is None
    assert edge_sentences.opening.__doc__


PIECES = st.one_of(
    st.sampled_from(
        ["20\\%", "\\frac{1}{2}", "(B)", "[", "\\", "$", "²", "①", "-5", "½", "the answer is ", "Option A", "or ", "\\boxed{", "}", "?", "**", "yes", "\n",
         "5 km", "1/0", "10^999", "(?:", "*", "+", "is closer than ", "the second image", "İ", "ſ", "\x00", ". ", "wait, ", "not "]
    ),
    st.text(max_size=12),
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=5).map("".join)


@settings(max_examples=150)
@given(
    TEXTS, st.one_of(st.lists(TEXTS, max_size=6), st.dictionaries(st.text(min_size=1, max_size=3), TEXTS, max_size=5))
)
def test_no_option_and_no_reply_breaks_the_reader(reply: str, options: list[str] | dict[str, str]) -> None:
    extract_choice(reply, options)
    started = time.process_time()
    found = extract_choice(reply, options)
    assert time.process_time() - started < LONGEST_SECONDS
    assert found.letter is None or found.reason is None
    extract_choices(reply, options)
    for read in (extract_number, extract_yesno, extract_short, extract_labels):
        read(reply)

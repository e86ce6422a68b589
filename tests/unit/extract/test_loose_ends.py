"""Replies that leave it between two, put a result to the proof, or end within a formula; capitals that are units."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.mentions import is_quantity
from snellen.extract.option_text import key_of
from snellen.extract.reply_text import normalise

STYLES = ["Gothic", "Romanesque", "Byzantine", "Baroque"]
GAS = ["Temperature", "Pressure", "Volume", "Number of moles"]
SPEEDS = [r"$\sqrt{\frac{2gh}{1+\frac{I}{mR^2}}}$", r"$\sqrt{2gh}$", r"$\sqrt{\frac{gh}{2}}$", r"$\sqrt{gh}$"]
FORCES = ["2.50 kN", "7.50 kN", "12.5 kN", "15.0 kN"]
CHARGES = ["1.6e-19 J", "3.2e-19 J", "4.0e-19 J", "8.0e-19 J"]
ACIDS = ["3.76", "4.16", "4.46", "4.76"]
ARCHES = (
    "The pointed arch suggests Gothic architecture, while the thick piers are more typical of Romanesque buildings. "
)
WORKING = "Taking moments about the left support, the reaction is $$B = 150/12 = 12.5\\ \\text{kN}$$\n\nNow the section is cut, "


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        (ARCHES + "It could be either a Gothic or a Romanesque church, and a clearer picture is needed.", STYLES),
        (ARCHES + "It's either Gothic or Romanesque.", STYLES),
        (
            "The temperature is constant. The container is sealed, so the number of moles does not change either. "
            "Therefore, both A and D remain constant during the process.",
            GAS,
        ),
        (
            "Pressure falls along the curve, so the volume rises with it in this diagram. Hence both (B) and (C) change.",
            GAS,
        ),
        (
            "Gothic is common in the north, but Baroque and Byzantine have to be excluded. Without a plan, it isn't possible "
            "to choose a single style from this image.",
            STYLES,
        ),
        (WORKING + "and the sum is\n\n$$\\sum M_G = 0: \\quad F \\cdot 4 + 12.5 \\cdot 6 - 10 \\cdot", FORCES),
        (WORKING + "and the sum is\n\n\\[F \\cdot 4 + 12.5 \\cdot 6 = 90", FORCES),
    ],
)
def test_what_is_left_open_chooses_nothing(reply: str, options: list[str]) -> None:
    found = extract_choice(reply, options)
    assert found.letter is None, found


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        (ARCHES + "It could be either a Gothic or a Romanesque church. The vault tells: it is Gothic.", STYLES, "A"),
        ("Churches here are Gothic or Romanesque. This one must be Romanesque.", STYLES, "B"),
        ("Since both the gas and the wall are at rest, the quantity that is constant is the temperature.", GAS, "A"),
        (WORKING + "and the sum is\n\n$$F = 12.5 \\cdot 6 / 10 = 7.50\\ \\text{kN}$$", FORCES, "B"),
        (
            "Energy is conserved:\n\n$$v = \\sqrt{\\dfrac{2gh}{1+\\dfrac{I}{mR^2}}}$$\n\nAs a check, for $I \\to 0$ this "
            "becomes the free-fall value $\\sqrt{2gh}$.",
            SPEEDS,
            "A",
        ),
        (
            "$$K = e V_0 = (1.6 \\times 10^{-19}\\ \\text{C})(5.0\\ \\text{V}) = 8.0 \\times 10^{-19}\\ \\text{J}$$\n\n"
            "So, the maximum kinetic energy is $8.0 \\times 10^{-19}$ J.",
            CHARGES,
            "D",
        ),
        (
            "Half of the acid has become its base, so [HA] = [A⁻], and the pH there is about 4.76.\n\n"
            "So the pKa of the acid is 4.76, **option D**.",
            ACIDS,
            "D",
        ),
    ],
)
def test_what_is_settled_all_the_same_is_read(reply: str, options: list[str], letter: str) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    "end", ["In the limit of long times the speed approaches $\\sqrt{2gh}$.", "So $v = \\sqrt{2gh}$."]
)
def test_what_is_asked_for_at_a_limit_is_read_and_a_check_that_agrees_takes_nothing_back(end: str) -> None:
    reply = "The two bodies fall side by side and neither is held by the string at all. " + end
    assert extract_choice(reply, SPEEDS).letter == "B"
    assert extract_choice(reply + " As a check, for small $m$ it becomes $\\sqrt{2gh}$.", SPEEDS).letter == "B"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (r"(1.6 \times 10^{-19}\ \text{C})(5)", True),
        (r"q = 3\,\text{C}", True),
        (r"\text{C}", False),
        (r"the answer is \text{C}", False),
        (r"step 2: \text{C}", False),
    ],
)
def test_a_capital_in_braces_after_a_number_is_a_unit(text: str, unit: bool) -> None:
    plain = normalise(text)
    at = plain.index("C")
    assert is_quantity(plain.lower(), at, at + 1) is unit


def test_fractions_of_every_size_are_one_fraction() -> None:
    assert key_of(r"\dfrac{I}{mR^2}") == key_of(r"\tfrac{I}{mR^2}") == key_of(r"\frac{I}{mR^2}")

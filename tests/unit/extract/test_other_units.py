"""Options said in other units and words than they are written in, and first sentences that call one the answer."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.numbers import base_unit

VOLUMES = ["0.45 L", "0.54 L", "0.63 L", "0.72 L"]
POWERS = ["0.036 MW", "0.36 kW", "3.6 W", "36 W", "3.6 kW", "36 kW"]
BIOMES = ["Tundra", "Taiga", "Desert", "Savanna"]
PAIRS = [
    "Statement 1 is true, Statement 2 is true",
    "Statement 1 is true, Statement 2 is false",
    "Statement 1 is false, Statement 2 is true",
    "Statement 1 is false, Statement 2 is false",
]
HEPATITIS = [
    "Hepatitis B, chronic infection",
    "Hepatitis A, acute infection",
    "Hepatitis B, resolved infection",
    "Hepatitis B, vaccinated",
]
PARTS = ["Resistor R", "Inductor L", "Capacitor C", "Diode D"]
PROJECTS = ["Project X", "Project Y", "Both projects", "Neither project"]


def check(reply: str, options: list[str], letter: str | None) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("TV = 0.54 L = 540 mL, the difference between the two.\n\nSo the tidal volume is 540 mL.", VOLUMES, "B"),
        ("The level rises by 450 cm³. The stone therefore has a volume of 450 cm³.", VOLUMES, "A"),
        ("So the volume is 630 ml.", VOLUMES, "C"),
        ("So the volume is 720 milliliters.", VOLUMES, "D"),
        ("So the mass is 630 g.", VOLUMES, None),
        ("ρ g Q H ≈ 2698 W.\n\nTherefore a motor of about 3600 W is needed.", POWERS, "E"),
        ("Therefore a motor of 36,000 W is needed.", POWERS, None),
        ("The gauge shows 0.2 MPa. So it is 0.2 MPa.", ["2 kPa", "20 kPa", "200 kPa"], "C"),
        ("So the speed is 20 meters per second.", ["45 km/h", "54 km/h", "72 km/h"], "C"),
        ("The density is therefore 2.7 g/cm³.", ["270 kg/m³", "2700 kg/m³", "27 kg/m³"], "B"),
        ("Hence the resistor has 4700 Ω.", ["4.7 Ω", "47 Ω", "4.7 kΩ"], "C"),
        ("So the area is 5 m².", ["5 m", "5 m²", "5 m³"], "B"),
        ("The area is therefore 500 cm².", ["5 m²", "0.05 m²", "0.5 m²"], "B"),
        ("The dose is therefore 0.25 g.", ["250 mg", "25 mg", "2.5 mg"], "A"),
        ("So the journey takes 150 minutes.", ["1.5 h", "2 h", "2.5 h"], "C"),
        ("So it is 3.2 m/s^2.", ["3.2 m/s²", "6.4 m/s²"], "A"),
        (
            "Because it was sold for less than its book value, the company records a loss of $1,400.",
            ["$3,200 loss", "$1,400 gain", "$2,600 gain", "$1,400 loss"],
            "D",
        ),
        ("So the loss is $2,600.", ["$3,200 loss", "$1,400 gain", "$2,600 gain", "$1,400 loss"], None),
        ("The difference is $1,400.", ["$3,200 loss", "$1,400 gain", "$2,600 gain", "$1,400 loss"], None),
    ],
)
def test_a_quantity_in_other_units(reply: str, options: list[str], letter: str | None) -> None:
    check(reply, options, letter)


@pytest.mark.parametrize(
    ("written", "base"),
    [
        *[("kW", ("W", 1e3)), ("mL", ("L", 1e-3)), ("cm³", ("L", 1e-3)), ("m^3", ("L", 1e3)), ("dL", ("L", 0.1))],
        *[("µm", ("m", 1e-6)), ("MΩ", ("Ω", 1e6)), ("GHz", ("Hz", 1e9)), ("hPa", ("Pa", 1e2)), ("kcal", ("cal", 1e3))],
        *[("kJ", ("J", 1e3)), ("mA", ("A", 1e-3)), ("mm²", ("m²", 1e-6)), ("kWh", ("J", 3.6e6)), ("bar", ("Pa", 1e5))],
        *[("ms", ("s", 1e-3)), ("km/h", ("m/s", 1000 / 3600)), ("kN/m²", ("Pa", 1e3)), ("rad/s", ("rad/s", 1.0))],
    ],
)
def test_units_of_one_dimension_share_a_base(written: str, base: tuple[str, float]) -> None:
    found = base_unit(written)
    assert found is not None
    assert (found[0], pytest.approx(found[1])) == base


@pytest.mark.parametrize("word", ["apples", "per", "is", "x", "Km", "MM"])
def test_a_word_that_is_no_unit(word: str) -> None:
    assert base_unit(word) is None


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("Savanna is the correct answer. A tundra would be colder, a taiga darker, a desert drier.", BIOMES, "D"),
        ("Taiga is the right choice here. In a desert nothing grows, and a tundra has no trees.", BIOMES, "B"),
        ("Desert is not the correct answer.", BIOMES, None),
        ("If savanna is the correct answer, then a tundra is not far away from a taiga.", BIOMES, None),
        ("Taiga is the correct answer in most books, but this could also be a tundra.", BIOMES, None),
        ("Taiga is the correct answer. Wait, no trees at all: this must be the tundra.", BIOMES, "A"),
        (
            "B. En effet, la directrice (d) est loin. Une ellipse est fermée.",
            ["Une ellipse", "Une parabole", "x", "y"],
            "B",
        ),
        ("B. This is open. A is wrong since it closes, and C is wrong too.", ["ellipse", "parabola", "circle"], "B"),
        ("B. is next to the parabola and C. next to the circle.", ["ellipse", "parabola", "circle"], None),
    ],
)
def test_a_first_sentence_that_answers(reply: str, options: list[str], letter: str | None) -> None:
    check(reply, options, letter)


HEPATITIS = [
    "Hepatitis B, chronic infection",
    "Hepatitis A, acute infection",
    "Hepatitis B, resolved infection",
    "Hepatitis B, vaccinated",
]
PARTS = ["Resistor R", "Inductor L", "Capacitor C", "Diode D"]
PROJECTS = ["Project X", "Project Y", "Both projects", "Neither project"]


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("If resolved (C) or vaccinated (D) it were gone. This is chronic hepatitis B infection.", HEPATITIS, "A"),
        ("Anti-HBc is positive. This is a hepatitis B infection.", HEPATITIS, None),
        ("A resistor has no memory. So the element X is the capacitor.", PARTS, "C"),
        ("So the element X is not the resistor.", PARTS, None),
        ("Both projects pay. Since X is worth more, the firm ought to go for Project X.", PROJECTS, "A"),
        ("Substituting gives y = 1 − 2x.", ["y = 2x + 1", "y = -2x + 1", "y = 2x - 1"], None),
        ("Both statements are about planar graphs.", PAIRS, None),
        ("Statement 1 is true, or Statement 1 is false.", PAIRS, None),
    ],
)
def test_an_option_by_its_words(reply: str, options: list[str], letter: str | None) -> None:
    check(reply, options, letter)

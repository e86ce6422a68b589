"""Quantities in other notations, units and scales, and what replies that end with one choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.extract import meant, valued
from snellen.extract.choice import extract_choice
from snellen.extract.numbers import find_measures, fitting_option, option_measures

FORCES = ["12.1 kN", "16.9 kN", "18.5 kN"]


@pytest.mark.parametrize(
    ("said", "options", "letter"),
    [
        ("Therefore the probability is 25%.", ["1/2", "1/3", "1/4"], "C"),
        ("**Final Answer: \\boxed{\\frac{1}{4}}**", ["0.5", "0.25", "0.75", "1"], "B"),
        ("We get a force of 16,900 N in member CD.", FORCES, "B"),
        ("λ = d·sin θ / m = 500 nm", ["5 × 10^-7 m", "5 × 10^-6 m"], "A"),
        ("λ = 5e-6 m.", ["5 × 10^-7 m", "5 × 10^-6 m"], "B"),
        ("n = 0.10 mol/L × 0.025 L = 2.5 × 10⁻³ mol", ["0.25 mol", "0.0025 mol", "0.025 mol"], "B"),
        ("∠AOB=90°，OC平分∠AOB，所以∠AOC=45度。", ["30°", "45°", "90°"], "B"),
        ("La réponse est 3 000 habitants.", ["3000", "300", "3"], "A"),
        ("The shares are 9.1% and 5.0%.\n\nWACC = 0.0546 + 0.0174 = 0.072", ["5.0%", "7.2%", "9.1%"], "B"),
    ],
)
def test_a_quantity_is_read_in_another_notation(said: str, options: list[str], letter: str) -> None:
    assert extract_choice(said, options).letter == letter


@pytest.mark.parametrize(
    "said", ["The ratio is 2:3, so EF =", "It is 16.9 m long.", "The force is 16.9 or 18.5, I am not told which."]
)
def test_what_is_no_result_chooses_nothing(said: str) -> None:
    assert extract_choice(said, FORCES).letter is None


@given(st.integers(1, 9_999), st.sampled_from([("m", "cm", 100), ("kN", "N", 1000), ("h", "min", 60)]))
def test_a_scaled_quantity_is_the_option_it_equals_and_no_other(number: int, units: tuple[str, str, int]) -> None:
    large, small, factor = units
    offered = option_measures([f"{number} {large}", f"{number + 1} {large}", f"{number * 7 + 3} {large}"])
    said = find_measures(f"= {number * factor} {small}")
    assert fitting_option(said[-1], offered) == 0


def test_texts_that_are_no_single_quantities_are_none() -> None:
    assert option_measures(["3 dogs and 2 cats", "4"]) == []
    assert option_measures(["Plan 3", "Plan 4"]) == []
    assert option_measures(["50 cm", "0.5 m"]) == [] or len(option_measures(["50 cm", "0.5 m"])) == 2


def test_the_rules_are_of_their_rooms() -> None:
    assert valued.final_value and meant.meant_text

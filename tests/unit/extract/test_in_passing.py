"""Options that are named in passing, verdicts on statements, and what takes both back."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice

COLOURS = ["Red", "Blue", "Green", "Yellow"]
TOOLS = ["a plate", "a bowl", "a cup", "a spoon"]
EMITS = ["Heat", "Light", "Sound", "All of the above"]
TRUTH = ["True", "False"]
METALS = ["Sodium", "Potassium", "Calcium", "Magnesium"]


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("A. a plate B. a bowl C. a cup D. a spoon", TOOLS, None),
        ("A. a plate B. a bowl C. a cup D. a spoon Answer: B", TOOLS, "B"),
        ("El paraguas es de color amarillo, aunque su abrigo es rojo.", ["Rojo", "Azul", "Amarillo"], "C"),
        ("While the background is blue, the ball itself is red.", COLOURS, "A"),
        ("When the light is red you stop; when it is green you go.", COLOURS, None),
        ("The flame is characteristic of sodium; potassium would burn lilac.", METALS, "A"),
        ("All of these options are plausible at first, but an iron only gives off heat.", EMITS, "A"),
        ("Whether the statement is correct depends on the units used.", TRUTH, None),
        ("Statement B is partly accurate.", COLOURS, None),
        ("The new design thereby reduces the costs.", ["Reduce the cost", "Improve the quality"], "A"),
        ("That's right, the arrow points left.", ["Left", "Right", "Up", "Down"], "A"),
    ],
)
def test_what_is_meant_is_read_and_what_is_named_is_not(reply: str, options: list[str], letter: str | None) -> None:
    assert extract_choice(reply, options).letter == letter

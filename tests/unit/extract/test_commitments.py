"""What outweighs what: commitments over working, labels over quantities, meaning over look."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.extract.choice import extract_choice
from snellen.extract.mentions import is_quantity, leads_on_as_quantity, quantities, spoken_as_label
from snellen.extract.option_text import key_of, own_end

AMPERES = ["1.20 A", "1.35 A", "1.50 A", "1.75 A", "1.975 A", "2.10 A", "2.25 A", "2.40 A", "1.975 mA", "3.0 A"]


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        # A label followed by its own text is never a negation.
        ("The answer is (B) no.", ["yes", "no"], "B"),
        ("Is the bridge longer than the road? B) No, it is not.", ["yes", "no"], "B"),
        ("The answer is A. not visible", ["not visible", "visible"], "A"),
        # … but may itself be denied.
        ("The answer is not (B) no.", ["yes", "no"], "A"),
        # A final labelled text outweighs the working.
        ("H(s) has a pole, I = 1.20 A, E = 3 V.\n\nThe option that fits is\n\n- **F. 2.10 A**", AMPERES, "F"),
        ("6I = 11.85 → I = 1.975 A\n\nmatching option \\( \\text{E}. \\, 1.975 \\text{ A} \\)", AMPERES, "E"),
        ("The meter shows \\( I)1.975 \\text{ mA} \\)", AMPERES, "I"),
        ("I = 5 A, so 1.35 A is lost.\n\n**F. 2.10**", AMPERES, "F"),
        # Labels glued to their texts.
        ("Had it run on there would be 16.\n\nAnswer: C12", ["8", "10", "12", "14", "16"], "C"),
        ("Year 1: $1,000.\n\nTotal: C-700,250", ["$1,000", "$2,000", "$700,250"], "C"),
        # Letters of formulas are no labels.
        ("The moment of inertia I is I = 0.5 kg.", [f"{i}.5 kg" for i in range(10)], "A"),
        # Two endorsed are none.
        ("Correct: **B. blue** and **C. green**", ["red", "blue", "green"], None),
        ("Options A. red and C. green are both correct.", ["red", "blue", "green"], None),
        # A refusal is not the option that says so.
        ("I can't determine what is shown, no image was attached.", ["yes", "no", "Cannot be determined"], None),
        ("From this angle it cannot be determined.", ["yes", "no", "Cannot be determined"], "C"),
        # Braces of LaTeX are no JSON.
        ("The {set} of letter: B is $\\frac{1}{2}$. The answer is C.", ["red", "blue", "green"], "C"),
        # Option texts made of letters.
        ("The answer is A and C.", ["A and B", "A and C"], "B"),
        ("The longest side is BC.", ["AB", "BC", "CD"], "B"),
        ("It is A OR B, clearly.", ["A XOR B", "A OR B"], "B"),
    ],
)
def test_what_is_meant(reply: str, options: list[str], letter: str | None) -> None:
    assert extract_choice(reply, options).letter == letter


NUMBERS = st.lists(st.integers(1, 9999), min_size=3, max_size=10, unique=True)
SHAPES = st.sampled_from(
    [
        "**{L}. {T}**",
        "{L}. {T}",
        "({L}) {T}",
        "\\[ \\text{{{L}. }} {T} \\]",
        "So the answer is:\n\n**{L}) {T}**",
        "{L} – {T}",
    ]
)


@given(NUMBERS, st.data(), SHAPES)
@settings(max_examples=150, deadline=None)
def test_a_last_line_with_label_and_text_is_the_answer_whatever_the_working(
    values: list[int], data: st.DataObject, shape: str
) -> None:
    options = [f"{value} kN" for value in values]
    at = data.draw(st.integers(0, len(values) - 1))
    named = data.draw(st.lists(st.sampled_from(values), max_size=5))
    working = "".join(f"F = {value} kN, I_A = {value} / 2, H(s) = {value}.\n" for value in named)
    reply = working + "\n" + shape.format(L="ABCDEFGHIJ"[at], T=options[at])
    assert extract_choice(reply, options).letter == "ABCDEFGHIJ"[at]


@given(st.text(min_size=1, max_size=40), st.text(max_size=10))
@settings(max_examples=200, deadline=None)
def test_a_text_is_found_where_it_stands(text: str, before: str) -> None:
    low, key = f"{before}|{text}".lower(), key_of(text)
    end = own_end(low, len(f"{before}|".lower()), key) if key else -1
    assert -1 <= end <= len(low)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("4.8 × 10⁻¹⁹ J", "4.8 \\times 10^{-19} \\, \\text{J}"),
        ("$1,200", "$1200"),
        ("(2.93, 3.59)", "\\( (2.93, \\; 3.59) \\)"),
        ("π/3", "\\pi/3"),
        ("9.6 kg·m²", "9.6 kg m^2"),
    ],
)
def test_one_text_in_other_clothes(text: str, written: str) -> None:
    from snellen.extract.reply_text import normalise

    assert own_end(normalise(written).lower(), 0, key_of(text)) > 0


def test_a_text_ends_where_a_longer_one_goes_on() -> None:
    assert own_end("120", 0, "12") == -1
    assert own_end("1.25", 0, "1") == -1
    assert own_end("12.", 0, "12") == 2


def test_capitals_of_formulas() -> None:
    assert quantities("H(s) = 1, V_A = 3, I = 2 and ∠C") >= {"H", "A", "I", "C"}
    assert quantities("The answer is B.") == frozenset()
    assert is_quantity("i = 5 a and", 6, 7)
    assert leads_on_as_quantity("i = 5", 1)
    assert not is_quantity("the answer is b.", 14, 15)
    assert spoken_as_label("so option c.", 10, 11)
    assert not spoken_as_label("the value c grows", 10, 11)

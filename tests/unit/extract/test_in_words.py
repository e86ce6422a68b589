"""Options that a reply does not name whole (`extract.rules.in_words`), and what must not be read from their parts."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice

PAINTERS = ["Vincent van Gogh", "Paul Gauguin", "Claude Monet", "Paul Cézanne"]
IMAGES = ["Real and inverted", "Virtual and upright", "Real and upright", "Virtual and inverted"]
RATES = ["k = 0.02 s⁻¹", "k = 0.05 s⁻¹", "k = 0.10 s⁻¹"]
STATEMENTS = ["Both statements are true", "Only statement 1 is true", "Neither statement is true"]
DECISIONS = ["The NPV is negative, reject", "The NPV is positive, accept", "The NPV is zero, indifferent"]


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("Since v < 0 it is virtual; m = +3, so it is upright.", IMAGES, "B"),
        ("So the NPV is zero and the investor is indifferent.", DECISIONS, "C"),
        ("Each of them can be verified in the chart. Both are true.", STATEMENTS, "A"),
        ("Statement 1 contradicts it and so does the other. Neither is true.", STATEMENTS, "C"),
        ("The rate constant comes out as 0.05 s⁻¹.", RATES, "B"),
    ],
)
def test_an_option_is_read_from_its_distinctive_words(reply: str, options: list[str], letter: str) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        ("I see 3, 48, 18 and 11.", ["3, 11, 18, 48", "0, 1", "0, 2"]),
        ("It could be Monet or Gauguin.", PAINTERS),
        ("It is certainly not by Monet.", PAINTERS),
        ("The image is neither virtual nor is it upright.", IMAGES),
        ("It would be virtual if the object stood upright.", IMAGES),
        ("The NPV may be zero or positive; an indifferent investor would accept.", DECISIONS),
        ("Paul painted it.", PAINTERS),
        ("Both of the claims are bold.", STATEMENTS),
        ("It is not so that both are true.", STATEMENTS),
    ],
)
def test_doubt_and_denial_choose_none(reply: str, options: list[str]) -> None:
    found = extract_choice(reply, options)
    assert found.letter is None, found


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Machu Picchu is located in Peru. Neighbouring Brazil and Chile have other sites.", "C"),
        ("Peru. The river runs through Brazil as well.", "C"),
        ("In Brazil it was 8, in Chile 12, in Peru 31. The maximum occurred in Peru.", "C"),
        ("I'd eliminate A (Portuguese), B (no Inca capital) and D. C it is.", "C"),
        ("I favour the Andes (C) over the coast (D).", "C"),
        ("A는 바다가 있어야 하므로 틀립니다. 산이 높으므로 C가 정답입니다.", "C"),
        ("It's tempting to say Brazil (A), but the Andes run further west: Peru.", "C"),
        ("The Andes point to Peru. Option A would only be right if there were a jungle.", "C"),
        ("Some lie in Brazil, some in Chile. Llamas live wild only in Peru.", "C"),
        ("Its capital gives = Peru. The next one would be Chile, but the question asks for the first.", "C"),
        ("Antwort C ist richtig. Antwort B scheidet aus, weil sie am Meer liegt.", "C"),
        ("Weder A noch B noch D passen zum Bild, übrig bleibt C.", "C"),
        ("我一开始认为是D,但仔细看应该选C。", "C"),
        ("Both A and C are true statements here: Peru and Brazil have rain forest.", None),
        ("Brazil: 8. Chile: 12. Peru: 31.", None),
        ("- **Brazil** – coast ✓\n- **Peru** – Andes ✓\n- **Chile** – desert ✗", None),
        ("Möglich sind B und C, eine eindeutige Entscheidung ist das nicht.", None),
    ],
)
def test_what_is_stated_outweighs_what_is_named_beside_it(reply: str, letter: str | None) -> None:
    found = extract_choice(reply, ["Brazil", "Argentina", "Peru", "Chile"])
    assert found.letter == letter, found


def test_the_sign_of_a_number_is_read_however_it_is_written() -> None:
    options = ["x = 2", "x = -2", "x = 3"]
    assert extract_choice("The parabola touches the axis there.\n\n**Answer:** x = −2", options).letter == "B"
    assert extract_choice("The formula is $\\mathrm{C_2H_6}$.", ["CH₄", "C₂H₆", "C₃H₈"]).letter == "B"
    derived = "The derivative of \\(x^2 + 1\\) is found term by term.\n\nThus, \\(f'(x) = 2x\\)."
    assert extract_choice(derived, ["\\(x^2+1\\)", "\\(2x\\)", "\\(2x+1\\)"]).letter == "B"


def test_options_that_differ_by_case_are_told_apart() -> None:
    genotypes = ["AA", "Aa", "aa"]
    assert extract_choice("A plant that breeds true is homozygous dominant, i.e. AA.", genotypes).letter == "A"
    assert extract_choice("Both parents are carriers, so each of them has Aa.", genotypes).letter == "B"
    assert extract_choice("The cross gives AA, Aa and aa.", genotypes).letter is None


def test_an_own_text_that_ends_in_a_denial_denies_nothing() -> None:
    assert (
        extract_choice("Since NPV < 0 it destroys value.\n\n**Decision:** reject (option A).", DECISIONS).letter == "A"
    )
    assert extract_choice("I reject (option A).", ["red", "blue", "green"]).letter is None

"""Words and signs around an option that make it another one, several ones, or none (`extract`): no wrong letter."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice

ANIMALS = ["a cat", "a dog", "a horse", "a cow"]
DEGREES = ["-8 °C", "-3 °C", "3 °C", "8 °C"]
GATES = ["A·B", "A + B", "A ⊕ B", "(A + B)'"]
SHARES = ["0,25", "0,5", "0,75", "1"]
SOLUTIONS = ["Solution A", "Solution B", "Solution C"]
CROSSED = ["Statement C", "Statement A", "Statement B"]
ELECTRONS = ["2 electrons", "4 electrons", "6 electrons", "8 electrons"]
PHASES = ["Sublimation", "Deposition", "Condensation", "Evaporation"]


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("Ответ: 1/2", SHARES, "B"),
        ("Answer: 1/2.", SHARES, "B"),
        ("Answer: 1", SHARES, "D"),
        ("Answer: 2×10^3", ["2", "20", "200", "2000"], "D"),
        ("Answer: 2^3", ["2", "3", "6", "9"], None),
        ("So the temperature is 8 degrees below zero.", DEGREES, "A"),
        ("It shows minus 8 °C.", DEGREES, "A"),
        ("It is negative 3 degrees.", DEGREES, "B"),
        ("Es sind 8 Grad unter null.", DEGREES, "A"),
        ("现在是零下 8 °C。", DEGREES, "A"),
        ("La température est de moins 8 °C.", DEGREES, "A"),
        ("Il fait au moins 8 °C.", DEGREES, "D"),
        ("The answer is 8 °C below zero.", DEGREES, "A"),
        ("It is 8 °C.", DEGREES, "D"),
        (
            "The atom has 2 electrons in the inner shell and 6 in the outer one, so the number of valence electrons is 6.",
            ELECTRONS,
            "C",
        ),
    ],
)
def test_a_number_goes_on_or_has_its_sign_in_words(reply: str, options: list[str], letter: str | None) -> None:
    assert extract_choice(reply, options).letter == letter


@pytest.mark.parametrize(
    "reply",
    [
        "The chord is 12 cm long. That does not match any of the options A–D, so there is a typo.",
        "All of A-D are too small for the length that was measured here.",
        "The values do not fit options (A) through (D).",
        "Keine der Antworten A bis D passt.",
        "选项A到D都不对",
        "Tanto B como C son correctas.",
        "Both B and C fit.",
        "Sowohl a dog als auch a horse passen.",
        "Aussi bien B que C conviennent.",
        "既是B也是C",
        "Как B, так и C подходят.",
        "Not only B but also C is correct.",
        "Nicht nur B, sondern auch C ist richtig.",
        "B as well as C is correct.",
        "B is correct only if the animal barks.",
        "The answer is B only if it barks.",
        "Answer: A–C",
        "Tanto la opción B (a dog) como la C (a horse) describen la figura.",
        "Let's consider each option:\n\nA. It is small and has whiskers. The picture has a distinct shadow, so",
        "Here is an overview:\n\nA. a cat – purrs.\nB. a dog – barks.\nC. a horse – neighs, as a horse does.\n"
        "D. a cow – moos.\n\nEach of these has its own voice.",
        'B – "a dog" can only be right if all others fail.',
    ],
)
def test_ranges_pairs_and_lists_choose_nothing(reply: str) -> None:
    assert extract_choice(reply, ANIMALS).letter is None


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("I change my answer from A to D.", ANIMALS, "D"),
        ("So A–C can be excluded; it is D.", ANIMALS, "D"),
        ("The best option:\nB. a dog", ANIMALS, "B"),
        ("Both the cat and the dog are brown, but here we look at something larger. So a horse.", ANIMALS, "C"),
        ("Solution B has more green particles (6) than Solution A (3). So, Solution B it is.", SOLUTIONS, "B"),
        ("The answer is Solution B.", SOLUTIONS, "B"),
        ("Solution: B", SOLUTIONS, "B"),
        ("The answer is Statement C.", CROSSED, "A"),
        (
            "Frost is the reverse of sublimation. There is no evidence of condensation on the pane, which is dry.\n\n"
            "Impression: deposition of water vapour.",
            PHASES,
            "B",
        ),
        ("Sin signos de cirrosis. Impresión: hemangioma.", ["Cirrosis", "Hemangioma", "Esteatosis"], "B"),
        ("Keine Anzeichen für Zirrhose. Befund: Hämangiom", ["Zirrhose", "Hämangiom", "Steatose"], "B"),
        ("无肝硬化，考虑血管瘤", ["肝硬化", "血管瘤", "脂肪肝"], "B"),
        (
            "Deposition. Frost forms when vapour turns directly into ice. Sublimation is the reverse process, "
            "condensation gives liquid droplets, and evaporation goes from liquid to gas.",
            PHASES,
            "B",
        ),
        (
            'BF₃ accepts a lone pair.\n\nC – "None of these" can only be right if all definitions fail.\n'
            "A – no H⁺ in water, so Arrhenius does not apply.\nB – electron-pair acceptor: applies.\n\nHence Lewis.",
            ["Arrhenius", "Lewis", "None of these"],
            "B",
        ),
    ],
)
def test_what_is_meant_beside_them_is_read(reply: str, options: list[str], letter: str) -> None:
    assert extract_choice(reply, options).letter == letter


def test_an_alternative_picked_at_the_end_outweighs_one_praised_under_a_condition() -> None:
    options = [f"Alternative {letter}" for letter in "ABCD"]
    reply = (
        "**Alternative A – build**: $26k\n**Alternative B – expand**: $61k\n**Alternative C – wait**: $53k\n\n"
        "A is the most attractive if demand happens to be high, and C has the best worst case. But under the criterion "
        "that the question asks for, the small plant with the option to expand later is best by a wide margin.\n\n"
        "So the firm should pick Alternative B with an expected value of $61k."
    )
    assert extract_choice(reply, options).letter == "B"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("A·B'", None),
        ("(A + B)'", "D"),
        ("Y = (A + B)'", "D"),
        ("The output is A·B'.", None),
        ("Y = 'A·B'", "A"),
        ("Y = A·B' + A'·B, which is the function A ⊕ B.", "C"),
    ],
)
def test_a_term_with_a_prime_is_another_term(reply: str, letter: str | None) -> None:
    assert extract_choice(reply, GATES).letter == letter


@pytest.mark.parametrize("reply", ["x' + y", "x + y'"])
def test_a_prime_within_a_term_makes_it_another_one(reply: str) -> None:
    assert extract_choice(reply, ["x + y", "x·y", "x"]).letter is None


@pytest.mark.parametrize("number", range(2, 10))
@pytest.mark.parametrize(
    "words", ["minus {}", "negative {}", "{} degrees below zero", "{} °C below freezing", "零下 {}"]
)
def test_less_than_nothing_is_never_read_as_more(number: int, words: str) -> None:
    options = [f"{-number}", f"{number}", f"{number + 10}"]
    assert extract_choice(f"The temperature is {words.format(number)}.", options).letter in {None, "A"}
    assert extract_choice(f"Answer: {words.format(number)}", options).letter in {None, "A"}


@pytest.mark.parametrize("sign", ["-", "–", " to ", " through ", ") through (", " bis "])
def test_a_range_of_all_labels_is_no_label(sign: str) -> None:
    for ends in ("AD", "(AD"):
        reply = (
            f"The length of 12 cm is in none of the options {ends[:-1]}{sign}{ends[-1]}{')' if '(' in sign else ''}."
        )
        assert extract_choice(reply, ANIMALS).letter is None, reply

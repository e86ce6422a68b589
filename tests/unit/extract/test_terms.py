"""Letters that are part of another option's text, of a way from point to point, or one of several endorsed."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.option_set import term_pattern

KEYS = ["C major", "F major", "G major", "D major"]
VITAMINS = ["Vitamin C", "Vitamin D", "Vitamin A", "Vitamin B12"]
CELLS = ["Cell B", "Cell C", "Cell A", "Cell D"]
FACTS = ["Iron is present", "The rod is magnetic", "The block floats", "The block is hollow"]


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("The key is C major.", KEYS, "A"),
        ("It ends on C, with the chord C–E–G, and has no F♯ and no C♯. The key is C major.", KEYS, "A"),
        ("The key signature has two flats, so the key is B flat.", ["B flat", "E flat", "A flat"], "A"),
        ("A lack of it leads to rickets. The vitamin is vitamin D.", VITAMINS, "B"),
        ("So it is cell B that is in metaphase.", CELLS, "A"),
        ("Cell B is in metaphase, cell A in prophase. The answer is B.", CELLS, "B"),
        ("Hence B.", CELLS, "B"),
        ("So it is cell B.", ["Cell A", "Cell B", "Cell C"], "B"),
        ("Clearly, the cell is B.", CELLS, "A"),
        ("The answer is C major.", KEYS, "A"),
        ("The answer is C.", KEYS, "C"),
        ("It is C that has a sharp.", KEYS, "C"),
    ],
)
def test_a_letter_within_the_text_of_another_option_is_no_label(
    reply: str, options: list[str], letter: str | None
) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


def test_terms_are_those_of_other_options_alone() -> None:
    marks = {"a": 0, "b": 1}
    assert term_pattern(["cell a", "cell b"], marks) is None
    assert term_pattern(["a is larger", "b is larger"], marks) is None
    crossed = term_pattern(["cell b", "cell a"], marks)
    assert crossed is not None
    assert [match.end() for match in crossed.finditer("cell b or cell a, the cell is a")] == [5, 15, 30]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Iron lines appear, so A is correct. The needle turns, so B is correct too.", None),
        ("A and C are both correct, since it floats.", None),
        ("Richtig sind die Aussagen B und D, denn die Nadel bewegt sich.", None),
        ("Les réponses B et D conviennent donc l'une comme l'autre.", None),
        ("Die Antworten A und C treffen zu.", None),
        ("Statements A and B are incorrect, C is not shown, so the correct statement is D.", "D"),
        ("A and C look right at first, but it hangs on a string. Only statement B is correct.", "B"),
    ],
)
def test_several_endorsed_are_none(reply: str, letter: str | None) -> None:
    found = extract_choice(reply, FACTS)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("For A → B → C as drawn:\n1. A → B is isochoric, W_AB = 0 J.\nThe work is W = W_AB + W_BC = 350 J.", "C"),
        ("For A -> B nothing is done. In B -> C it is 350 J of work.", "C"),
        ("Not A → B.", "B"),
        ("Rising, not falling → B", "B"),
    ],
)
def test_a_way_from_point_to_point_names_no_options(reply: str, letter: str) -> None:
    found = extract_choice(reply, ["100 J", "150 J", "350 J"])
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("正确选项为A。B和C都是U形曲线，D应当一直下降。", "A"),
        ("本题的选项是D。", "D"),
        ("Both A and C could explain it. Between A and C, the imaging clearly favors A.", "A"),
        ("Between A and C, the imaging favors neither.", None),
        ("The free air strongly favours B over A.", "B"),
    ],
)
def test_ties_and_favours(reply: str, letter: str | None) -> None:
    found = extract_choice(reply, ["边际成本", "平均成本", "可变成本", "固定成本"])
    assert found.letter == letter, found

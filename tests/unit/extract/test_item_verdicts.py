"""Lists and tables that go through the options with a verdict at the end of each item (`extract.rules.item_verdicts`)."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice

METALS = ["iron", "copper", "lead", "tin"]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        (
            "- iron: rusts, ruled out\n- copper: reddish as shown, matches\n- lead: grey, ruled out\n- tin: ruled out",
            "B",
        ),
        (
            "1. **Iron** – doesn't fit.\n2. **Copper** – doesn't fit.\n3. **Lead** – fits the weight.\n4. **Tin** – not dense.",
            "C",
        ),
        (
            "| metal | density | fits? |\n|---|---|---|\n| iron | 7.9 | No |\n| copper | 8.9 | No |\n| lead | 11 | No |\n| tin | 7.3 | Yes |",
            "D",
        ),
        (
            "(A) Iron rusts in water, so this is true.\n(B) Copper: false.\n(C) Lead floats, which is false.\n(D) Tin: false.",
            "A",
        ),
        ("A. iron：会生锈，不符合\nB. copper：红色，符合\nC. lead：太重，不符合\nD. tin：不符合", "B"),
        (
            "A) Iron: se oxida. Incorrecto.\nB) Copper: es rojizo. Correcto.\nC) Lead: incorrecto.\nD) Tin: incorrecto.",
            "B",
        ),
    ],
)
def test_the_only_item_called_right_is_read(reply: str, letter: str) -> None:
    found = extract_choice(reply, METALS)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    "reply",
    [
        "A. iron – true\nB. copper – true\nC. lead – false\nD. tin – false",
        "- iron: wrong\n- copper: wrong\n- lead: wrong\n- tin: wrong",
        "- iron: 7.9\n- copper: 8.9, correct\n- lead: 11.3\n- tin: 7.3",
        "- iron: correct\n- copper: incorrect\n- lead: incorrect\n- tin: incorrect\n\nOn second thoughts lead and tin both fit.",
    ],
)
def test_several_right_none_right_or_a_later_word_is_no_choice(reply: str) -> None:
    assert extract_choice(reply, METALS).rule != "item_verdicts"


def test_the_item_is_what_is_shown() -> None:
    reply = "- iron: wrong\n- copper: right\n- lead: wrong\n- tin: wrong"
    found = extract_choice(reply, METALS)
    assert (found.letter, found.rule) == ("B", "item_verdicts")
    assert found.span is not None
    assert "copper" in reply[slice(*found.span)]

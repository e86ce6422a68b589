"""What the last sentence settles (`extract.rules.closing`), what the first one answers, and labels counted in Arabic."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.reply_text import normalise

REPLIES = Path(__file__).resolve().parents[2] / "golden" / "data" / "extraction" / "replies-5.jsonl"
ROCKS = ["basalt", "granite", "marble", "slate"]
GONE_THROUGH = "Basalt is dark and fine-grained. Granite is speckled, and slate splits into sheets. "


@pytest.mark.parametrize(
    "reply",
    [
        GONE_THROUGH + "What was polished for this statue can only be called marble.",
        GONE_THROUGH + "The stone of the statue in the picture was formed from limestone and is marble.",
        "Basalt and marble are both named on the map. The quarry lies in the north, so the white stone on its walls is marble.",
        "玄武岩は黒い。 " * 4 + "basalt ではない。slate も違う。したがって、この白い岩石は marble です。",
    ],
)
def test_the_last_sentence_settles_it(reply: str) -> None:
    found = extract_choice(reply, ROCKS)
    assert found.letter == "C", found


@pytest.mark.parametrize(
    "reply",
    [
        GONE_THROUGH + "Marble is white.",
        GONE_THROUGH + "If the statue were newer, it would have been made of marble.",
        GONE_THROUGH + "So the choice is between these two, or it may be marble.",
        "A dark rock is basalt; a speckled one is granite; one in sheets is slate; and one of limestone is marble.",
    ],
)
def test_a_last_sentence_that_only_goes_on_settles_nothing(reply: str) -> None:
    assert extract_choice(reply, ROCKS).letter is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The stone looks most like granite. Basalt would be darker, slate splits, and marble is white.", "B"),
    ],
)
def test_what_is_answered_first_outweighs_the_others_told_after_it(reply: str, letter: str) -> None:
    assert extract_choice(reply, ROCKS).letter == letter


@pytest.mark.parametrize(
    "reply",
    [
        "Option A: basalt. This would be dark. Option B: granite. This",
        "A: basalt is dark. B: granite is not. C: marble",
    ],
)
def test_the_first_of_those_gone_through_is_not_the_answer(reply: str) -> None:
    assert extract_choice(reply, ROCKS).letter is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        *(("(ب)", "B"), ("ج) الرئة", "C"), ("الإجابة الصحيحة: أ", "A"), ("لذلك الاختيار الصحيح هو (د).", "D")),
        *(("إذن الإجابة الصحيحة هي ب: الكبد.", "B"), ("الإجابة: ج", "C")),
    ],
)
def test_labels_are_counted_in_arabic(reply: str, letter: str) -> None:
    assert extract_choice(reply, ["القلب", "الكبد", "الرئة", "المعدة"]).letter == letter


def test_arabic_letters_that_may_be_something_else_are_left() -> None:
    assert normalise("النقطة ب تقع على المستقيم") == "النقطة ب تقع على المستقيم"
    assert normalise("ت) القلب\nب) الكبد") == "ت) القلب\nب) الكبد"
    assert extract_choice("ب", ["ب", "أ", "ج", "د"]).letter == "A"


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("So 50%", ["0.5", "5", "50", "500"], None),
        ("So 50%", ["5", "50", "500"], "B"),
        ("The ratio is 3/4 of the bar, and the other bar is 5.", ["2", "3", "4", "5"], None),
        ("The angle was taken for 108°. Hold on: it measures 120 degrees, not 108.", ["108°", "120°", "135°"], "B"),
        ("So the speed is \\boxed{20\\ \\text{m/s}}.", ["45 km/h", "54 km/h", "72 km/h"], "C"),
        ("Here F = qvB = 9.6 N. It points out of the page.", ["3.2 N", "6.4 N", "9.6 N"], "C"),
        (
            "Верный вариант — C. Для рококо (A) типичны завитки, для готики (B) — арки.",
            ["Рококо", "Готика", "Ампир"],
            "C",
        ),
    ],
)
def test_values_and_ties_that_were_misread(reply: str, options: list[str], letter: str | None) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("①正确；②中图像应下降，错误；③正确。所以正确的有①③。", "B"),
        ("综上，正确的结论是①、③。", "B"),
        ("综上，正确的结论是①②③。", "D"),
        ("①②③④都正确。", None),
    ],
)
def test_statements_counted_in_circles_are_a_text(reply: str, letter: str | None) -> None:
    assert extract_choice(reply, ["①②", "①③", "②③", "①②③"]).letter == letter


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("The appeal here is mostly to ethos.", ["ethos (character)", "pathos (emotion)", "logos (reason)"], "A"),
        ("Значит, на снимке лист клёна.", ["Берёза", "Дуб", "Клён", "Липа"], "C"),
        ("So in the end the volume of the gas rises.", ["The volume increases", "The volume decreases"], "A"),
        ("It dries up without boiling, so the water evaporates.", ["Melt", "Evaporate", "Freeze"], "B"),
        ("The child should be referred for surgery.", ["Start antibiotics", "Refer for surgery"], "B"),
        ("The circumference is $C = 2\\pi r = 16\\pi$ cm.", ["$4\\pi$", "$8\\pi$", "$12\\pi$", "$16\\pi$"], "D"),
        (
            "Inelastic. An elastic demand would react more, a unit elastic one by as much.",
            ["Inelastic", "Elastic", "Unit elastic"],
            "A",
        ),
        ("At higher altitude the volume of the gas shrinks.", ["The volume increases", "The volume decreases"], "B"),
        (
            "It is there to warn visitors that the floor may well be slippery and wet.",
            ["To warn people about wet floors", "To advertise a cleaning product"],
            None,
        ),
        (
            "Thus the price of coffee rises and its quantity",
            ["coffee price rises and quantity rises", "coffee price rises and quantity falls"],
            None,
        ),
    ],
)
def test_options_said_in_other_words(reply: str, options: list[str], letter: str | None) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found

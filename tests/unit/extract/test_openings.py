"""What stands at the edges of a reply: an answer first and the others after it, courtesies, tags, loops; and signs."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.reply_text import normalise, without_courtesy

PLANETS = ["Mercury", "Venus", "Mars", "Jupiter"]
HEAT = ["Conduction", "Convection", "Radiation", "Evaporation"]
CELSIUS = ["-8 °C", "3 °C", "8 °C", "12 °C"]
FAHRENHEIT = ["-8 °F", "24 °F", "8 °F", "40 °F"]
PRESSURES = ["1.2 × 10⁴ Pa", "1.2 × 10⁵ Pa", "1.2 × 10⁶ Pa"]
METRES = ["250 m", "750 m", "1500 m", "2250 m"]
SIDES = ["9.6 cm", "10.4 cm", "11.2 cm", "12.0 cm"]
IMAGES = ["real, inverted, smaller", "real, inverted, larger", "virtual, upright, smaller", "virtual, upright, larger"]


@pytest.mark.parametrize(
    "reply",
    [
        "Use the law of cosines, c² = a² + b² − 2ab·cos(C), insert the two known sides, and take the square root.",
        "The ratio follows from sin(A), as the angle at the lower corner is given in the figure. Insert the values.",
        "Take log(B) on both sides, then solve for the side that is not known. The calculator gives the rest.",
    ],
)
def test_the_argument_of_a_function_is_no_label(reply: str) -> None:
    assert extract_choice(reply, SIDES).letter is None


@pytest.mark.parametrize(
    "reply",
    [
        "Sowohl A als auch B sind richtig, denn beide umkreisen die Sonne innerhalb der Erdbahn.",
        *("Tanto A como B son correctas.", "Sia A che B sono corrette.", "Zowel A als B zijn juist."),
        *("Zarówno A, jak i B są poprawne.", "Aussi bien A que B sont correctes.", "كل من A و B صحيحان."),
        *("Both A and B are correct.", "A as well as B is correct.", "A和B都正确。", "A와 B 모두 정답입니다."),
    ],
)
def test_two_labels_endorsed_together_choose_none(reply: str) -> None:
    assert extract_choice(reply, PLANETS).letter is None


def test_words_are_whole_in_scripts_that_set_vowels_at_letters() -> None:
    options = ["निमोनिया", "तपेदिक", "फेफड़ों का कैंसर", "सामान्य"]
    refused = "मुझे खेद है, लेकिन मैं इस एक्स-रे के आधार पर चिकित्सा निदान नहीं दे सकता। कृपया किसी योग्य डॉक्टर से परामर्श लें।"
    assert extract_choice(refused, options).reason == "refused"
    assert extract_choice("इस एक्स-रे के आधार पर मरीज़ को तुरंत अस्पताल ले जाना चाहिए।", options).letter is None


def test_working_that_goes_on_behind_an_option_and_stops_is_no_answer() -> None:
    reply = (
        "لإيجاد طول الضلع المجهول نستخدم نظرية فيثاغورس لأن المثلث في الشكل قائم الزاوية.\n\nالوتر = ١٠ سم، وأحد الضلعين معطى. "
        "إذن:\n\nمربع الضلع المجهول = مربع الوتر − مربع الضلع المعلوم\n\nوبالتعويض"
    )
    assert extract_choice(reply, ["٤ سم", "٦ سم", "٨ سم", "١٠ سم"]).letter is None


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        *((f"It dropped to 8 below{end}", CELSIUS, "A") for end in ("", ".", ", they say.")),
        ("The thermometer shows 8 degrees below.", CELSIUS, "A"),
        ("It was 8 degrees below freezing.", CELSIUS, "A"),
        ("The mark is 8 cm below the rim.", ["3 cm", "8 cm"], "B"),
        ("It was 8 degrees below freezing.", FAHRENHEIT, None),
        ("It was 8 degrees above freezing.", FAHRENHEIT, None),
        ("It was 8 degrees below freezing, so 24 °F.", FAHRENHEIT, "B"),
    ],
)
def test_degrees_below_nothing_are_less_and_freezing_is_zero_in_celsius_alone(
    reply: str, options: list[str], letter: str | None
) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        *(("Ответ: Б", "B"), ("**Ответ: Г**", "D"), ("Правильный ответ — Б.", "B"), ("Б", "B")),
        *(("Правильный вариант Б.", "B"), ("Ответ: В", "B"), ("Ответ: А", "A"), ("Точка Г лежит на прямой.", None)),
    ],
)
def test_labels_are_counted_in_cyrillic(reply: str, letter: str | None) -> None:
    assert extract_choice(reply, ["окислитель", "восстановитель", "катализатор", "ингибитор"]).letter == letter


def test_beside_a_letter_that_only_cyrillic_has_the_third_is_the_third() -> None:
    assert normalise("Не вариант Б, ответ: В") == "Не вариант B, ответ: C"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("<REASONING>\nVenus is brighter.\n</REASONING>\n\n<CONCLUSION>\nC\n</CONCLUSION>", "C"),
        ("<CONCLUSION>The answer is C.</CONCLUSION>", "C"),
        ("<SUMMARY>planets</SUMMARY><CONCLUSION> The planet is Mars. </CONCLUSION>", "C"),
        ("The answer is Mars. The answer is Mars. The answer is Mars. The answer is", "C"),
        ("I looked at it for long. The answer is", None),
        ("The true statement is Mars, as the colour of its light shows.", "C"),
        ("The point is **B. Venus**. It is the light spot between the two trees on the left of the picture.", "B"),
        ("It is B. Venus or C. Mars, I am torn between the two and go no further.", None),
    ],
)
def test_tags_loops_and_pairs_of_things(reply: str, letter: str | None) -> None:
    found = extract_choice(reply, PLANETS)
    assert found.letter == letter, found


def test_what_is_said_last_to_be_polite_is_left_out() -> None:
    reply = "Counting from the sun, I see Mercury, Venus, Mars and Jupiter. The third of them corresponds to Mars."
    for end in (
        "\n\n(Please note that this is not advice.)",
        " Let me know if you want to hear of Venus!",
        " Hope this helps!",
    ):
        assert extract_choice(reply + end, PLANETS).letter == "C"
        assert without_courtesy(reply + end) == reply
    assert without_courtesy(reply) == reply
    kept = reply + " I hope this shows it: the answer is Mars."
    assert without_courtesy(kept) == kept


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        (
            "**D. Jupiter**\n\n**Why:** it is large.\n\n- A. Mercury is small.\n- B. Venus has no moons.\n- C. Mars is red.",
            PLANETS,
            "D",
        ),
        ("A. Mercury\n\nIt is small.\n\nB. Venus\n\nC. Mars\n\nD. Jupiter is large.", PLANETS, None),
        (
            "Conduction is the opposite of what is meant. Convection moves a liquid. Radiation needs no matter at all.",
            HEAT,
            None,
        ),
    ],
)
def test_what_opens_a_reply_outweighs_the_others_told_after_it(
    reply: str, options: list[str], letter: str | None
) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        (
            "P = 100,000 + 20,000 = 120,000 Pa\n\nSo the pressure at that point is 120 kPa, or 120,000 Pa.",
            PRESSURES,
            "B",
        ),
        ("So the pressure at that point is 12 kPa, or 120,000 Pa.", PRESSURES, None),
        ("1 cm = 250 m.\n\n6 × 250 m = 1.5 km\n\nThe lookout is 1.5 km away from the campsite.", METRES, "C"),
        ("1 cm = 250 m.\n\n6 × 250 m = 1.5 km\n\nThe lookout is not 1.5 km away from the campsite.", METRES, None),
        ("The image lies behind the lens. So the image is virtual, upright and larger than the object.", IMAGES, "D"),
    ],
)
def test_one_result_said_twice_and_what_it_is_compared_with(reply: str, options: list[str], letter: str | None) -> None:
    found = extract_choice(reply, options)
    assert found.letter == letter, found

"""Yes/no, numbers, several options and short answers; thinking blocks; normalising."""

from __future__ import annotations

import pytest

from snellen.extract.choice import chosen_text
from snellen.extract.numbers import find_numbers, parse_number
from snellen.extract.other_kinds import extract_choices, extract_number, extract_short, extract_yesno
from snellen.extract.reply_text import answer_start, normalise

COLOURS = {"A": "red", "B": "blue", "C": "green", "D": "yellow"}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", "yes"),
        ("no.", "no"),
        ("Yes, there is no dog.", "yes"),
        ("**No**, I notice nothing.", "no"),
        ("The answer is yes.", "yes"),
        ("I looked twice. Answer: No", "no"),
        ("true", "yes"),
        ("False.", "no"),
        ("不是", "no"),
        ("是的，有一只狗。", "yes"),
        ("はい", "yes"),
        ("Oui", "yes"),
        ("<think>no no no</think>Yes", "yes"),
        ("Yes and no", None),
        ("There is no doubt that it rains.", None),
        ("Perhaps", None),
        ("", None),
        ("Not true.", "no"),
        ("I would say no", "no"),
        ("No, wait. The answer is yes", "yes"),
        ("Yes... wait, no.", "no"),
        ("The answer is no. Actually, yes, there is one.", "yes"),
        ("The answer is not yes.", None),
        ("I would not say yes.", None),
        ("I wouldn't say no", None),
        ("That is not false.", None),
        ("That isn't true.", "no"),
        ("\\boxed{\\text{No}}", "no"),
        ("Is it there? <answer>yes</answer>", "yes"),
        ("Yes.\n\nThere is no dog; wait, there is.", "yes"),
    ],
)
def test_yesno(text: str, answer: str | None) -> None:
    found = extract_yesno(text)
    assert found.letter == answer
    assert (found.reason is None) == (answer is not None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42.0),
        ("The answer is 1,234,567.", 1234567.0),
        ("$1,200.50", 1200.5),
        ("about 3.5 million people", 3.5e6),
        ("twenty-one", 21.0),
        ("two hundred and five", 205.0),
        ("-7 degrees", -7.0),
        ("3/4", 0.75),
        ("5 %", 5.0),
        ("2 x 10^3", 2000.0),
        ("1.5e3", 1500.0),
        ("12 345", 12345.0),
        ("3 + 4 = 7", 7.0),
        ("There are 3 rows of 5. Answer: 15 apples", 15.0),
        ("\\boxed{12} of 40", 12.0),
        ("½", 0.5),
        ("none", None),
        ("€3,50", 3.5),
        ("<think>9</think>8", 8.0),
    ],
)
def test_number(text: str, value: float | None) -> None:
    found = extract_number(text)
    assert found.value == value, found


def test_number_keeps_percent_apart_and_abstains_when_cut() -> None:
    assert extract_number("5 %").percent
    assert not extract_number("5").percent
    assert extract_number("First 3, then 4 and", finish="length").reason == "truncated"
    assert extract_number("I cannot tell.").reason == "refused"


def test_numbers_in_order_with_places() -> None:
    assert [(n.value, n.start) for n in find_numbers("3 cats, four dogs and 1,000 birds")] == [
        (3.0, 0),
        (4.0, 8),
        (1000.0, 22),
    ]
    assert parse_number("3 of 4") is None


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("A, C", "AC"),
        ("ACD", "ACD"),
        ("The correct options are A and B.", "AB"),
        ("Answer: B, D", "BD"),
        ("B", "B"),
        ('{"answer": ["A", "D"]}', "AD"),
        ("A and C, but not D", "AC"),
        ("red and green", "AC"),
        ("I can't see the image.", ""),
        ("<answer>A, B</answer>", "AB"),
        ("BB", ""),
    ],
)
def test_choices(text: str, letters: str) -> None:
    found = extract_choices(text, COLOURS)
    assert found.letters == frozenset(letters)
    assert (found.reason is None) == bool(letters)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris.", "Paris"),
        ("The answer is: **Paris**", "Paris"),
        ("It is a red car.", "a red car"),
        ("\\boxed{\\text{STOP}}", "STOP"),
        ("<answer>New York</answer>", "New York"),
        ("<think>Rome?</think> Oslo", "Oslo"),
        ("Answer: 42\nBecause I counted.", "42"),
        ("<think>never ends", ""),
    ],
)
def test_short(text: str, answer: str) -> None:
    assert extract_short(text) == answer


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("B", "B"),
        ("<think>x</think>B", "B"),
        ("x</thinking>B", "B"),
        ("<think>x", None),
        ("<think>a</think><think>b", None),
        ("◁think▷x◁/think▷B", "B"),
        ("[THINK]x[/THINK]B", "B"),
        ("<|channel|>analysis<|message|>x", None),
        ("<|channel|>final<|message|>B", "B"),
        ("<|START_THINKING|>x<|END_THINKING|>B", "B"),
        ("Thinking...\nx\n...done thinking.\nB", "\nB"),
        ("I think <b>B</b>", "I think <b>B</b>"),
        ("<seed:think>x</seed:think>B", "B"),
    ],
)
def test_answer_start(text: str, rest: str | None) -> None:
    start = answer_start(text)
    assert (None if start is None else text[start:]) == rest


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Ｂ", "B"),
        ("Ⓑ", "B"),
        ("𝐁", "B"),
        ("🅱", "B"),
        ("⒝", "b"),
        ("А", "A"),
        ("В лесу", "В лесу"),
        ("\\text{C}", "      C "),
        ("<b>C</b>", "   C    "),
        ("~~A~~ B", "      B"),
        ("a\r\nb", "a\n\nb"),
        ("İ", "I"),
    ],
)
def test_normalise(text: str, plain: str) -> None:
    assert normalise(text) == plain


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("(B)", "dog"), ("dog", "dog"), ("Dog.", "dog"), ("The answer is (b) dog", "dog"), ("B. dog", "dog"), ("B", "dog"),
        ("[C]", "cow"), ("（C）", "cow"), ("(Z) q", "(Z) q"), ("", ""), ("who knows", "who knows"),
    ],
)  # fmt: skip
def test_which_option_a_reply_chose(reply: str, chosen: str) -> None:
    assert chosen_text(reply, ("A", "B", "C"), ("cat", "dog", "cow")) == chosen
    assert chosen_text(reply, (), ("cat", "dog", "cow")) == chosen


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("Not (A). The answer is C.", "cow"),
        ("It looks like (A), but it must be (B).", "dog"),
        ("<think>(A)?</think>C", "cow"),
        ("a cat(s)", "cat"),
        ("I cannot see whether it is (A) or (B).", "I cannot see whether it is (A) or (B)."),
    ],
)
def test_the_first_mark_in_brackets_is_not_the_choice(reply: str, chosen: str) -> None:
    assert chosen_text(reply, ("A", "B", "C"), ("cat", "dog", "cow")) == chosen


def test_a_reply_without_options_stays_as_it_is() -> None:
    assert chosen_text(" (A) red ", (), ()) == " (A) red "
    assert chosen_text("Looking at A we see", (), ("cat", "dog"), "length") == "Looking at A we see"

"""Yes or no without options (`extract.rules.yes_or_no`): in fields, set off, in other words, in many languages, taken back."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice
from snellen.extract.other_kinds import extract_yesno

YES = [
    "\\boxed{Yes}",
    "<think>no?</think><answer>Yes, there is.</answer>",
    "It's a yes.",
    "My answer is Yes, since the dog is visible.",
    "The statement is true.",
    "This is true.",
    'There is a cat, so the answer is "Yes".',
    "Based on the picture, yes, the man is wearing glasses.",
    "**Answer:** Yes",
    "Reasoning: No cars are visible in the left lane. Yes, the road is free.",
    "Correct, both are the same.",
    "I'd say yes, it's open.",
    "Sim, o cachorro está na foto.",
    "Tak, jest pies.",
    "Ya, ada anjing.",
    "Sì, c'è un cane.",
    "Đúng, có một con chó.",
    "Đúng vậy.",
    "有，图中有一只狗。",
    "对，两者相同。",
    "答案是：是",
    "はい",
    "네.",
    "맞습니다.",
    "بله",
    "כן",
    "ใช่",
    "Evet.",
    "जी हाँ, कुत्ता है।",
    "Definitely.",
    "Of course, the sign says open.",
    "It does.",
    "They are.",
    "Yes, there are no dogs.",
    "The claim is clearly true: both lines rise.",
    "Looking at the chart, yes. It rises.",
    "Thinking about it: at first no, but the tail shows it. Final answer: yes.",
    "Yes, no doubt.",
    "存在，图中有一只狗。",
]
NO = [
    "So the result: \\boxed{\\text{No}}",
    "<answer>no</answer>",
    "Answer: yes. Wait, actually no, it is a cat.",
    "Yes... wait, no. There is no dog here.",
    "No. Yes would require a collar.",
    "No, it is not true that yes is right.",
    "The dog isn't in the picture, so my answer is no.",
    "The statement is false.",
    "This is false.",
    "That is not correct.",
    "Based on the image, no, the man is not wearing glasses.",
    "Wrong. They differ.",
    "I would say no.",
    "I think the answer should be no because the light is red.",
    "Não.",
    "Nee, er is geen hond.",
    "Nie, nie ma psa.",
    "Tidak, tidak ada anjing.",
    "No, non c'è un cane.",
    "Không, không có con chó nào.",
    "没有，图中没有狗。",
    "不，两者不同。",
    "不正确。",
    "答案：否",
    "いいえ。",
    "いや、違います。",
    "아니요.",
    "아닙니다.",
    "خیر",
    "לא",
    "ไม่ใช่",
    "नहीं, कुत्ता नहीं है।",
    "Definitely not.",
    "Of course not, the sign says stop.",
    "It isn't.",
    "It does not.",
    "They aren't.",
    "Nope, nothing like that.",
    "Certainly, no.",
    "Indeed, no dog is visible.",
    "The claim is not correct, as the line falls.",
    "The user asks about a dog. I see a cat. No, there is no dog.",
    '{"answer": "no", "reason": "yes would need a dog"}',
    "It was yes at first glance, but looking again, no.",
    "不存在。",
    "Yes? No.",
    "I see no dog. So: no",
]
NEITHER = [
    "Yes and no.",
    "Yes/No",
    "The answer could be yes or no.",
    "I can't say yes or no.",
    "No image was provided.",
    "No problem! Please send me the picture.",
    "True or false cannot be determined.",
    "It depends.",
    "Certainly! Here's a description of the picture: a dog and a cat.",
    "Absolutely, I'd be happy to help. Please upload the image.",
    "Not sure.",
    "Not enough information.",
    "Indeed a nice picture.",
    "It is, in fact, a cat.",
    "Of course, I can't tell from here.",
    "Neither yes nor no.",
    "No. 5 is the number of the house.",
    "Si observamos la imagen, vemos un gato.",
    "对比两个圆，左边的更大。",
    "是否有狗？需要看图。",
    "No se puede determinar.",
    "Não é possível determinar.",
    "Certainly! The image shows a park with trees.",
    "The spelling of the left word is correct.",
    "That is unclear.",
    "Right now the light is green.",
    "Yes if it is a dog, no if it is a wolf.",
]


@pytest.mark.parametrize("reply", YES)
def test_yes(reply: str) -> None:
    assert extract_yesno(reply).letter == "yes"


@pytest.mark.parametrize("reply", NO)
def test_no(reply: str) -> None:
    assert extract_yesno(reply).letter == "no"


@pytest.mark.parametrize("reply", NEITHER)
def test_neither_is_said(reply: str) -> None:
    assert extract_yesno(reply).letter is None


@pytest.mark.parametrize("reply", ["Not really.", "Not at all, it is a cat.", "Unfortunately not.", "No, wait: no."])
def test_options_that_are_yes_and_no_are_read_by_the_same_words(reply: str) -> None:
    assert extract_choice(reply, ["Yes", "No"]).letter == "B"


def test_the_place_of_the_word_is_told() -> None:
    found = extract_yesno("<think>no</think>So the result is \\boxed{Yes}.")
    assert found.span is not None
    assert "<think>no</think>So the result is \\boxed{Yes}."[slice(*found.span)] == "Yes"

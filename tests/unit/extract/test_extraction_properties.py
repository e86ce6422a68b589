"""What must hold for every reply: no crash, only offered letters, always a reason, no dependence on option order, linear time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.extract.choice import RULES, extract_choice, read
from snellen.extract.extraction import REASONS
from snellen.extract.option_set import Reply, option_set
from snellen.extract.other_kinds import extract_choices, extract_number, extract_short, extract_yesno
from snellen.extract.reply_text import normalise

OPTIONS = {"A": "a cat", "B": "a dog", "C": "a rabbit", "D": "none of the above"}
PIECES = st.sampled_from(
    [
        "A",
        "B",
        "(C)",
        "d",
        "The answer is ",
        "not ",
        "or ",
        ". ",
        "\n",
        "Wait, ",
        "a dog",
        "答案是",
        "<think>",
        "</think>",
        "\\boxed{",
        "}",
        '{"answer": "',
        '"',
        "**",
        "Ｂ",
        "sorry ",
        "option ",
        ", ",
        "?",
        "1,200",
        "A. ",
        "В",
    ]
)
REPLIES = st.one_of(st.text(), st.lists(PIECES, max_size=25).map("".join))


@given(REPLIES, st.sampled_from([None, "stop", "length"]))
@settings(max_examples=400, deadline=None)
def test_letter_is_offered_and_none_has_a_reason(response: str, finish: str | None) -> None:
    found = extract_choice(response, OPTIONS, finish=finish)
    assert found.letter is None or found.letter in OPTIONS
    assert (found.letter is None) == (found.reason is not None)
    assert found.reason is None or found.reason in REASONS
    if found.span is not None:
        assert 0 <= found.span[0] <= found.span[1] <= len(response)


@given(REPLIES)
@settings(max_examples=200, deadline=None)
def test_closed_thinking_before_changes_nothing(response: str) -> None:
    plain = extract_choice(response, OPTIONS)
    block = "<think>Is it A? It must be B. Answer: C</think>"
    thought = extract_choice(block + response, OPTIONS)
    if plain.rule == "thinking" or "think" in response.lower():
        return
    assert (thought.letter, thought.reason) == (plain.letter, plain.reason)
    if plain.span is not None and thought.span is not None:
        assert thought.span == (plain.span[0] + len(block), plain.span[1] + len(block))


@given(
    st.permutations(["a cat", "a dog", "a rabbit", "a horse"]),
    st.sampled_from(["a cat", "a dog", "a rabbit", "a horse"]),
    st.integers(0, 4),
)
@settings(max_examples=100, deadline=None)
def test_shuffling_options_moves_the_letter_with_the_text(order: list[str], text: str, shape: int) -> None:
    letter = "ABCD"[order.index(text)]
    reply = [
        text,
        f"It is {text}.",
        f"The answer is {letter}.",
        f"({letter}) {text}",
        f"I choose {letter}, since it shows {text}.",
    ][shape]
    assert extract_choice(reply, order).letter == letter


@given(REPLIES)
@settings(max_examples=200, deadline=None)
def test_normalising_keeps_positions(response: str) -> None:
    assert len(normalise(response)) == len(response)
    assert len(normalise(response).lower()) == len(response)


@given(REPLIES)
@settings(max_examples=150, deadline=None)
def test_other_readers_never_crash(response: str) -> None:
    assert extract_yesno(response).letter in {None, "yes", "no"}
    number = extract_number(response)
    assert (number.value is None) == (number.reason is not None)
    chosen = extract_choices(response, OPTIONS)
    assert chosen.letters <= set(OPTIONS)
    assert bool(chosen.letters) != (chosen.reason is not None)
    assert isinstance(extract_short(response), str)


UNITS = [
    "the answer is ",
    "A or B, ",
    "A ",
    "(",
    "(A)",
    "answer",
    "<think>",
    "\\boxed{",
    "{",
    '"answer": ',
    "not ",
    " ",
    "\n",
    "A\n",
    "**",
    "is ",
    "1,",
    "one hundred ",
    "a dog ",
    "wait, ",
    "选",
    "答案是",
    "A. x\n",
    "cannot be ",
    "~~",
    "<b ",
    "'answer': '",
    "the answer is not A, ",
    "option ",
    "none of the ",
    "e",
    "А ",
    "Ａ",
    "1.1.",
    "x 10^",
    "either ",
    "sorry, i ",
    "<answer>",
    "no, ",
    "it's ",
    "not a dog, ",
    ") ",
    "\\text{",
    "第",
    "first option ",
    "- A\n",
    '"',
    "'",
    "yes no ",
    "answer is: ",
    "\\frac{1",
    "^\\circ ",
    "&lt;",
    "let me consider each option ",
    "[ ] A\n",
    "there is no ",
    "it is a dog but ",
    "B is also ",
    "A -> ",
    "ответом ",
    "A = ",
    "H(s) ",
    "**B. a dog** ",
    "B. a dog and ",
    "\\times ",
    "if a, the answer is B; ",
    "V_A + ",
    "3 A ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    text = (unit * (50_000 // len(unit) + 1))[:50_000]
    reply, options = Reply(normalise(text)), option_set(OPTIONS)
    readers = [
        lambda: read(options, text),
        lambda: extract_yesno(text),
        lambda: extract_number(text),
        lambda: extract_choices(text, OPTIONS),
        lambda: extract_short(text),
    ]
    for call in itertools.chain(readers, [lambda rule=rule: rule(options, reply) for _, rule in RULES]):
        assert any(_seconds(call) <= LINEAR_S for _ in range(3))  # a busy machine may slow one call


SIGNS = {"A": "< 5", "B": "= 5 °C", "C": "x = 1", "D": "50 % of all"}


@pytest.mark.parametrize("unit", [" ", "= ", "x ", "5 ", "< ", "\t", "5 ° ", "50 % "])
def test_options_with_signs_take_linear_time(unit: str) -> None:
    text = (unit * (50_000 // len(unit) + 1))[:50_000]
    options = option_set(SIGNS)
    assert min(_seconds(lambda: read(options, text)) for _ in range(3)) <= LINEAR_S


LINEAR_S = 0.5
"""CPU time for 50,000 characters, ten times what they take on a free core: a quadratic reader needs minutes."""


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start

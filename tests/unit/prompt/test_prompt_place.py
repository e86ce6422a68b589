"""Pictures stand where their markers do: in questions, options, templates, dialogues, examples and string styles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from snellen.core.message_parts import holds_marker
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Image, Sample, Turn
from snellen.prompt.build import Prompter
from snellen.prompt.place import Placement, number_options, place_parts

A, B, C, D = (Image(f"/data/{name}.png") for name in "abcd")
NAMES = {image.ref: image.ref[6].upper() for image in (A, B, C, D)}
TASK = Task("t", {"loader": "table"})
MMMU = Sample(
    "m",
    "t",
    Form.CHOICE,
    "Is <image 1> or <image 2> the older map?",
    (A, B),
    ("the first", "the second"),
    ("the first",),
)
PICTURED = Sample("p", "t", Form.CHOICE, "Which fits <image 1>?", (A, B, C), ("<image 2>", "<image 3>"), ("<image 2>",))


def say(turn: Turn) -> str:
    """Write a message with the pictures' letters where they stand."""
    return "".join(turn.arrange([f"[{NAMES[image.ref]}]" for image in turn.images]))


def build(sample: Sample, variant: str = "base", task: Task = TASK, **prompt: Any) -> list[str]:
    prompter = Prompter(task, Prompt(**prompt), 0)
    first, second = prompter.build(sample, variant), prompter.build(sample, variant)
    assert first == second
    return [say(turn) for turn in first.messages]


def test_pictures_stand_inside_the_question() -> None:
    assert build(MMMU) == ["Is [A] or [B] the older map?\nA. the first\nB. the second"]
    (turn,) = Prompter(TASK, Prompt(), 0).build(MMMU).messages
    assert turn.parts == ("Is ", 0, " or ", 1, " the older map?\nA. the first\nB. the second")
    assert not holds_marker(turn.text)


def test_options_are_pictures_in_whatever_order_they_are_shown() -> None:
    assert build(PICTURED) == ["Which fits [A]?\nA. [B]\nB. [C]"]
    shuffled = {build(PICTURED, f"order={n}")[0] for n in range(8)}
    assert shuffled == {"Which fits [A]?\nA. [B]\nB. [C]", "Which fits [A]?\nA. [C]\nB. [B]"}
    request = Prompter(TASK, Prompt(), 0).build(PICTURED)
    assert request.shown == ("<image 2>", "<image 3>")


def test_bare_markers_of_options_count_in_the_order_of_the_data() -> None:
    bare = replace(PICTURED, question="Which fits <image>?", options=("the <image>", "a <image>"), answers=())
    texts = {build(bare, f"order={n}")[0] for n in range(8)}
    assert texts == {"Which fits [A]?\nA. the [B]\nB. a [C]", "Which fits [A]?\nA. a [C]\nB. the [B]"}
    assert number_options("x", bare)[1] == {"the <image>": "the <image 1>", "a <image>": "a <image 2>"}


def test_markers_before_the_first_word_are_pictures_that_come_first() -> None:
    sample = Sample("1", "t", Form.OPEN, "<image 2><image 1>\nWhich is red?", (A, B))
    assert Prompter(TASK, Prompt(), 0).build(sample).messages == (Turn("user", "Which is red?", (B, A)),)


def test_a_picture_without_a_marker_comes_first_and_one_named_twice_stands_twice() -> None:
    sample = Sample("1", "t", Form.OPEN, "Turn <image 2> until it is <image 2>.", (A, B))
    assert build(sample) == ["[A]Turn [B] until it is [B]."]


def test_a_marker_without_its_picture_stays_text() -> None:
    sample = Sample("1", "t", Form.OPEN, "Is <image 1> before <image 3>?", (A,))
    assert build(sample) == ["Is [A] before <image 3>?"]
    assert build(replace(sample, images=())) == ["Is <image 1> before <image 3>?"]


def test_a_template_puts_pages_between_texts() -> None:
    sample = Sample("1", "t", Form.OPEN, "Which year?", (A, B))
    template = "Page one: <image 1>\nPage two: <image 2>\n{question}"
    assert build(sample, template=template) == ["Page one: [A]\nPage two: [B]\nWhich year?"]


def test_all_stays_as_it_was_where_that_is_wished() -> None:
    assert build(MMMU, place_pictures=False) == [
        "[A][B]Is <image 1> or <image 2> the older map?\nA. the first\nB. the second"
    ]


def test_withheld_pictures_leave_no_marker() -> None:
    assert build(MMMU, "control=none") == ["Is  or  the older map?\nA. the first\nB. the second"]


def test_a_degradation_reaches_the_pictures_inside_the_text() -> None:
    (turn,) = Prompter(TASK, Prompt(), 0).build(MMMU, "perturb=jpeg:3").messages
    assert turn.parts[1::2] == (0, 1)
    assert all(image.edits for image in turn.images)


DIALOGUE = Sample(
    "3", "t", Form.OPEN, "<image 1>\nAnd now?", (C,),
    turns=(Turn("user", "What is it?", (A,)), Turn("assistant", "A cat."),
           Turn("user", "Or in <image 1>?", (B,)), Turn("assistant", "A dog.")),
)  # fmt: skip


def test_pictures_of_later_rounds_stand_in_their_own_round() -> None:
    assert build(DIALOGUE) == ["[A]What is it?", "A cat.", "Or in [B]?", "A dog.", "[C]And now?"]
    assert build(DIALOGUE, instructions=("Say it.",), template="{question}")[0] == "[A]Say it. What is it?"


def test_pictures_of_earlier_rounds_are_degraded_and_withheld_with_the_others() -> None:
    degraded = Prompter(TASK, Prompt(), 0).build(DIALOGUE, "perturb=jpeg:3").messages
    assert all(image.edits for turn in degraded for image in turn.images)
    assert build(DIALOGUE, "control=none") == ["What is it?", "A cat.", "Or in  ?", "A dog.", "And now?"]


def test_examples_show_their_pictures_where_these_stand() -> None:
    prompter = Prompter(TASK, Prompt(), 0, retriever=lambda *_: [PICTURED])
    example, answer, question = prompter.build(MMMU).messages
    assert say(example) == "Which fits [A]?\nA. [B]\nB. [C]"
    assert answer.text == "A."
    assert say(question).startswith("Is [A] or [B] the older map?")
    plain = Sample("1", "t", Form.OPEN, "What is it?", (D,))
    assert [say(turn) for turn in prompter.build(plain).messages][0::2] == [say(example), "[D]What is it?"]
    before = Prompter(TASK, Prompt(place_pictures=False), 0, retriever=lambda *_: [PICTURED])
    assert [len(turn.images) for turn in before.build(plain).messages] == [3, 0, 1]


@pytest.mark.parametrize("style", ["two", "alpaca", "otter", "one"])
def test_a_string_style_keeps_the_places(style: str) -> None:
    (text,) = build(MMMU, style=style)
    assert "Is [A] or [B] the older map?" in text
    assert "<image" not in text


def test_examples_of_a_string_style_stand_by_their_own_pictures() -> None:
    shots = [
        Sample(name, "t", Form.OPEN, f"What is {name}?", (image,), answers=("x",))
        for name, image in (("a", A), ("b", B))
    ]
    plain = Sample("1", "t", Form.OPEN, "What is it?", (D,))
    (turn,) = Prompter(TASK, Prompt(style="two"), 0, retriever=lambda *_: shots).build(plain).messages
    words = say(turn)
    assert "[A]What is a?" in words and "[B]What is b?" in words and "[D]What is it?" in words
    assert turn.images == (A, B, D) and "<image" not in words


@given(
    st.permutations([1, 2, 3]),
    st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), min_size=4, max_size=4),
)
def test_every_picture_stands_behind_the_words_before_its_marker(order: list[int], words: list[str]) -> None:
    words = [word.replace("<", "").replace("{", "") for word in words]
    text = "x" + "".join(f"{word}<image {number}>" for word, number in zip(words, order, strict=False)) + words[3] + "y"
    (turn,) = (
        Prompter(TASK, Prompt(template="{question}"), 0).build(Sample("1", "t", Form.OPEN, text, (A, B, C))).messages
    )
    assert [NAMES[image.ref] for image in turn.images] == ["ABC"[number - 1] for number in order]
    assert not holds_marker(turn.text)


def test_a_token_is_not_to_be_written_by_a_question() -> None:
    placement = Placement()
    text, first = placement.take("a <image 1> b", (A, B))
    assert (first, placement.pictures) == ((B,), [A])
    assert place_parts([Turn("user", text, first)], placement.pictures)[0].arrange([1, 2]) == [1, "a ", 2, " b"]
    assert place_parts([Turn("user", "<0-0>")], []) == (Turn("user", "<0-0>"),)

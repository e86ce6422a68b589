"""Prompts: strict templates, marks, variants that are always labelled right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError
from snellen.core.ids import rng
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Image, Params, Sample, Turn
from snellen.prompt.build import Prompter
from snellen.prompt.place import draw_style, letter_mark, make_marks
from snellen.prompt.template import render

SAMPLE = Sample("s1", "d", Form.CHOICE, "Which {animal}?", (Image("/a.png"),), ("cat", "dog", "cow"), ("dog",))
PROMPT = Prompt(instructions=("Letter only.", "Say the letter."))


def prompter(**task: object) -> Prompter:
    return Prompter(Task("t", {"loader": "table"}, **task), PROMPT, seed=7)


def test_the_base_prompt_keeps_braces_of_the_question() -> None:
    request = prompter().build(SAMPLE)
    assert request.messages == (
        Turn("user", "Which {animal}?\nA. cat\nB. dog\nC. cow\nLetter only.", (Image("/a.png"),)),
    )
    assert (request.marks, request.shown) == (("A", "B", "C"), ("cat", "dog", "cow"))


def test_variants_change_wording_marks_order_and_images() -> None:
    build = prompter().build
    assert build(SAMPLE, "wording=1").messages[-1].text.endswith("Say the letter.")
    assert build(SAMPLE, "marks=number").marks == ("1", "2", "3")
    orders = {build(SAMPLE, f"order={number}").shown for number in range(12)}
    assert len(orders) > 2
    assert all(sorted(order) == sorted(SAMPLE.options) for order in orders)
    (edit,) = build(SAMPLE, "perturb=jpeg:3").messages[-1].images[0].edits
    assert edit.startswith("perturb:jpeg:3:")


@pytest.mark.parametrize("variant", ["wording=9", "colour=1", "wording", "marks=roman"])
def test_bad_variants_are_named(variant: str) -> None:
    with pytest.raises(ConfigError):
        prompter().build(SAMPLE, variant)


def test_shuffled_options_differ_by_repeat_and_depend_on_nothing_else() -> None:
    build = prompter(shuffle_options=True).build
    assert build(SAMPLE, repeat=3) == build(SAMPLE, repeat=3)
    assert len({build(SAMPLE, repeat=repeat).shown for repeat in range(10)}) > 1


def test_each_repeat_has_its_own_sampling_seed_only_when_one_is_sent() -> None:
    assert prompter().build(SAMPLE, repeat=2).params.seed is None
    assert prompter(params=Params(seed=5)).build(SAMPLE, repeat=2).params.seed == 7


def test_history_and_system_stand_before_the_question() -> None:
    sample = Sample("s", "d", Form.OPEN, "And now?", turns=(Turn("user", "a"), Turn("assistant", "b")))
    request = Prompter(Task("t", {}), Prompt(template="{question}", system="Be brief."), 0).build(sample)
    assert [turn.role for turn in request.messages] == ["system", "user", "assistant", "user"]


def test_templates_drop_empty_lines_only_where_a_field_was() -> None:
    assert (
        render("{question}\n\n{options}\n{instruction}", {"question": "q", "options": "", "instruction": "i"})
        == "q\n\ni"
    )
    with pytest.raises(ConfigError, match=r"unknown field \{qestion\} \(did you mean 'question'"):
        render("{qestion}", {"question": "q"})


@given(st.text(), st.text())
def test_templates_never_read_what_they_filled_in(question: str, options: str) -> None:
    filled = render("<{question}|{options}>", {"question": question, "options": options})
    assert filled == f"<{question}|{options}>"


@given(st.integers(0, 5000))
def test_letter_marks_are_unique(count: int) -> None:
    marks = [letter_mark(index) for index in range(count)]
    assert len(set(marks)) == count
    assert letter_mark(26) == "AA"


def test_random_marks_are_drawn_once() -> None:
    styles = {make_marks(draw_style(rng(seed)), 2) for seed in range(30)}
    assert styles == {("A", "B"), ("a", "b"), ("1", "2")}

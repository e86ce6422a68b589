"""A prompt shows its question, and every option of its sample once and in the order of the trial, or it is not sent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from snellen.core.errors import ConfigError
from snellen.core.tasks import Prompt, Task
from snellen.core.types import OFFERED, Form, Sample
from snellen.data.atlas.protocols import protocols_of
from snellen.data.catalog import Catalog
from snellen.prompt.build import Prompter, shows_in_order

TASK = Task("t", {"loader": "table"})
PLAIN = Sample("s", "t", Form.CHOICE, "Which of 2 colours?", options=("red", "green", "2"), answers=("red",))
LISTED = replace(PLAIN, question="Which of 2 colours?\n(A) red\n(B) green\n(C) 2")
IN_THE_PICTURE = {("mmmu-pro-vision", protocol) for protocol in ("official", "lmms-eval", "vlmevalkit")}
"""Cards whose questions and options stand in the picture alone."""


def text_of(sample: Sample, prompt: Prompt, variant: str = "base", task: Task = TASK) -> str:
    return Prompter(task, prompt, 0).build(sample, variant).messages[-1].text


def cards_and_protocols() -> list[tuple[str, str | None]]:
    catalog = Catalog()
    pairs: list[tuple[str, str | None]] = []
    for name, table in catalog.cards("datasets"):
        pairs += [(name, protocol) for protocol in protocols_of(table) or [None]]
    return pairs


@pytest.mark.parametrize("template", ["{question}", "{instruction}", "{question} or {instruction}"])
def test_a_prompt_without_the_options_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match=r"'t'.*'s'.*\{options\}"):
        text_of(PLAIN, Prompt(template=template, instructions=("Answer.",)))


@pytest.mark.parametrize("template", ["{options} {instruction}", "{question.__class__} {options}"])
@pytest.mark.parametrize("hidden", [(), ("Why?",)])
def test_a_template_that_never_asks_is_refused(template: str, hidden: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"'t'.*'s'.*\{question\}"):
        text_of(PLAIN, Prompt(template=template, instructions=("Answer.",), hidden=hidden))
    with pytest.raises(ConfigError, match=r"\{question\}"):
        text_of(Sample("s", "t", Form.OPEN, "Which?"), Prompt(template="{instruction}", instructions=("Answer.",)))


def test_a_question_that_stands_in_the_picture_need_not_be_shown() -> None:
    assert text_of(PLAIN, Prompt(template="{instruction}", hidden=("Answer it.",))) == "Answer it."
    empty = replace(PLAIN, question="")
    assert text_of(empty, Prompt(template="{options}")) == "A. red\nB. green\nC. 2"


def test_a_template_of_the_options_that_leaves_them_out_is_refused() -> None:
    with pytest.raises(ConfigError, match="red"):
        text_of(PLAIN, Prompt(options_format="Choose one."))


def test_options_that_the_question_lists_are_shown_by_it_as_the_row_has_them() -> None:
    assert text_of(LISTED, Prompt(template="{question}")) == LISTED.question


def test_options_that_the_question_lists_and_the_prompt_shows_are_shown_once() -> None:
    assert text_of(LISTED, Prompt()) == "Which of 2 colours?\nA. red\nB. green\nC. 2"


def test_an_option_missing_in_the_list_of_the_question_is_not_found_in_its_words() -> None:
    short = replace(LISTED, question="Which of 2 colours?\n(A) red\n(B) green")
    with pytest.raises(ConfigError, match="order"):  # the 2 stands before red, where nobody offers it
        text_of(short, Prompt(template="{question}"))


@pytest.mark.parametrize("variant", [f"order={number}" for number in range(6)])
def test_options_in_the_question_cannot_be_shuffled(variant: str) -> None:
    prompter = Prompter(TASK, Prompt(), 0)
    if prompter.build(PLAIN, variant).shown == PLAIN.options:
        assert text_of(LISTED, Prompt(template="{question}"), variant) == LISTED.question
        return
    with pytest.raises(ConfigError, match="order"):
        text_of(LISTED, Prompt(template="{question}"), variant)


def test_wordings_for_hidden_options_hide_them_on_purpose() -> None:
    assert text_of(PLAIN, Prompt(template="{question} {instruction}", hidden=("Why?",))) == "Which of 2 colours? Why?"


def test_capitals_and_spaces_do_not_hide_an_option() -> None:
    assert shows_in_order("(a) A  Red\nfox (b) a hen", ("a red fox", "A hen"))
    assert not shows_in_order("(a) a hen (b) a red fox", ("a red fox", "A hen"))


def test_every_card_shows_the_options_in_each_of_its_protocols() -> None:
    catalog, seen, hidden = Catalog(), 0, set()
    for name, protocol in cards_and_protocols():
        task = catalog.task(name, protocol=protocol)
        for form in {Form.CHOICE if task.form is Form.AUTO else task.form} & OFFERED:
            prompt = catalog.prompt(task, form)
            request = Prompter(task, prompt, 0).build(replace(LISTED, form=form))
            text, seen = request.messages[-1].text, seen + 1
            if not shows_in_order(text, request.shown):
                hidden.add((name, protocol))
            elif "{options}" in prompt.template or "{choices}" in prompt.template:
                assert text.count("green") == 1, f"{name}, {protocol}: shown twice"
    assert seen > 150
    assert hidden == IN_THE_PICTURE

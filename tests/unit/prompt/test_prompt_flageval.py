"""FlagEvalMM's prompt templates as Prompts of ours."""

from __future__ import annotations

import pytest

from snellen.core.errors import ConfigError
from snellen.core.tasks import Task
from snellen.core.types import Form, Sample
from snellen.prompt.build import Prompter
from snellen.prompt.flageval import PromptTemplate

WORDINGS = {"en": {"yes-no": "Yes or no?", "default": "Be brief."}, "zh": {"default": "请回答。"}}


def ask(template: PromptTemplate, question: str, kind: str = "open", options: tuple[str, ...] = ()) -> str:
    prompt = template.to_prompt(question, kind, WORDINGS)
    form = Form.CHOICE if options else Form.OPEN
    return (
        Prompter(Task("t", {"loader": "table"}), prompt, seed=0)
        .build(Sample("s", "d", form, question, options=options))
        .messages[0]
        .text
    )


@pytest.mark.parametrize(
    ("question", "kind", "text"),
    [
        ("Red?", "yes-no", "Red?\nYes or no?"),
        ("Red?", "bbox", "Red?\nBe brief."),
        ("What is 红?", "yes-no", "What is 红?\n请回答。"),
    ],
)
def test_the_wording_is_that_of_type_and_language(question: str, kind: str, text: str) -> None:
    assert ask(PromptTemplate(), question, kind) == text


def test_parts_are_joined_in_order_and_stripped() -> None:
    template = PromptTemplate(pre_prompt="Look. ", post_prompt="Letter? \n", examples=" Q: 1 A: 2\n")
    assert ask(template, "Which?", options=("cat", "dog")) == "Q: 1 A: 2\nLook. Which?\nA. cat\nB. dog\nLetter?"
    assert ask(PromptTemplate(post_prompt=""), "Which {one}?") == "Which {one}?"


def test_what_cannot_be_asked_is_one_line() -> None:
    with pytest.raises(ConfigError, match="no wording for question type 'open' in 'en'"):
        PromptTemplate().to_prompt("What?", "open", {"en": {"yes-no": "?"}})
    with pytest.raises(ConfigError, match=r"unknown field \{place\}"):
        ask(PromptTemplate(pre_prompt="In {place}: "), "What?")

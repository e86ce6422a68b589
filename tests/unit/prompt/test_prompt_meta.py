"""Meta templates: roles and rounds to one string or to messages, in from plain data and out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.core.errors import ConfigError
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Sample, Turn
from snellen.prompt.build import Prompter
from snellen.prompt.meta import (
    Line,
    MetaTemplate,
    fill_lines,
    read_meta_template,
    to_messages,
    to_text,
    write_meta_template,
)

TABLE = {
    "begin": "<s>",
    "round": [
        {"role": "HUMAN", "begin": "### Human: ", "end": "\n"},
        {"role": "BOT", "begin": "### Assistant: ", "end": "\n", "generate": True},
    ],
    "reserved_roles": [{"role": "SYSTEM", "begin": "[SYS]", "end": "[/SYS]\n"}],
    "end": "</s>",
}
LINES = [Line("SYSTEM", "Be kind."), Line("HUMAN", "Hi"), Line("BOT", "Hello"), Line("HUMAN", "{question}")]


def test_in_and_out_again() -> None:
    template = read_meta_template(TABLE)
    assert read_meta_template(write_meta_template(template)) == template


def test_text_ends_where_the_model_goes_on() -> None:
    lines = fill_lines(LINES, {"question": "What {is} it?"})
    expected = "<s>[SYS]Be kind.[/SYS]\n### Human: Hi\n### Assistant: Hello\n### Human: What {is} it?\n### Assistant: "
    assert to_text(read_meta_template(TABLE), lines) == expected
    assert to_text(read_meta_template(TABLE), [*lines, Line("BOT", "gold answer")]) == expected, (
        "the answer never leaks"
    )


def test_text_without_a_role_to_generate_ends_the_template() -> None:
    plain = read_meta_template({**TABLE, "round": [{"role": "HUMAN"}, {"role": "BOT"}]})
    assert to_text(plain, [Line("HUMAN", "a"), Line("BOT", "b")]) == "<s>ab</s>"


def test_messages() -> None:
    lines = [
        Line("SYSTEM", "Be kind."),
        Line("HUMAN", "one"),
        Line("HUMAN", "two"),
        Line("BOT", "three"),
        Line("HUMAN", "four"),
        Line("BOT"),
    ]
    turns = to_messages(MetaTemplate(), lines)
    assert [(turn.role, turn.text) for turn in turns] == [
        ("system", "Be kind."),
        ("user", "one\ntwo"),
        ("assistant", "three"),
        ("user", "four"),
    ]


def test_fallback_and_unknown_roles() -> None:
    turns = to_messages(MetaTemplate(), [Line("OBSERVER", "seen", "HUMAN")])
    assert turns[0].role == "user"
    with pytest.raises(ConfigError, match=r"knows no role 'HUMANE'.*did you mean"):
        to_messages(MetaTemplate(), [Line("HUMANE", "x")])


def test_bad_templates() -> None:
    with pytest.raises(ConfigError, match="given twice"):
        read_meta_template({"round": [{"role": "HUMAN"}, {"role": "HUMAN"}]})
    with pytest.raises(ConfigError, match="unknown key"):
        read_meta_template({"rounds": []})
    with pytest.raises(ConfigError, match=r"unknown field {answer}"):
        fill_lines([Line("HUMAN", "{answer}")], {"question": "x"})


def test_a_whole_trial_through_a_meta_template(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps(TABLE))
    prompt = Prompt(
        template="{question} {options}",
        option_separator="; ",
        instructions=("Say it.",),
        system="Be kind.",
        prefix="It is",
        style=f"meta:{tmp_path / 'meta.json'}",
    )
    sample = Sample(
        "1", "d", Form.CHOICE, "What?", (), ("a", "b"), ("a",), (Turn("user", "Hi?"), Turn("assistant", "yes"))
    )
    (turn,) = Prompter(Task("t", {}), prompt, 0).build(sample).messages
    assert (
        turn.text
        == "<s>[SYS]Be kind.[/SYS]\n### Human: Say it. Hi?\n### Assistant: yes\n### Human: What? A. a; B. b\n### Assistant: It is"
    )

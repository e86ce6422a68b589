"""Meta templates: roles and rounds to one string."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.core.errors import ConfigError
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Sample, Turn
from snellen.prompt.build import Prompter
from snellen.prompt.styles import Line, MetaTemplate, Role, read_meta_template, to_text

TABLE = {
    "begin": "<s>",
    "round": [
        {"role": "HUMAN", "begin": "### Human: ", "end": "\n"},
        {"role": "BOT", "begin": "### Assistant: ", "end": "\n", "generate": True},
    ],
    "reserved_roles": [{"role": "SYSTEM", "begin": "[SYS]", "end": "[/SYS]\n"}],
    "end": "</s>",
}
LINES = [Line("SYSTEM", "Be kind."), Line("HUMAN", "Hi"), Line("BOT", "Hello"), Line("HUMAN", "What {is} it?")]


def test_text_ends_where_the_model_goes_on() -> None:
    expected = "<s>[SYS]Be kind.[/SYS]\n### Human: Hi\n### Assistant: Hello\n### Human: What {is} it?\n### Assistant: "
    assert to_text(read_meta_template(TABLE), LINES) == expected
    assert to_text(read_meta_template(TABLE), [*LINES, Line("BOT", "gold answer")]) == expected, (
        "the answer never leaks"
    )


def test_text_without_a_role_to_generate_ends_the_template() -> None:
    plain = read_meta_template({**TABLE, "round": [{"role": "HUMAN"}, {"role": "BOT"}]})
    assert to_text(plain, [Line("HUMAN", "a"), Line("BOT", "b")]) == "<s>ab</s>"


def test_fallback_and_unknown_roles() -> None:
    template = MetaTemplate(round=(Role("HUMAN", begin="H: "), Role("BOT", generate=True)))
    assert to_text(template, [Line("OBSERVER", "seen", "HUMAN")]) == "H: seen"
    with pytest.raises(ConfigError, match=r"knows no role 'HUMANE'.*did you mean"):
        to_text(MetaTemplate(), [Line("HUMANE", "x")])


def test_bad_templates() -> None:
    with pytest.raises(ConfigError, match="given twice"):
        read_meta_template({"round": [{"role": "HUMAN"}, {"role": "HUMAN"}]})
    with pytest.raises(ConfigError, match="unknown key"):
        read_meta_template({"rounds": []})


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

"""What is said in a trial: wordings, hidden options, examples, histories, styles, packs, duplication."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError, UsageError
from snellen.core.tasks import Prompt, Shot, Task
from snellen.core.types import Form, Image, Sample, Turn
from snellen.prompt.build import Prompter
from snellen.prompt.duplicate import duplicate
from snellen.prompt.history import say_answer
from snellen.prompt.place import make_marks
from snellen.prompt.styles import Speech, load_style
from snellen.prompt.template import apply_pack, read_pack

LAYOUT = Prompt(
    template="{question} {options}",
    option_format="({mark}) {text}",
    option_separator="; ",
    options_format="Options: {options}.",
    instructions=("Say it.", "Tell it."),
    hidden=("Guess it.", "Think it."),
    shot=Shot("Is it?", "yes", ("yes", "no")),
)
SAMPLE = Sample("7", "d", Form.CHOICE, "What is it?", (Image("/a.png"),), ("cat", "dog", "cow"), ("dog",))


def prompter(**fields: Any) -> Prompter:
    task = {key: fields.pop(key) for key in ("shuffle_options",) if key in fields}
    return Prompter(Task("t", {}, **task), msgspec.structs.replace(LAYOUT, **fields), 0)


def texts(request: Any) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in request.messages]


def test_the_instruction_leads() -> None:
    request = prompter().build(SAMPLE)
    assert texts(request) == [("user", "Say it. What is it? Options: (A) cat; (B) dog; (C) cow.")]
    assert prompter().build(SAMPLE, "wording=1").messages[0].text.startswith("Tell it. ")


def test_options_hidden_for_likelihood() -> None:
    request = prompter(template="{question} ", prefix="The answer is").build(SAMPLE)
    assert texts(request) == [("user", "Guess it. What is it?")]
    assert request.prefix == ""
    assert request.shown == SAMPLE.options


def test_possible_answers_named_when_hidden() -> None:
    asked = prompter(template="{question} ", answer_space="One of {answers}.").build(SAMPLE).messages[0].text
    assert asked == "Guess it. One of cat, dog or cow. What is it?"
    assert "One of" not in prompter(answer_space="One of {answers}.").build(SAMPLE).messages[0].text


def test_yes_or_no_asked_where_these_are_the_options() -> None:
    yes_no = msgspec.structs.replace(SAMPLE, options=("yes", "no"), answers=("yes",))
    assert "Yes or no?" in prompter(yesno="Yes or no?").build(yes_no).messages[0].text
    assert "Yes or no?" not in prompter(yesno="Yes or no?").build(SAMPLE).messages[0].text


def test_a_wording_can_be_the_question() -> None:
    sample = msgspec.structs.replace(SAMPLE, meta={"slots": {"caption": "a {cat}"}})
    request = prompter(ask="instead", instructions=("Does '{caption}' fit?",)).build(sample)
    assert request.messages[0].text.startswith("Does 'a {cat}' fit? Options:")
    with pytest.raises(ConfigError, match=r"unknown field {method}"):
        prompter(ask="instead", instructions=("Do {method}",)).build(sample)


def test_a_sample_may_bring_its_own_wordings() -> None:
    sample = msgspec.structs.replace(SAMPLE, meta={"wordings": ["one?", "two?", "three?"]})
    assert "Say it. three?" in prompter().build(sample, "wording=2").messages[0].text
    with pytest.raises(ConfigError, match="wordings 0 to 2"):
        prompter().build(sample, "wording=3")


def test_the_example_follows_the_marks() -> None:
    request = prompter(in_context=True, marks="number", prefix="It is").build(SAMPLE)
    assert texts(request) == [
        ("user", "Say it. Is it? Options: (1) yes; (2) no."),
        ("assistant", "It is (1) yes"),
        ("user", "What is it? Options: (1) cat; (2) dog; (3) cow."),
    ]
    assert [len(turn.images) for turn in request.messages] == [1, 0, 0]
    assert "(A) yes" in prompter(in_context=True, marks="number", shot_marks="upper").build(SAMPLE).messages[1].text
    hidden = prompter(in_context=True, template="{question}").build(SAMPLE)
    assert texts(hidden)[:2] == [("user", "Guess it. Is it?"), ("assistant", "yes")]


ROUND = msgspec.structs.replace(
    SAMPLE,
    turns=(Turn("user", "First?"), Turn("assistant", "yes"), Turn("user", "Second?"), Turn("assistant", "2")),
    meta={"history_options": [["no", "yes"], ["1", "2"]]},
)


def test_history_with_right_answers_and_options() -> None:
    said = texts(prompter(prefix="It is").build(ROUND))
    assert said[:4] == [
        ("user", "Say it. First? Options: (A) no; (B) yes."),
        ("assistant", "It is (B) yes"),
        ("user", "Second? Options: (A) 1; (B) 2."),
        ("assistant", "It is (B) 2"),
    ]


def test_history_with_the_models_own_answers() -> None:
    said = texts(prompter().build(ROUND, replies=["no", "I cannot tell"]))
    assert (said[1], said[3]) == (("assistant", "(A) no"), ("assistant", "I cannot tell"))


@pytest.mark.parametrize("fields", [{"options_in_history": False}, {"template": "{question}"}])
def test_history_without_options(fields: dict[str, Any]) -> None:
    said = texts(prompter(prefix="It is", **fields).build(ROUND))
    assert said[0][1].endswith("First?")
    assert said[1] == ("assistant", "yes")


def test_random_marks_are_drawn_once_a_trial() -> None:
    styles = set()
    for repeat in range(30):
        request = prompter(marks="random", in_context=True).build(ROUND, repeat=repeat)
        style = next(name for name in ("upper", "lower", "number") if request.marks == make_marks(name, 3))
        first = make_marks(style, 1)[0]
        assert all(f"({first})" in turn.text for turn in request.messages if turn.role == "user")
        styles.add(style)
    assert styles == {"upper", "lower", "number"}


@given(st.integers(0, 50), st.integers(0, 6))
def test_shuffling_never_moves_the_label(repeat: int, order: int) -> None:
    request = prompter(shuffle_options=True).build(SAMPLE, repeat=repeat)
    assert sorted(request.shown) == sorted(SAMPLE.options)
    assert SAMPLE.options == ("cat", "dog", "cow")
    fixed = prompter().build(SAMPLE, f"order={order}")
    assert fixed.shown == prompter().build(SAMPLE, f"order={order}", repeat).shown


def test_a_string_style_is_one_message() -> None:
    request = prompter(style="one", in_context=True, prefix="The answer is").build(SAMPLE)
    (turn,) = request.messages
    assert turn.text.startswith("User: Say it. Is it?")
    assert turn.text.endswith("\nBot: The answer is")
    assert turn.images == SAMPLE.images
    with pytest.raises(ConfigError, match=r"no dialogue style 'ona'.*did you mean"):
        prompter(style="ona").build(SAMPLE)


def test_a_style_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'roles = ["H", "B"]\nuser = "<{role}>{text}"\nends = ["|", "!"]\nlast_bare = "<{role}>"\n'
    )
    style = load_style(str(tmp_path / "mine.toml"))
    assert style.speak(Speech("q {text}", instruction="i")) == "<H>i q {text}|<B>"
    (tmp_path / "bad.toml").write_text('colour = "red"\n')
    with pytest.raises(ConfigError, match="unknown key 'colour'"):
        load_style(str(tmp_path / "bad.toml"))


def test_a_free_answer_gets_no_mark() -> None:
    assert say_answer(LAYOUT, "upper", "bird", ["cat", "dog"]) == "bird"


def test_option_format_needs_both_fields() -> None:
    with pytest.raises(ConfigError, match="must name"):
        prompter(option_format="{text}").build(SAMPLE)


def test_packs_lay_over_prompts(tmp_path: Path) -> None:
    path = tmp_path / "pack.json"
    path.write_text(
        json.dumps(
            {
                "*": {"prefix": "So"},
                "family": {"instructions": ["Do"]},
                "t": {"instructions": ["Now"], "shot": {"question": "q", "answer": "a"}},
            }
        )
    )
    pack = read_pack(path)
    prompt = apply_pack(LAYOUT, Task("t", {}, prompt="family"), pack)
    assert (prompt.prefix, prompt.instructions, prompt.shot) == ("So", ("Now",), Shot("q", "a"))
    other = apply_pack(LAYOUT, Task("u", {}, prompt="family"), pack)
    assert other.instructions == ("Do",)
    assert other.hidden == LAYOUT.hidden
    for bad, message in (({"t": {"colour": 1}}, "unknown key 'colour'"), ({"t": 5}, "must be a table")):
        path.write_text(json.dumps(bad))
        with pytest.raises(ConfigError, match=message):
            read_pack(path)


@pytest.mark.parametrize(
    ("count", "random_instruct", "shuffle", "variants", "repeats"),
    [
        (1, False, False, ("base",), 1),
        (3, False, False, ("base",), 3),
        (2, True, False, ("base", "wording=1"), 1),
        (4, True, False, ("base", "wording=1"), 2),
        (3, False, True, ("order=0", "order=1", "order=2"), 1),
        (3, True, True, ("order=0", "order=1&wording=1", "order=2"), 1),
    ],
)
def test_duplication(count: int, random_instruct: bool, shuffle: bool, variants: tuple[str, ...], repeats: int) -> None:
    task = duplicate(Task("t", {}, shuffle_options=shuffle), LAYOUT, count, random_instruct)
    assert (task.variants, task.repeats, task.shuffle_options) == (variants, repeats, False)


def test_duplication_must_fit_the_pool() -> None:
    with pytest.raises(UsageError, match="multiple of 2"):
        duplicate(Task("t", {}), LAYOUT, 3, True)


@pytest.mark.parametrize("style", ["one", "two", "llama_2", "alpaca", "plain", "question_answer", "chat"])
def test_the_beginning_of_the_answer_is_said_once(style: str) -> None:
    """A style that ends with it leaves nothing for the model to add: "The answer is The answer is" was asked."""
    request = prompter(style=style, prefix="The answer is").build(SAMPLE)
    said = "".join(turn.text for turn in request.messages) + request.prefix
    assert said.count("The answer is") == 1
    assert said.endswith("The answer is")

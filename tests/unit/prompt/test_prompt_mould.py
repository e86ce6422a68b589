"""A mould says what the long way says, to the byte, and is used only where nothing depends on the sample but question and options."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as change

from snellen.core.tasks import Prompt, Shot, Task
from snellen.core.types import Form, Image, Params, Request, Sample, Turn
from snellen.prompt.build import Prompter
from snellen.prompt.template import fill, render

TEXTS = st.one_of(
    st.sampled_from(
        ["", "100%", "%s", "%(question)s", "{question}", "{options}", "\nlead", "tail \n", " ", "a\n\nb", "Yes", "no"]
    ),
    st.text(max_size=6),
)
TEMPLATES = [
    "{question}\n{options}\n{instruction}",
    "{question}",
    "{question}\n{instruction}",
    "\n {options}\n{question} 50% {question}\n{choices} \n\n",
    "{instruction}\n{question}: {options} \n ",
    "no field, %s",
    "\n{question}{instruction}\n\n{options}\n",
]
VARIANTS = ["base", "wording=1", "marks=lower", "marks=number", "order=2", "wording=1&marks=lower&order=1", "marks=random", "perturb=blur:2", "control=none"]  # fmt: skip


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    return Prompt(
        template=draw(st.sampled_from(TEMPLATES)),
        instructions=(draw(TEXTS), draw(TEXTS)),
        hidden=draw(st.sampled_from([(), ("Guess.", "Say it, 100%.")])),
        system=draw(st.sampled_from(["", "Be 100% sure."])),
        prefix=draw(st.sampled_from(["", "The answer is"])),
        option_format=draw(st.sampled_from(["{mark}. {text}", "({mark}) {text};", "%{mark}{text}%d"])),
        option_separator=draw(st.sampled_from(["\n", " ", "%"])),
        options_format=draw(st.sampled_from(["{options}", "{options}", "Options: {options}."])),
        yesno=draw(st.sampled_from(["", "", "Yes or no?"])),
        answer_space=draw(st.sampled_from(["", "", "One of {answers}."])),
    )


def samples(form: Form, count: int) -> st.SearchStrategy[Sample]:
    options = st.lists(TEXTS, min_size=count, max_size=count).map(tuple)
    images = st.sampled_from([(), (Image("/a.png"), Image("/b.png"))])
    meta = st.sampled_from([{}, {}, {"wordings": ["Own?", "Mine?"]}])
    return st.builds(
        Sample,
        id=TEXTS,
        dataset=st.just("d"),
        form=st.just(form),
        question=TEXTS,
        images=images,
        options=options,
        meta=meta,
    )


def long_way(prompter: Prompter, sample: Sample, variant: str, repeat: int) -> Request:
    return replace(prompter).build(sample, variant, repeat)  # the first of its kind is always told in full


@given(
    data=st.data(),
    prompt=prompts(),
    variant=st.sampled_from(VARIANTS),
    form=st.sampled_from([Form.CHOICE, Form.CHOICE, Form.OPEN]),
    count=st.sampled_from([0, 2, 4]),
    shuffle=st.booleans(),
)
def test_every_trial_is_the_same_as_told_in_full(
    data: st.DataObject, prompt: Prompt, variant: str, form: Form, count: int, shuffle: bool
) -> None:
    prompter = Prompter(Task("t", {}, shuffle_options=shuffle, params=Params(seed=3)), prompt, 5)
    for repeat in (0, 1, 2):
        sample = data.draw(samples(form, count))
        assert prompter.build(sample, variant, repeat) == long_way(prompter, sample, variant, repeat)


PLAIN = [
    {},
    {"system": "Be 100% sure.", "prefix": "The answer is"},
    {"option_format": "%{mark}{text}%d", "option_separator": "%", "marks": "lower"},
    {"hidden": ("Guess 100%.", "%s")},
    {"instructions": ()},
]
ASKED = [
    Sample("1", "d", Form.CHOICE, "First?", (), ("cat", "dog", "cow", "hen"), ("cat",)),
    Sample(
        "2",
        "d",
        Form.CHOICE,
        "\n%s of %(question)s {options}? \n",
        (Image("/a.png"),),
        ("100%", "%d", "\n", "{question}"),
        ("%d",),
    ),
    Sample("3", "d", Form.CHOICE, " third ", (), ("a ", " b", "c\n", ""), ("c\n",)),
]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("fields", PLAIN)
@pytest.mark.parametrize("variant", ["base", "order=2", "marks=number&order=1"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_odd_characters_orders_and_hidden_options_come_out_as_told_in_full(
    template: str, fields: dict[str, object], variant: str, shuffle: bool
) -> None:
    prompt = change(Prompt(instructions=("50% or %s: {question}",)), template=template, **fields)
    prompter = Prompter(Task("t", {}, shuffle_options=shuffle), prompt, 5)
    for repeat, sample in enumerate(ASKED):
        assert prompter.build(sample, variant, repeat) == long_way(prompter, sample, variant, repeat)
    (mould,) = prompter._moulds.values()
    assert mould is not None


CAT = Sample("s", "d", Form.CHOICE, "What?", (), ("cat", "dog"), ("cat",))


def has_mould(prompt: Prompt, variant: str = "base", sample: Sample = CAT) -> bool:
    prompter = Prompter(Task("t", {}), prompt, 0)
    prompter.build(sample, variant)
    return any(prompter._moulds.values())


def test_the_plain_prompt_has_a_mould() -> None:
    assert has_mould(Prompt(instructions=("a", "b")))
    assert has_mould(Prompt(instructions=("a", "b")), "wording=1&order=3&marks=lower")


@pytest.mark.parametrize(
    "fields",
    [
        {"style": "plain"},
        {"in_context": True, "shot": Shot("q", "a")},
        {"ask": "instead", "instructions": ("{question}!",)},
        {"yesno": "Yes or no?"},
        {"answer_space": "One of {answers}."},
        {"options_format": "({options})"},
        {"marks": "random"},
    ],
)
def test_what_depends_on_the_sample_has_none(fields: dict[str, object]) -> None:
    assert not has_mould(change(Prompt(), **fields))


@pytest.mark.parametrize("variant", ["perturb=blur:1", "pages=p", "control=none", "marks=random"])
def test_other_axes_have_none(variant: str) -> None:
    assert not has_mould(Prompt(), variant)


def test_samples_with_history_own_fields_or_no_question_have_none() -> None:
    turns = (Turn("user", "a"), Turn("assistant", "b"))
    for sample in (change(CAT, turns=turns), change(CAT, meta={"slots": {}}), change(CAT, question="")):
        assert not has_mould(Prompt(), sample=sample)


def test_a_prompter_with_another_prompt_has_moulds_of_its_own() -> None:
    prompter = Prompter(Task("t", {}), Prompt(), 0)
    assert prompter.build(CAT) == prompter.build(CAT)
    other = replace(prompter, prompt=Prompt(template="{question}"))
    assert other.build(CAT).messages[0].text == "What?"
    assert prompter == Prompter(Task("t", {}), Prompt(), 0)


def test_fill_leaves_the_ends_that_render_strips() -> None:
    fields = {"a": "x\n", "b": ""}
    assert fill("\n{b}\n{a}\n", fields) == "\nx\n\n"
    assert render("\n{b}\n{a}\n", fields) == "x"

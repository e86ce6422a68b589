"""What a likelihood trial asks: candidates, prompts without options, priors, aliases; and what is refused before the first request."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.config import convert
from snellen.core.errors import ConfigError
from snellen.core.jobs import Item
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Image, Sample, TrialKey
from snellen.data.catalog import Catalog
from snellen.data.images.decode import open_image
from snellen.infer.likelihood import (
    LIKELIHOOD,
    LikelihoodOptions,
    build_request,
    grey_image,
    mark_as_answered,
    with_likelihood_wording,
)
from snellen.prompt.build import Prompter

IMAGE = Image(ref="/nowhere.png")
SAMPLE = Sample("s", "d", Form.CHOICE, "What colour?", (IMAGE,), ("red", "blue"), ("red",))
CHOICE_PROMPT = with_likelihood_wording(convert(Catalog().card("prompts", "choice"), Prompt, "choice"), Catalog())


def requests(task, sample=SAMPLE, prompt=CHOICE_PROMPT):
    asked = []

    async def ask(item, request):
        asked.append(request)

    async def run():
        for job in LIKELIHOOD.plan(task, [Item(0, sample)], Prompter(task, prompt, 0)):
            await job.run(ask)

    asyncio.run(run())
    return asked


def task(**changes):
    return Task("t", {"loader": "x"}, **({"infer": "likelihood"} | changes))


def test_option_texts_are_asked_after_a_prompt_without_options_or_letters():
    (request,) = requests(task())
    assert request.choices == ("red", "blue")
    text = request.messages[-1].text
    assert text.startswith("What colour?\n")
    assert "red" not in text
    assert "letter" not in text
    assert request.messages[-1].images == (IMAGE,)
    assert request.shown == ("red", "blue")


def test_a_tasks_own_prompt_keeps_its_words_and_loses_the_options_and_the_beginning():
    own = Prompt(
        template="{instruction} {question} Options: {options}", instructions=("Look.",), prefix="The answer is"
    )
    (request,) = requests(task(prompt=own), prompt=own)
    assert request.messages[-1].text == "Look. What colour?"
    assert request.prefix == ""


def test_the_rest_of_the_prompt_stays_as_it_was_told():
    told = replace(CHOICE_PROMPT, system="Be brief.", style="one")
    (request,) = requests(task(), prompt=told)
    assert request.messages[-1].text.startswith("Be brief.")
    assert request.messages[-1].text.endswith("Bot:")
    assert "letter" not in request.messages[-1].text


def test_letters_are_asked_after_the_options_as_shown():
    (request,) = requests(task(infer_options={"candidates": "letters"}))
    assert request.choices == ("A", "B")
    assert "A. red" in request.messages[-1].text


@pytest.mark.parametrize(
    ("form", "expected"),
    [("{mark}. {text}", "A"), ("({mark}) {text}", "(A)"), ("{mark}) {text}", "A)"), ("{text}", "A")],
)
def test_a_mark_is_answered_as_it_is_shown(form, expected):
    assert mark_as_answered(Prompt(option_format=form), "A") == expected


def test_yes_and_no_are_the_candidates_of_a_yes_no_question():
    (request,) = requests(
        task(form=Form.YESNO), replace(SAMPLE, form=Form.YESNO, options=(), answers=("yes",)), Prompt()
    )
    assert request.choices == ("yes", "no")


def test_aliases_speak_for_their_option():
    (request,) = requests(task(), replace(SAMPLE, meta={"aliases": {"blue": ["azure", "navy"]}}))
    assert request.choices == ("red", "blue", "azure", "navy")
    assert request.likelihood.stands_for == (0, 1, 1, 1)


def test_content_free_priors_keep_the_form_of_the_prompt_and_show_nothing():
    (request,) = requests(task(infer_options={"calibration": "content-free"}))
    (turn,) = request.likelihood.baseline
    assert turn.text == request.messages[-1].text.replace("What colour?", "N/A")
    assert len(turn.images) == 1
    assert [colour for _, colour in open_image(turn.images[0]).getcolors()] == [(127, 127, 127)]


def test_unconditional_priors_see_neither_question_nor_picture():
    (request,) = requests(task(infer_options={"calibration": "unconditional"}))
    assert [(turn.text, turn.images) for turn in request.likelihood.baseline] == [("Answer:", ())]
    assert requests(task())[0].likelihood.baseline == ()


def test_only_prompt_mean_asks_for_the_prompts_own_probabilities():
    assert requests(task(infer_options={"reduction": "prompt-mean"}))[0].likelihood.with_prompt
    assert not requests(task(infer_options={"reduction": "mean"}))[0].likelihood.with_prompt


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"infer_options": {"reduction": "meen"}}, "did you mean 'mean'"),
        ({"infer_options": {"candidates": "letter"}}, "did you mean 'letters'"),
        ({"infer_options": {"kalibration": "none"}}, "did you mean 'calibration'"),
        ({"infer_options": {"reduction": "prompt-mean", "calibration": "unconditional"}}, "has no prior to take off"),
        ({"form": Form.OCR}, "likelihood needs candidates"),
    ],
)
def test_wrong_options_are_refused_by_name_before_any_sample_is_read(changes, message):
    with pytest.raises(ConfigError, match=message):
        LIKELIHOOD.read_options(task(**changes))
    with pytest.raises(ConfigError, match=message):
        LIKELIHOOD.plan(task(**changes), iter(()), Prompter(task(), CHOICE_PROMPT, 0))


def test_no_candidates_become_one_empty_candidate_that_every_model_refuses():
    bare = replace(SAMPLE, options=())
    request = build_request(Prompter(task(), Prompt(), 0), bare, TrialKey("t", "s"), LikelihoodOptions())
    assert request.choices == ("",)


def test_every_variant_and_repeat_is_planned():
    jobs = list(
        LIKELIHOOD.plan(
            task(variants=("base", "wording=1"), repeats=2), [Item(0, SAMPLE)], Prompter(task(), CHOICE_PROMPT, 0)
        )
    )
    assert [(key.variant, key.repeat) for job in jobs for key in job.keys] == [
        ("base", 0),
        ("base", 1),
        ("wording=1", 0),
        ("wording=1", 1),
    ]


def test_the_grey_picture_is_the_same_bytes_every_time():
    assert grey_image() == grey_image()


def test_the_wording_of_likelihood_is_part_of_the_runs_identity(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text('{"question": "Q?", "options": ["a", "b"], "answer": "A"}')

    def identity(**settings: Any) -> Any:
        """Return the id of a planned run, and its prompt as it is stored."""
        header = make_plan(RunSettings(tasks=("d.jsonl",), model="blind/first", **settings)).header
        return header.id, header.config["tasks"]["d"]["prompt"]

    said, likely = identity(), identity(infer_method="likelihood")
    told = identity(infer_method="likelihood", overrides=(("prompt.likelihood", ["In a word."]),))
    assert "likelihood" not in said[1], "a run of 0.1 that generates goes on"
    assert likely[1]["likelihood"] == Catalog().card("prompts", "likelihood")["instructions"]
    assert told[1]["likelihood"] == ["In a word."] and len({said[0], likely[0], told[0]}) == 3


def test_a_catalog_of_ones_own_cannot_change_the_wording_in_silence(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text('{"question": "Q?", "options": ["a", "b"], "answer": "A"}')
    (tmp_path / "cards" / "prompts").mkdir(parents=True)
    (tmp_path / "cards" / "prompts" / "likelihood.toml").write_text('instructions = ["Mine."]')
    settings = RunSettings(
        tasks=("d.jsonl",), model="blind/first", infer_method="likelihood", catalogs=(tmp_path / "cards",)
    )
    with pytest.raises(ConfigError, match=r"'likelihood' is in .* rename one"):
        make_plan(settings)

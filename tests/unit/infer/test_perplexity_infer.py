"""A template for each label: what is asked, how the parts become one trial, and what is refused."""

from __future__ import annotations

import asyncio
import math

import pytest

from snellen.core.config import convert
from snellen.core.errors import ConfigError, DataError
from snellen.core.jobs import Item
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Failure, FailureKind, Form, Image, Prediction, Sample, Timing, Usage
from snellen.data.catalog import Catalog
from snellen.infer.perplexity import PERPLEXITY
from snellen.kits.publish.harness_files import perplexity_fields
from snellen.prompt.build import Prompter
from snellen.scoring.scorers.option_likelihood import option_values, score

PROMPT = convert(Catalog().card("prompts", "choice"), Prompt, "choice")
IMAGE = Image(ref="/nowhere.png")
SAMPLE = Sample("s", "d", Form.CHOICE, "What colour?", (IMAGE,), ("red", "blue"), ("blue",))
TEMPLATES = {
    "A": {"prompt": "{question} Not {B}.", "answer": "{A}"},
    "B": {"prompt": "{question}\n{options}", "answer": "It is {option} ({mark})"},
}
VALUES = {"red": ([-1.0, -3.0], [-2.0]), "It is blue (B)": ([-0.5], [-0.5, -0.5]), "yes": ([-1.0], [-1.0])}
"""Answer -> the values of its prompt and of its own tokens."""


def task(templates=TEMPLATES, **changes):
    options = {"templates": templates} | changes.pop("infer_options", {})
    return Task("t", {"loader": "x"}, infer="perplexity", infer_options=options, **changes)


def run(task, sample=SAMPLE, fail="", stored=None):
    """What was asked for in parts, and what was stored."""
    parts, kept = [], []

    async def ask(item, request, settled=None, *, keep=True):
        if stored is not None:
            return stored
        if settled is not None:
            kept.append((request, settled))
            return settled
        assert not keep
        parts.append(request)
        if request.choices[0] == fail:
            return Prediction(request.key, failure=Failure(FailureKind.SERVER, "down"))
        prompt, answer = VALUES[request.choices[0]]
        detail = {
            "route": "x",
            "tokens": [len(answer)],
            "token_logprobs": [answer],
            "bytes": [3],
            "prompt_logprobs": prompt,
        }
        times = Timing(float(len(parts)), len(parts) + 0.5)
        return Prediction(request.key, loglikelihoods=(sum(answer),), usage=Usage(5, 1), timing=times, detail=detail)

    async def run():
        for job in PERPLEXITY.plan(task, [Item(0, sample)], Prompter(task, PROMPT, 0)):
            await job.run(ask)

    asyncio.run(run())
    return parts, kept


def test_every_label_has_its_own_words_and_the_same_picture():
    parts, _ = run(task())
    assert [part.messages[-1].text for part in parts] == ["What colour? Not blue.", "What colour?\nA. red\nB. blue"]
    assert [part.choices for part in parts] == [("red",), ("It is blue (B)",)]
    assert all(part.messages[-1].images == (IMAGE,) and part.likelihood.with_prompt for part in parts)


def test_the_least_perplexing_text_is_the_answer():
    _, ((request, prediction),) = run(task())
    assert request.choices == ("A", "B")
    assert option_values(request, prediction) == pytest.approx([-6 / 3, -1.5 / 3])
    (scored,) = score(SAMPLE, request, prediction, {})
    assert (scored.answer, scored.value, scored.rule) == ("blue", 1.0, "likelihood:prompt-mean")
    assert option_values(request, prediction, "sum") == [-2.0, -1.0], "other readings of the same trial"
    assert (prediction.usage, prediction.timing) == (Usage(10, 2), Timing(1.0, 2.5))
    assert prediction.detail["prompts"][0] == "What colour? Not blue."


def test_the_list_of_perplexities_as_another_tool_writes_it():
    _, ((request, prediction),) = run(task())
    fields = perplexity_fields(request, prediction)
    assert fields["prediction"] == "B"
    assert [(entry["label"], entry["ppl"]) for entry in fields["ppl_list"]] == [
        ("A", pytest.approx(2.0)),
        ("B", pytest.approx(0.5)),
    ]
    assert perplexity_fields(request, Prediction(request.key, text="B")) == {}
    assert math.exp(fields["ppl_list"][1]["ppl"]) > 1, "a mean, not its exponential"


def test_labels_may_be_the_texts_of_the_options():
    templates = {
        "yes": {"prompt": "{question}", "answer": "yes"},
        "NO": {"prompt": "Not so: {question}", "answer": "red"},
    }
    sample = Sample("s", "d", Form.YESNO, "Is it red?", answers=("yes",))
    parts, ((request, _),) = run(task(templates, form=Form.YESNO), sample)
    assert request.choices == ("yes", "NO")
    assert parts[1].messages[-1].text == "Not so: Is it red?"


def test_a_label_that_fails_fails_the_trial():
    parts, ((_, prediction),) = run(task(), fail="red")
    assert len(parts) == 1
    assert prediction.failure.message == "down"


def test_a_stored_trial_is_not_asked_again():
    _, ((_, prediction),) = run(task())
    assert run(task(), stored=prediction) == ([], [])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (task({}), "needs a template for each label"),
        (task({"A": "text"}), "infer_options"),
        (task({"A": {"prompt": "x"}}), "answer"),
        (task(form=Form.OPEN), "needs options"),
        (task(infer_options={"reduction": "men"}), "did you mean 'mean'"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_request(changed, message):
    with pytest.raises(ConfigError, match=message):
        PERPLEXITY.read_options(changed)


def test_an_option_without_a_template_and_an_unknown_field_are_named():
    with pytest.raises(DataError, match=r"no template for option 'B' \('blue'\); there are: A"):
        run(task({"A": TEMPLATES["A"]}))
    with pytest.raises(ConfigError, match=r"unknown field \{qestion\}"):
        run(task({"A": {"prompt": "{qestion}", "answer": "red"}}))
    with pytest.raises(DataError, match="has no options"):
        run(task(), Sample("s", "d", Form.CHOICE, "?"))

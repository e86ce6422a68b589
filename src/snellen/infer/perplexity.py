"""A template for each label to one trial: every label's whole text is scored, the least perplexing one is the answer.

A task says so as data: `infer = "perplexity"` and `[infer_options.templates.A]` with `prompt` and `answer`. Templates
may name `{question}`, `{options}`, each option by its mark (`{A}`), and the label's own `{mark}` and `{option}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.config import convert
from ..core.errors import ConfigError, DataError, not_among
from ..core.jobs import Ask, Item, RequestBuilder
from ..core.protocols import Capability, Inferencer
from ..core.tasks import Task
from ..core.types import REDUCTIONS, Form, Likelihood, Prediction, Request, Sample, Timing, TrialKey, Turn
from ..model.likelihood import sum_usages
from ..prompt.history import show_options
from ..prompt.template import render
from .likelihood import YES_NO

WHOLE = "prompt-mean"
"""The mean over all tokens of prompt and answer; its negative is what other harnesses call the perplexity."""

STORED = "prompts"
"""What only a whole trial has in its `detail`: the prompt of each label."""


class LabelTemplate(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked and answered under one label."""

    prompt: str
    answer: str


class PerplexityOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """A task's `infer_options`: a template a label, and what of its text counts."""

    templates: dict[str, LabelTemplate] = {}
    reduction: str = WHOLE


class Part(NamedTuple):
    """One label of a trial, and the request for its text."""

    label: str
    request: Request


@dataclass(frozen=True, slots=True)
class LabelsJob:
    """All labels of one trial, asked one after another and stored as one prediction."""

    item: Item
    keys: tuple[TrialKey]
    prompter: RequestBuilder
    options: PerplexityOptions

    async def run(self, ask: Ask) -> None:
        """Score each label's text; a label that fails fails the trial."""
        (key,) = self.keys
        sample = self.item.sample
        built = self.prompter.build(sample, key.variant, key.repeat)
        parts = list(
            label_requests(sample, built, show_options(self.prompter.prompt, built.marks, built.shown), self.options)
        )
        whole = replace(
            parts[0].request,
            choices=tuple(part.label for part in parts),
            likelihood=Likelihood(reduction=self.options.reduction, with_prompt=True),
        )
        replies: list[Prediction] = []
        for part in parts:
            reply = await ask(self.item, part.request, keep=False)
            if STORED in reply.detail:
                return  # the whole trial answered from the store
            if reply.failure is not None:
                await ask(self.item, whole, reply)
                return
            replies.append(reply)
        await ask(self.item, whole, join_labels(parts, replies))


class ByPerplexity(Inferencer):
    """Asks every trial how perplexing the text of each label is."""

    needs = frozenset({Capability.LIKELIHOOD})

    def read_options(self, task: Task) -> PerplexityOptions:
        """Check a task's templates by name."""
        where = f"infer_options of task {task.name!r}"
        options = convert(dict(task.infer_options), PerplexityOptions, where)
        if not options.templates:
            fix = 'add [infer_options.templates.A] with prompt = "…" and answer = "…", and so on for each label'
            raise ConfigError(f"{where}: perplexity needs a template for each label: {fix}")
        if options.reduction not in REDUCTIONS:
            raise ConfigError(f"{where}: reduction {not_among(options.reduction, REDUCTIONS, ' is unknown')}")
        if task.form not in (Form.CHOICE, Form.YESNO, Form.AUTO):
            raise ConfigError(
                f"task {task.name!r} is of form {task.form.value!r}: perplexity needs options to choose from"
            )
        return options

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[LabelsJob]:
        """Yield a job for every trial; a wrong option is refused before the first."""
        options = self.read_options(task)
        for item in items:
            for variant, repeat in product(task.variants, range(task.repeats)):
                yield LabelsJob(item, (TrialKey(task.name, item.sample.id, variant, repeat),), prompter, options)


def label_requests(sample: Sample, built: Request, shown: str, options: PerplexityOptions) -> Iterator[Part]:
    """Yield the request of each label, in the order of the options; an option without a template is refused."""
    texts = built.shown or YES_NO * (sample.form is Form.YESNO)
    if not texts:
        raise DataError(f"sample {sample.id!r} has no options, so there are no labels to score")
    marks = built.marks or texts
    by_mark = dict(zip(marks, texts, strict=True)) if built.marks else {}
    *before, last = built.messages
    for mark, text in zip(marks, texts, strict=True):
        label = find_label(options.templates, mark, text)
        if label is None:
            named = ", ".join(options.templates)
            raise DataError(f"sample {sample.id!r}: no template for option {mark!r} ({text!r}); there are: {named}")
        fields = {"question": sample.question, "options": shown, **by_mark, "mark": mark, "option": text}
        prompt, answer = (
            render(each, fields) for each in (options.templates[label].prompt, options.templates[label].answer)
        )
        messages = (*before, Turn(last.role, prompt, last.images))
        asked = replace(built, messages=messages, prefix="", choices=(answer,), likelihood=Likelihood(with_prompt=True))
        yield Part(label, asked)


def find_label(templates: Mapping[str, object], mark: str, text: str) -> str | None:
    """Return the label that means an option: its mark, or its text in any case."""
    if mark in templates:
        return mark
    return next((label for label in templates if label.casefold() == text.casefold()), None)


def join_labels(parts: Sequence[Part], replies: Sequence[Prediction]) -> Prediction:
    """Return one prediction of all labels: a log-likelihood a label, and every text's values as they came."""
    return Prediction(
        parts[0].request.key,
        loglikelihoods=tuple(sum(reply.loglikelihoods or ()) for reply in replies),
        usage=sum_usages([reply.usage for reply in replies]),
        timing=_span([reply.timing for reply in replies if reply.timing is not None]),
        cached=all(reply.cached for reply in replies),
        images=replies[0].images,
        detail=_join_details(parts, [reply.detail for reply in replies]),
    )


def _join_details(parts: Sequence[Part], details: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {
        name: [each[name][0] for each in details] for name in ("tokens", "token_logprobs", "bytes")
    }
    return joined | {
        "route": details[0].get("route"),
        STORED: [part.request.messages[-1].text for part in parts],
        "answers": [part.request.choices[0] for part in parts],
        "prompt_logprobs": [each["prompt_logprobs"] for each in details],
    }


def _span(times: Sequence[Timing]) -> Timing | None:
    return Timing(min(time.sent for time in times), max(time.done for time in times)) if times else None


PERPLEXITY = ByPerplexity()

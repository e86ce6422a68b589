"""White box: each trial asks how likely every candidate answer is, given pictures and question."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import PIL.Image
from msgspec import Struct
from msgspec.structs import replace

from ..core.config import convert
from ..core.errors import ConfigError, not_among
from ..core.jobs import Item, OneRequest, RequestBuilder
from ..core.protocols import Capability, Inferencer
from ..core.tasks import Prompt, Task
from ..core.types import REDUCTIONS, Form, Image, Likelihood, Request, Sample, TrialKey, Turn
from ..data.catalog import Catalog
from ..data.images.decode import encode_png
from ..prompt.template import render
from .generate import one_request_each

CANDIDATES = ("text", "letters")
CALIBRATIONS = ("none", "unconditional", "content-free")
YES_NO = ("yes", "no")
OPTIONS = re.compile(r"\s*(?:\b(?:Options|Choices):\s*)?\{(?:options|choices)\}")
"""The options in a template, with their heading."""
CONTENT_FREE = "N/A"
GREY_SIDE_PX = 224


class LikelihoodOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """A task's `infer_options`: what the candidates are, and how their likelihoods are read."""

    candidates: str = "text"
    """`text`: the option texts, after a prompt without options; `letters`: their marks, after a prompt with them."""
    reduction: str = "sum"
    calibration: str = "none"
    """`unconditional`: less the likelihood of the bare answer; `content-free`: less that after a grey picture and no
    question."""


class ByLikelihood(Inferencer):
    """Asks every trial how likely each candidate is."""

    needs = frozenset({Capability.LIKELIHOOD})

    def read_options(self, task: Task) -> LikelihoodOptions:
        """Check a task's likelihood options by name."""
        return read_likelihood_options(task, task.infer_options)

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[OneRequest]:
        """Yield a job for every trial; a wrong option is refused before the first."""
        options = self.read_options(task)
        prompter = without_options(prompter, options)
        return one_request_each(task, items, lambda sample, key: build_request(prompter, sample, key, options))


def read_likelihood_options(task: Task, table: Mapping[str, Any]) -> LikelihoodOptions:
    """Check a table of likelihood options, and that the task has candidates."""
    options = convert(dict(table), LikelihoodOptions, f"infer_options of task {task.name!r}")
    for name, known in (("candidates", CANDIDATES), ("reduction", REDUCTIONS), ("calibration", CALIBRATIONS)):
        value = getattr(options, name)
        if value not in known:
            raise ConfigError(f"task {task.name!r}: {name} {not_among(value, known, ' is unknown')}")
    if options.reduction == "prompt-mean" and options.calibration != "none":
        raise ConfigError(
            f"task {task.name!r}: prompt-mean, of the whole text, has no prior to take off: leave out calibration"
        )
    if task.form not in (Form.CHOICE, Form.YESNO, Form.AUTO):  # what is decided by the records is checked after them
        raise ConfigError(
            f"task {task.name!r} is of form {task.form.value!r}: likelihood needs candidates (choice or yesno)"
        )
    return options


def without_options(prompter: RequestBuilder, options: LikelihoodOptions) -> RequestBuilder:
    """Return what asks for the candidates: options hidden, unless their letters are the candidates."""
    if options.candidates == "letters":
        return prompter
    return prompter.with_prompt(prompt_without_options(prompter.prompt))


def prompt_without_options(prompt: Prompt) -> Prompt:
    """Return the prompt to ask for option texts: no options in it, no forced beginning, and no plea for a letter."""
    bare = replace(prompt, template=OPTIONS.sub("", prompt.template), prefix="")
    wordings = prompt.likelihood or prompt.hidden or prompt.instructions or ("",)
    return replace(bare, instructions=prompt.likelihood or prompt.instructions, hidden=wordings)


def with_likelihood_wording(prompt: Prompt, catalog: Catalog) -> Prompt:
    """Return the prompt with the wordings that ask for option texts, where its own are the default plea for a letter.

    They are part of the prompt, and so of the run's identity, before anything is asked.
    """
    own = prompt.likelihood or prompt.hidden or list(prompt.instructions) != _wordings(catalog, "choice")
    return prompt if own else replace(prompt, likelihood=tuple(_wordings(catalog, "likelihood")))


def _wordings(catalog: Catalog, name: str) -> list[str]:
    wordings: list[str] = catalog.card("prompts", name)["instructions"]
    return wordings


def build_request(
    prompter: RequestBuilder,
    sample: Sample,
    key: TrialKey,
    options: LikelihoodOptions,
    replies: Sequence[str] | None = None,
) -> Request:
    """Return the request of one trial, with its candidates and, if told, the prompt its priors are taken after."""
    request = prompter.build(sample, key.variant, key.repeat, replies)
    choices, stands_for = make_candidates(sample, request, prompter.prompt, options)
    likelihood = Likelihood(
        reduction=options.reduction,
        baseline=make_baseline(prompter, sample, key, options.calibration),
        stands_for=stands_for,
        with_prompt=options.reduction == "prompt-mean",
    )
    return replace(request, choices=choices or ("",), likelihood=likelihood)


def make_candidates(
    sample: Sample, request: Request, prompt: Prompt, options: LikelihoodOptions
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the candidates, and which option each is a name of (empty where each is its own).

    Other names of an option come from the sample: `meta["aliases"] = {option text: [other names]}`.
    """
    if options.candidates == "letters" and request.marks:
        return tuple(mark_as_answered(prompt, mark) for mark in request.marks), ()
    texts = request.shown or YES_NO * (sample.form is Form.YESNO)
    names = list(_names(texts, sample.meta.get("aliases") or {}))
    stands_for = tuple(index for index, _ in names) if len(names) > len(texts) else ()
    return tuple(name for _, name in names), stands_for


def _names(texts: Sequence[str], aliases: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, str]]:
    """Yield the number of an option with its text and with each of its other names, each once."""
    for index, text in enumerate(texts):
        yield from ((index, name) for name in dict.fromkeys([text, *aliases.get(text, ())]))


def mark_as_answered(prompt: Prompt, mark: str) -> str:
    """Return a mark as an answer would write it: `(A)` where options are shown as `(A) text`, else `A`."""
    shown = render(prompt.option_format.partition("{text}")[0].strip(), {"mark": mark, "text": ""})
    return shown.rstrip(".: ") or mark


def make_baseline(prompter: RequestBuilder, sample: Sample, key: TrialKey, calibration: str) -> tuple[Turn, ...]:
    """Return the messages after which the candidates' priors are taken; none without calibration."""
    if calibration == "unconditional":
        return (Turn("user", "Answer:"),)
    if calibration == "content-free":
        empty = replace(sample, question=CONTENT_FREE, images=tuple(grey_image() for _ in sample.images), turns=())
        return prompter.build(empty, key.variant, key.repeat).messages
    return ()


def grey_image() -> Image:
    """Return a plain grey picture, as a data URL."""
    data = encode_png(PIL.Image.new("RGB", (GREY_SIDE_PX, GREY_SIDE_PX), (127, 127, 127)))
    return Image(ref="data:image/png;base64," + base64.b64encode(data).decode(), mime="image/png")


LIKELIHOOD = ByLikelihood()

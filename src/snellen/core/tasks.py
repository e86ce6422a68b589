"""What people write in cards, and what a run is headed with: prompts, tasks, the header of run.db. Pure data."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .types import BASE_VARIANT, Form, Params, Showing


class Shot(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A fixed in-context example: text only. With options, its answer is one of them and gets their mark."""

    question: str
    answer: str
    options: tuple[str, ...] = ()


class Shots(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Examples drawn from the data: which retriever, how many, from where."""

    retriever: str = "zero"
    """zero, fixed, random, similar or bm25."""
    count: int = 0
    ids: tuple[str, ...] = ()
    """The samples of `fixed`."""
    images: bool = True
    """Whether an example brings its picture."""
    pool: str = ""
    """The hash of the examples, where they come from a file of their own."""


class Prompt(Struct, frozen=True, forbid_unknown_fields=True):
    """How a Sample becomes messages; pure data (catalog/prompts/*.toml or inline in a task).

    A template without `{instruction}` puts the instruction before the first thing the user says; one without
    `{options}` hides the options, and `hidden` then is the pool of wordings. One without `{question}` is refused, but
    where it hides the options too and has `hidden` wordings: then all of it stands in the picture.
    """

    template: str = "{question}\n{options}\n{instruction}"
    instructions: tuple[str, ...] = ()
    """The pool of wordings; the first is the default, variant `wording=i` picks another."""
    system: str = ""
    marks: str = "upper"
    option_format: str = "{mark}. {text}"
    option_separator: str = "\n"
    prefix: str = ""
    options_format: str = "{options}"
    """What stands around the list of options (`Options: {options}.`)."""
    hidden: tuple[str, ...] = ()
    """The pool of wordings when options are not shown; empty: `instructions`."""
    likelihood: tuple[str, ...] = ()
    """The pool of wordings when the likelihood of option texts is asked; empty: `hidden`, or `instructions`."""
    ask: str = "before"
    """`before`: an instruction precedes the question; `instead`: it is the question and may name the sample's
    `{slots}`."""
    answer_space: str = ""
    """A sentence after the instruction (or question) when options are hidden; may name `{answers}`."""
    yesno: str = ""
    """The same for questions whose options are yes and no."""
    shot: Shot | None = None
    in_context: bool = False
    """Whether the shot is used."""
    shot_marks: str = ""
    """The marks of the shot; empty: those of the trial."""
    shots: Shots = Shots()
    options_in_history: bool = True
    style: str = "chat"
    """`chat`: messages with roles; else a string style (catalog/styles, or a file), or `meta:FILE`, a meta template."""
    place_pictures: bool = True
    """Whether a marker (`<image 1>`) in template, question or options becomes its picture; else it stays text and all
    pictures stand first, as before version 0.3."""
    white_space: str = "trimmed"
    """`trimmed`: the text has none at its ends; `kept`: it ends as the template does; `parts`: none at the ends of
    every text between pictures either."""
    video: Showing = Showing()
    """How videos are shown: which frames, how large, with which texts between them."""


class Figure(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One number that a benchmark is quoted by, as data: a rule over one metric's scores (docs/adr/protocols.md)."""

    name: str
    rule: str = "mean"
    """One of `snellen.scoring.aggregates.quoted_figures.RULES`."""
    metric: str = "accuracy"
    by: tuple[str, ...] = ()
    """The tags that make a group, together."""
    of: tuple[str, ...] = ()
    """Of `mean-of`: figures named before, or metrics."""
    where: dict[str, tuple[str, ...]] = {}
    """Only samples whose tag has one of these values."""
    positive: str = "yes"
    """Of precision, recall, F1 and yes-ratio: which answer is the positive one."""
    scale: float = 1.0
    """What the share is multiplied by: 1000 for OCRBench's points."""
    besides: tuple[str, ...] = ()
    """Variants that do not count: what was asked without the video is no part of an accuracy with it."""
    against: str = ""
    """Of `gain`: the variant that was asked before anything could be learnt (`control=no-video`)."""
    groups: int = 0
    """Of `mean-of-groups`: how many the benchmark has; over fewer the figure has no value. 0: any number."""


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """A measurement as pure data: what to load, how to ask, how to score.

    Example:
        >>> task = snellen.Task("mine", {"loader": "table", "path": "my.jsonl"}, repeats=3)
        >>> task.infer, task.variants
        ('generate', ('base',))
    """

    name: str
    dataset: dict[str, Any]
    """`loader` names a registered loader; the rest are its arguments."""
    form: Form = Form.CHOICE
    prompt: str | Prompt = ""
    infer: str = "generate"
    infer_options: dict[str, Any] = {}
    """What only this inferencer understands (`snellen.infer.likelihood.LikelihoodOptions`)."""
    params: Params = Params()
    repeats: int = 1
    variants: tuple[str, ...] = (BASE_VARIANT,)
    scorers: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    shuffle_options: bool = False
    version: str = "1"
    title: str = ""
    dimension: str = ""
    licence: str = ""
    notes: str = ""
    protocol: str = ""
    """Whose way of asking, reading and counting this is; a card says which it has (docs/adr/protocols.md)."""
    fallback: str = ""
    """What the protocol's own tool does where nothing was read; its number stands beside ours."""
    figures: tuple[Figure, ...] = ()
    headline: str = ""
    """The metric that the benchmark is quoted by; empty: as tables choose it."""
    score_options: dict[str, Any] = {}
    """What its scorers and aggregates are told."""
    twins: tuple[dict[str, Any], ...] = ()
    """Rules by which questions are drawn anew, `find`, `draw` and `answer` (`snellen.core.twins.TwinRule`)."""


class ProtocolReading(Struct, frozen=True, omit_defaults=True):
    """How one protocol of a card reads and counts replies: the fields of a task that a run can be scored by again."""

    scorers: tuple[str, ...] = ()
    score_options: dict[str, Any] = {}
    fallback: str = ""
    figures: tuple[Figure, ...] = ()
    headline: str = ""


MOST_GROUPS = 40
"""A tag with more values than this is an identifier, not a group."""


class PlannedCounts(Struct, frozen=True, omit_defaults=True):
    """What a task plans, beside its trials: so that groups and chains not yet asked are counted too."""

    samples: int = 0
    chains: int = 0
    """Samples that belong together count once: dialogues, documents, chains."""
    tags: dict[str, dict[str, int]] = {}
    """Tag -> value as text -> samples; identifiers are left out."""


class RunHeader(Struct, frozen=True):
    """The header of run.db. `config` is everything that changes results, so its hash is the run's id."""

    id: str
    config: dict[str, Any]
    versions: dict[str, str]
    created: str
    command: str = ""
    model: str = ""
    tasks: list[Task] = []
    planned: dict[str, int] = {}
    """Trials by task; what the counts of every report add up to."""
    counted: dict[str, PlannedCounts] = {}
    """What the trials consist of, by task; runs of 0.1 do not say."""
    protocols: dict[str, dict[str, ProtocolReading]] | None = None
    """Of each task the protocols of its card, by name, as they were when it was asked; None: written before 0.3."""

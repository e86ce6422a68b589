"""Samples as ready-made dicts for programs of one's own: the data loader with the argument names of ReForm-Eval."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...core.config import convert
from ...core.errors import UsageError, not_among
from ...core.folders import cache_folder
from ...core.protocols import LoadContext
from ...core.tasks import Prompt, Task
from ...core.types import Form, Sample
from ...data.catalog import Catalog
from ...data.images.decode import open_image
from ...extract.choice import chosen_text
from ...infer.dialogue import most_common
from ...prompt.build import Prompter, Spoken
from ...prompt.duplicate import name_variant
from ...prompt.styles import Style, load_style
from ...prompt.template import apply_pack, read_pack
from .card_loader import load as load_samples

FORMULATIONS = {
    "SingleChoice": (Form.CHOICE, Form.YESNO),
    "Generation": (Form.CAPTION, Form.OPEN),
    "KIEOpenEnded": (Form.KIE,),
    "OCROpenEnded": (Form.OCR, Form.KIE),
}
"""Of KIE sets the first is usual; ReForm-Eval's own commands ask POIE and SROIE as OCROpenEnded too."""
METHODS = ("generation", "likelihood")


class ReformDataset:
    """Random access to samples as dicts; repeat k of sample i is item `i * data_duplication + k`.

    Lazy (pictures are opened when an item is read), seeded, without hidden state: any number of workers may share it.
    """

    def __init__(
        self,
        task: Task,
        prompt: Prompt,
        samples: Callable[[], Iterator[Sample]],
        *,
        seed: int = 0,
        data_duplication: int = 1,
        random_instruct: bool = False,
        shuffle_options: bool = False,
        style: Style | None = None,
    ) -> None:
        self._prompter = Prompter(task, prompt, seed)
        self._read = samples
        self._samples: list[Sample] | None = None
        self._repeats = data_duplication
        self._random_instruct = random_instruct
        self._shuffle = shuffle_options
        self._style = style

    def __len__(self) -> int:
        return len(self.samples) * self._repeats

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"item {index} of {len(self)}")
        return self.item(index % len(self))

    @property
    def samples(self) -> list[Sample]:
        """Return the samples behind the items, read once."""
        if self._samples is None:
            self._samples = list(self._read())
        return self._samples

    def sample_of(self, index: int) -> Sample:
        """Return the sample behind an item."""
        return self.samples[index // self._repeats]

    def describe(self, index: int, replies: Sequence[str] | None = None) -> dict[str, Any]:
        """Return one item without its picture; `replies` stand for the right answers to earlier rounds."""
        return _describe(self.sample_of(index), self.speak(index, replies), self._style)

    def item(self, index: int, replies: Sequence[str] | None = None) -> dict[str, Any]:
        """Return one item with its picture."""
        sample = self.sample_of(index)
        item = self.describe(index, replies)
        item["image"] = open_image(sample.images[0]).convert("RGB") if sample.images else None
        if len(sample.images) > 1:
            item["images"] = [open_image(image).convert("RGB") for image in sample.images]
        return item

    def speak(self, index: int, replies: Sequence[str] | None = None) -> Spoken:
        """Return what is said for one item."""
        place, repeat = divmod(index, self._repeats)
        sample = self.samples[place]
        pool = max(len(self._prompter.prompt.instructions), len(sample.meta.get("wordings") or ()), 1)
        wording = (repeat if self._random_instruct else place) % pool
        return self._prompter.speak(sample, name_variant(wording, repeat if self._shuffle else None), repeat, replies)


class OnlineDataset(ReformDataset):
    """Dialogues round by round: a round can be read once the answers to the one before it were fed back."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._heard: dict[str, list[str]] = {}

    @property
    def samples(self) -> list[Sample]:
        """Return the samples, all first rounds first."""
        if self._samples is None:
            found = list(self._read())
            self._samples = sorted(found, key=lambda sample: int(sample.tags.get("round") or 0))
        return self._samples

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample = self.sample_of(index)
        number = len(sample.turns) // 2
        replies = [self._reply(f"{sample.group}_{earlier}", sample.id) for earlier in range(number)]
        return self.item(index, replies)

    def update_history(self, predictions: Sequence[Sequence[str]]) -> None:
        """Feed back `[[sample_id, answer], …]`; whole replies will do; the most common of all repeats counts."""
        for name, answer in predictions:
            self._heard.setdefault(name, []).append(answer)

    def answer_of(self, index: int, reply: str) -> list[str]:
        """Return `[sample_id, option text or reply]` for `update_history`."""
        spoken = self.speak(index)
        return [self.sample_of(index).id, chosen_text(reply, spoken.marks, spoken.shown)]

    def _reply(self, name: str, asked: str) -> str:
        heard = self._heard.get(name, [])
        if len(heard) < self._repeats:
            count = f"{len(heard)} of {self._repeats} times"
            raise UsageError(f"{asked}: the answer to {name} was fed back {count}; call update_history first")
        return most_common(heard[: self._repeats])


def _describe(sample: Sample, spoken: Spoken, style: Style | None) -> dict[str, Any]:
    speech = spoken.speech
    names = {"user": "human"}
    item: dict[str, Any] = {"sample_id": sample.id, "question": speech.question, "instruct": speech.instruction}
    if sample.options:
        item["answer_options"] = list(spoken.shown)
        item["answer"] = spoken.shown.index(sample.answers[0])
        item["question_with_option"] = speech.query
    elif sample.form is Form.CAPTION:
        item["references"] = list(sample.answers)
    else:
        item["answer"] = sample.answers[0] if len(sample.answers) == 1 else list(sample.answers)
    item["history"] = [{"from": names.get(turn.role, turn.role), "value": turn.text} for turn in speech.history]
    if style is not None:
        item["text"] = style.speak(speech)
    if "round" in sample.tags:
        item["round_id"] = sample.tags["round"]
    return item


def open_dataset(
    name: str,
    *,
    formulation: str | None = None,
    inference_method: str = "generation",
    in_context_sample: bool = False,
    random_instruct: bool = False,
    data_duplication: int = 1,
    shuffle_options: bool = False,
    option_mark: str | None = "upper",
    capitalize: bool = False,
    load_from_hf: bool = False,
    offline_from_hf: bool = False,
    online_multi_round: bool = False,
    options_in_history: bool = True,
    response_prefix: str = "",
    preprocessor: str | Style | None = "one",
    prompt_pack: str | Path | None = None,
    data_root: str | Path | None = None,
    seed: int = 0,
    limit: int | None = None,
    catalogs: Sequence[str | Path] = (),
    **dataset: Any,
) -> ReformDataset:
    """Return a card's samples as dicts. `dataset` sets fields of its dataset table (`path=…`, `source="raw"`)."""
    catalog = Catalog(catalogs)
    source = "hub" if load_from_hf else "prepared" if offline_from_hf else None
    fields = {"source": source, "capitalise": capitalize or None, **dataset}
    task = catalog.task(name, [(f"dataset.{key}", value) for key, value in fields.items() if value is not None])
    check_task(task, formulation, inference_method, data_duplication)
    prompt = catalog.prompt(task)
    if prompt_pack is not None:
        prompt = apply_pack(prompt, task, read_pack(prompt_pack))
    shown: dict[str, Any] = {"shot": in_context_sample, "marks": option_mark, "prefix": response_prefix}
    prompt = _adapt(prompt, task.name, inference_method, options_in_history=options_in_history, **shown)
    context = LoadContext(seed, None if data_root is None else Path(data_root), cache_folder() / "generated", limit)
    kind = OnlineDataset if online_multi_round and inference_method in METHODS else ReformDataset
    style = load_style(preprocessor) if isinstance(preprocessor, str) else preprocessor
    repeats: dict[str, Any] = {"data_duplication": data_duplication, "random_instruct": random_instruct}
    repeats["shuffle_options"] = shuffle_options
    return kind(task, prompt, partial(load_samples, task, context), seed=seed, style=style, **repeats)


LOADER_SETTINGS = frozenset(inspect.getfullargspec(open_dataset).kwonlyargs) - {"limit", "seed", "catalogs"}
"""What only this loader understands: a call that names one of these wants its dicts."""


DIALOGUE = "reform/dialogue"
"""The prompt of the datasets that capitalise by default: dialogues."""


def open_named(
    dataset_name: str, formulation: str, dataset_config: str | None = None, **arguments: Any
) -> ReformDataset:
    """Return a dataset by ReForm-Eval's own names with the defaults of its function: `snellen.load_reform_dataset`."""
    defaults: dict[str, Any] = {"data_duplication": 5, "option_mark": None}
    defaults |= dict.fromkeys(("in_context_sample", "random_instruct", "shuffle_options"), True)
    card = find_card(dataset_name, dataset_config)
    defaults["capitalize"] = Catalog().task(card).prompt == DIALOGUE
    if "offline_from_hf" not in arguments and "source" not in arguments:
        defaults["load_from_hf"] = True
    return open_dataset(card, formulation=formulation, **(defaults | arguments))


def find_card_of_config(config: str) -> str:
    """Return the card that stands for a configuration file of ReForm-Eval, by the file's name."""
    catalog = Catalog()
    ours = [name for name in catalog.names("datasets") if name.startswith("reform/")]
    cards = {catalog.task(name).dataset["keys"]["config"]: name for name in ours}
    if config not in cards:
        raise UsageError(f"no configuration of ReForm-Eval is called {not_among(config, sorted(cards))}")
    return cards[config]


def find_card(dataset_name: str, dataset_config: str | None) -> str:
    """Return the card that ReForm-Eval's commands call so."""
    catalog = Catalog()
    ours = [name for name in catalog.names("datasets") if name.startswith("reform/")]
    cards = {name: catalog.task(name).dataset["keys"] for name in ours}
    config = Path(dataset_config).name if dataset_config else None
    of_name = {name: keys["config"] for name, keys in cards.items() if keys["dataset_name"] == dataset_name}
    matches = [name for name, own_config in of_name.items() if config in (None, own_config)]
    if len(matches) == 1:
        return matches[0]
    if not of_name:
        names = sorted({keys["dataset_name"] for keys in cards.values()})
        raise UsageError(f"no dataset_name {not_among(dataset_name, names)}")
    configs = sorted(of_name.values())
    raise UsageError(f"dataset_name {dataset_name!r} with dataset_config {config!r}: give one of {', '.join(configs)}")


def check_task(task: Task, formulation: str | None, method: str, duplication: int) -> None:
    """Refuse a formulation that is not the card's, and methods and repeats that ReForm-Eval does not have."""
    if formulation is not None and formulation not in FORMULATIONS:
        raise UsageError(f"formulation {not_among(formulation, FORMULATIONS, ' is unknown')}")
    if formulation is not None and task.form not in FORMULATIONS[formulation]:
        fits = next(name for name, forms in FORMULATIONS.items() if task.form in forms)
        raise UsageError(f"{task.name} is formulated as {fits}, not {formulation}")
    if method not in METHODS:
        raise UsageError(f"inference_method {not_among(method, METHODS, ' is unknown')}")
    if duplication < 1:
        raise UsageError(f"data_duplication {duplication} must be 1 or more")


def _adapt(
    prompt: Prompt, name: str, method: str, *, shot: bool, marks: str | None, prefix: str, options_in_history: bool
) -> Prompt:
    """Return the prompt for one inference method: for likelihood the options and the prefix are left out."""
    fields: dict[str, Any] = {"in_context": shot, "marks": marks or "random", "options_in_history": options_in_history}
    fields["place_pictures"] = False  # an item is a text and its pictures apart, as in the original
    if prefix:
        fields["prefix"] = prefix
    if method == "likelihood":
        bare = prompt.template.replace("{options}", "").replace("{choices}", "")
        fields |= {"template": bare, "prefix": "", "options_in_history": False}
    return convert({**msgspec.to_builtins(prompt), **fields}, Prompt, f"prompt of {name!r}")

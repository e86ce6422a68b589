"""CURE-format items and the workshop's published sets to chains: asked as they are measured, answered step by step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ...core.config import convert
from ...core.errors import UsageError
from ...core.tasks import Prompt, Task
from ...core.types import Request, Sample
from ...data.catalog import Catalog
from ...data.loaders.cure import INFERENCE, CureItem, CureSource, PictureFinder, is_cure_file, item_samples, read_items
from ...prompt.build import Prompter
from ...prompt.template import fill
from .chains import Chain

TASK = "cure-rationale"
PUBLISHED = "task.toml"


class RationaleWords(Struct, frozen=True, forbid_unknown_fields=True):
    """How a chain is told: catalog/train/*.toml."""

    prompt: str
    step: str
    answer: str
    join: str = "\n"
    title: str = ""
    control: tuple[str, str] = ("<good>", "<bad>")
    """The words before a prompt whose reply was judged good, and bad (conditional training)."""


def read_words(catalog: Catalog, name: str) -> RationaleWords:
    """Return one card of words."""
    return convert(catalog.card("train", name), RationaleWords, f"train card {name!r}")


def find_cure_task(path: Path, catalog: Catalog, image_root: Path | None) -> Task | None:
    """Return the task of annotated chains behind a path (file, task file or published set), or None if it is none."""
    if path.is_dir() and (path / "published" / PUBLISHED).is_file():  # a whole workshop
        path = path / "published"
    if path.is_dir() and (path / PUBLISHED).is_file():
        path = path / PUBLISHED
    root = [("dataset.image_root", str(image_root))] if image_root else []
    if path.suffix == ".toml":
        task = catalog.task(str(path), root)
        if task.dataset.get("loader") != "cure":
            raise UsageError(f"{path} is no task of chains (loader cure): give its rows as messages instead")
        return task
    if path.is_file() and is_cure_file(path):
        return catalog.task(TASK, [("dataset.path", str(path)), *root])
    return None


def read_cure_chains(task: Task, catalog: Catalog, words: RationaleWords, *, seed: int, steps: bool) -> Iterator[Chain]:
    """Yield for each item its inference with the rationale, and if told its steps with their short answers."""
    source = convert(task.dataset, CureSource, f"dataset of task {task.name!r}")
    find = PictureFinder(source, None)
    prompter = Prompter(task, _prompt_of(task, catalog, words), seed)
    for number, item in enumerate(read_items(Path(source.path))):
        if source.items is not None and number >= source.items:
            return
        for sample in item_samples(item, number, source, find, task.name):
            if steps or sample.tags["role"] == INFERENCE:
                yield _chain(sample, prompter.build(sample), item, words)


def _prompt_of(task: Task, catalog: Catalog, words: RationaleWords) -> Prompt:
    """Return the task's own prompt, or that of the words: a published set names none."""
    if task.prompt:
        return catalog.prompt(task)
    return convert(catalog.card("prompts", words.prompt), Prompt, f"prompt {words.prompt!r}")


def _chain(sample: Sample, request: Request, item: CureItem, words: RationaleWords) -> Chain:
    answer = sample.answers[0]
    mark = request.marks[request.shown.index(answer)] if request.marks else ""
    last = fill(words.answer, {"mark": mark, "text": answer})
    facts = tuple(step.candidate[step.gt].strip() for step in item.cot_inference.chain)
    lines = []
    if sample.tags["role"] == INFERENCE:
        told = zip(item.cot_inference.chain, facts, strict=True)
        lines = [fill(words.step, {"question": step.question, "answer": fact}) for step, fact in told]
    reply = words.join.join([*lines, last])
    labels = facts if sample.tags["role"] == INFERENCE else ()
    shown = request.shown or sample.options
    return Chain(sample.id, request.messages, reply, answers=(answer,), options=shown, facts=labels)

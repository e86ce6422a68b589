"""Worked examples from a file of their own (`--shots-file`): read as the task's rows are, none of them a tested row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ..core.errors import UsageError
from ..core.protocols import LoadContext
from ..core.registry import Registry
from ..core.tasks import Prompt, Shots
from ..core.types import Form, Sample
from ..data.catalog import Catalog
from ..data.dataset import Dataset, fingerprint_of, survey, without_places
from ..prompt.shots import Finder, make_retriever
from .settings import RunSettings

OWN = "shots-file:"
"""Before the ids of examples: a row of the same id in the task is another row."""
READ_ALIKE = ("dataset.columns", "dataset.preset", "dataset.duplicates", "form")
"""What is told of the task's rows holds for the examples too."""


def load_examples(settings: RunSettings, catalog: Catalog, registry: Registry, folder: Path) -> list[Sample]:
    """Return the answered rows of the file of examples; missing pictures are refused like the task's own."""
    file = str(settings.shots_file)
    told = [(key, value) for key, value in settings.task_overrides() if key in READ_ALIKE]
    task = catalog.task(file, told)
    context = LoadContext(seed=settings.seed, workdir=folder / "images")
    rows = Dataset(task, registry.get("loader", task.dataset["loader"]), context)
    content = survey(rows)
    if content.missing_count:
        raise UsageError(f"--shots-file {file}: {content.missing_said} missing ({'; '.join(content.missing)})")
    return [msgspec.structs.replace(sample, id=OWN + sample.id, group=None) for sample in rows if sample.answers]


def without_tested(examples: Iterable[Sample], tested: Iterable[Sample]) -> list[Sample]:
    """Return the examples that are no row of the task: one of them would show its own answer."""
    known = {_asks(sample) for sample in tested}
    return [sample for sample in examples if _asks(sample) not in known]


def _asks(sample: Sample) -> bytes:
    """Return all that is asked: two rows that ask the same are the same row, whatever they are called."""
    bare = without_places(sample)
    asked = msgspec.structs.replace(bare, id="", dataset="", answers=(), tags={}, group=None, meta={})
    names = [image.sha256 or Path(image.ref).name for image in sample.images]
    return msgspec.json.encode((asked, names))


def drawn_from_file(prompt: Prompt, form: Form, examples: Sequence[Sample]) -> tuple[Prompt, Finder | None]:
    """Return the prompt with the examples' hash in it, and what finds examples of this form among them."""
    shots = prompt.shots
    if shots.retriever == "zero":
        raise UsageError("--shots-file needs --shots N: how many examples to show")
    pool = [sample for sample in examples if sample.form is form]
    if len(pool) < max(shots.count, 1):
        wanted = f"{shots.count} examples of form {form.value} are wanted"
        raise UsageError(f"--shots-file: {wanted}, and {len(pool)} answered rows of it are no rows of the task")
    told = msgspec.structs.replace(shots, ids=tuple(OWN + name for name in shots.ids))
    finder = make_retriever(told, pool, own=False)
    kept: Shots = msgspec.structs.replace(shots, pool=fingerprint_of(pool))
    return msgspec.structs.replace(prompt, shots=kept), finder

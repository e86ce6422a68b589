"""`dataset_duplication`, `random_instruct` and `shuffle_options` to variants and repeats."""

from __future__ import annotations

import msgspec

from ..core.errors import UsageError
from ..core.tasks import Prompt, Task
from ..core.types import BASE_VARIANT
from ..core.variants import format_variant


def duplicate(task: Task, prompt: Prompt, count: int, random_instruct: bool) -> Task:
    """Ask every sample `count` times: other wordings and orders are variants, the same prompt again is a repeat."""
    pool = max(1, len(prompt.instructions)) if random_instruct else 1
    shuffled = task.shuffle_options
    if not shuffled and count > pool and count % pool:
        fitting = f"a multiple of {pool} (or at most {pool})"
        raise UsageError(f"--dataset-duplication {count}: with {pool} wordings make it {fitting}")
    names = count if shuffled else min(count, pool)
    wordings = [number % pool if random_instruct else None for number in range(names)]
    variants = tuple(name_variant(word, number if shuffled else None) for number, word in enumerate(wordings))
    repeats = task.repeats * (count // names)
    return msgspec.structs.replace(task, variants=variants, repeats=repeats, shuffle_options=False)


def name_variant(wording: int | None, order: int | None) -> str:
    """Return the variant of one wording and one order; the plain one is `base`."""
    axes = {"wording": None if not wording else str(wording), "order": None if order is None else str(order)}
    return format_variant({axis: value for axis, value in axes.items() if value is not None}) or BASE_VARIANT

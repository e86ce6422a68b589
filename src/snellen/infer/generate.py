"""The plainest inferencer: each trial is one request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..core.protocols import Capability
from ..core.tasks import Task
from ..core.types import TrialKey
from ..prompt.build import Prompter
from .jobs import Ask, Item

NEEDS = frozenset({Capability.GENERATE})


class GenerateJob(NamedTuple):
    """One trial."""

    item: Item
    keys: tuple[TrialKey]
    prompter: Prompter

    async def run(self, ask: Ask) -> None:
        """Build the request and ask it."""
        (key,) = self.keys
        await ask(self.item, self.prompter.build(self.item.sample, key.variant, key.repeat))


def plan(task: Task, items: Iterable[Item], prompter: Prompter) -> Iterator[GenerateJob]:
    """Yield a job for every sample × variant × repeat, samples outermost: what shares images stays together."""
    for item in items:
        for variant in task.variants:
            for repeat in range(task.repeats):
                yield GenerateJob(item, (TrialKey(task.name, item.sample.id, variant, repeat),), prompter)

"""The plainest inferencer: each trial is one request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..core.protocols import Capability
from ..core.tasks import Task
from ..core.types import TrialKey
from ..prompt.build import Prompter
from .jobs import Ask, Item

NEEDS = frozenset({Capability.GENERATE})


@dataclass(frozen=True, slots=True)
class GenerateJob:
    """One trial."""

    item: Item
    key: TrialKey
    prompter: Prompter

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return the one key."""
        return (self.key,)

    async def run(self, ask: Ask) -> None:
        """Build the request and ask it."""
        await ask(self.item, self.prompter.build(self.item.sample, self.key.variant, self.key.repeat))


def plan(task: Task, items: Iterable[Item], prompter: Prompter) -> Iterator[GenerateJob]:
    """Yield a job for every sample × variant × repeat, samples outermost: what shares images stays together."""
    for item in items:
        for variant in task.variants:
            for repeat in range(task.repeats):
                yield GenerateJob(item, TrialKey(task.name, item.sample.id, variant, repeat), prompter)

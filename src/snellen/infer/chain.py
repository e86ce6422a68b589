"""Own chain first: the steps of a chain are asked in order, then the inference, told what the model itself answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import msgspec

from ..core.protocols import Capability
from ..core.tasks import Task
from ..core.types import TrialKey
from ..data.loaders.cure import recount
from ..prompt.build import Prompter
from .dialogue import read_answer
from .jobs import Ask, Item

NEEDS = frozenset({Capability.GENERATE})


@dataclass(frozen=True, slots=True)
class ChainJob:
    """One chain in one variant and repeat: its steps, then its inference."""

    items: tuple[Item, ...]
    variant: str
    repeat: int
    prompter: Prompter

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return the trials of all steps and of the inference."""
        return [TrialKey(self.prompter.task.name, item.sample.id, self.variant, self.repeat) for item in self.items]

    async def run(self, ask: Ask) -> None:
        """Ask the steps in order and hand their answers on. A step without a reply ends the chain until the next attempt."""
        found: list[tuple[str, str]] = []
        for item in self.items:
            sample = item.sample
            if sample.tags.get("role") == "inference":
                sample = msgspec.structs.replace(sample, question=recount(sample.question, found))
            request = self.prompter.build(sample, self.variant, self.repeat)
            prediction = await ask(item, request)
            if prediction.failure is not None:
                return
            found.append((sample.question, read_answer(request, prediction)))


def plan(task: Task, items: Iterable[Item], prompter: Prompter) -> Iterator[ChainJob]:
    """Yield a job for every chain × variant × repeat; a chain is the neighbours of one group, its inference last."""
    for _, members in groupby(items, key=lambda item: item.sample.group or item.sample.id):
        chain = tuple(sorted(members, key=lambda item: (item.sample.tags.get("role") == "inference", item.position)))
        for variant in task.variants:
            for repeat in range(task.repeats):
                yield ChainJob(chain, variant, repeat, prompter)

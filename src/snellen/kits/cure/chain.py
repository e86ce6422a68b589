"""Own chain first: the steps of a chain are asked in order, then the inference, told what the model itself answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product

import msgspec

from ...core.jobs import Ask, Item, RequestBuilder, skip_after
from ...core.protocols import Capability, Inferencer
from ...core.tasks import Task
from ...core.types import Sample, TrialKey
from ...infer.dialogue import read_answer
from .loader import recount


@dataclass(frozen=True, slots=True)
class ChainJob:
    """One chain in one variant and repeat: its steps, then its inference."""

    items: tuple[Item, ...]
    keys: Sequence[TrialKey]
    prompter: RequestBuilder

    async def run(self, ask: Ask) -> None:
        """Ask the steps in order and hand their answers on. A step without a reply fails its chain for this time."""
        answers: list[tuple[str, str]] = []
        for place, (item, key) in enumerate(zip(self.items, self.keys, strict=True)):
            sample = item.sample
            if _is_inference(sample):
                sample = msgspec.structs.replace(sample, question=recount(sample.question, answers))
            request = self.prompter.build(sample, key.variant, key.repeat)
            prediction = await ask(item, request)
            if prediction.failure is not None:
                later = self.items[place + 1 :]
                await skip_after(ask, [prediction], zip(later, self.keys[place + 1 :], strict=True))
                return
            answers.append((sample.question, read_answer(request, prediction)))


class Chain(Inferencer):
    """Asks the steps of a chain before its inference."""

    needs = frozenset({Capability.GENERATE})

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[ChainJob]:
        """Yield a job for every chain × variant × repeat; a chain is neighbours of one group, its inference last."""
        for _, members in groupby(items, key=lambda item: item.sample.group or item.sample.id):
            chain = tuple(sorted(members, key=lambda item: (_is_inference(item.sample), item.position)))
            for variant, repeat in product(task.variants, range(task.repeats)):
                keys = [TrialKey(task.name, item.sample.id, variant, repeat) for item in chain]
                yield ChainJob(chain, keys, prompter)


def _is_inference(sample: Sample) -> bool:
    return sample.tags.get("role") == "inference"


CHAIN = Chain()

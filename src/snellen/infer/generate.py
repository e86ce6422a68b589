"""The plainest inferencer: each trial is one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from ..core.jobs import Item, OneRequest, RequestBuilder
from ..core.protocols import Capability, Inferencer
from ..core.tasks import Task
from ..core.types import Request, Sample, TrialKey


class Generate(Inferencer):
    """Asks every trial for a text."""

    needs = frozenset({Capability.GENERATE})

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[OneRequest]:
        """Yield a job for every trial."""
        return one_request_each(task, items, lambda sample, key: prompter.build(sample, key.variant, key.repeat))


def one_request_each(
    task: Task, items: Iterable[Item], build: Callable[[Sample, TrialKey], Request]
) -> Iterator[OneRequest]:
    """Yield a job for every sample × variant × repeat, samples outermost: what shares images stays together."""
    for item in items:
        for variant, repeat in product(task.variants, range(task.repeats)):
            yield OneRequest(item, (TrialKey(task.name, item.sample.id, variant, repeat),), build)


GENERATE = Generate()

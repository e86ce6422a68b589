"""Online dialogue: each round is a trial of its own, asked with the model's own answers to the rounds before it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from msgspec import Struct

from ..core.config import convert
from ..core.jobs import Ask, Item, RequestBuilder, skip_after
from ..core.protocols import Capability, Inferencer
from ..core.tasks import Task
from ..core.types import Prediction, Request, Sample, TrialKey
from ..extract.choice import chosen_text
from .likelihood import LikelihoodOptions, build_request, read_likelihood_options, without_options

Build = Callable[[Sample, str, int, Sequence[str] | None], Request]
"""Sample, variant, repeat and the model's own answers so far to a Request."""


class DialogueOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """A task's `infer_options`."""

    majority: bool = False
    """Put the most common answer of all repeats and variants into every history, instead of each its own."""


@dataclass(frozen=True, slots=True)
class DialogueJob:
    """One dialogue: its rounds in order, in one lane (a variant and repeat) or, for a majority, in all side by side."""

    task: str
    items: tuple[Item, ...]
    lanes: tuple[tuple[str, int], ...]
    build: Build

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return the trials of all rounds and lanes."""
        return [
            TrialKey(self.task, item.sample.id, variant, repeat)
            for item in self.items
            for variant, repeat in self.lanes
        ]

    async def run(self, ask: Ask) -> None:
        """Ask round by round. A failed round fails those after it, all of them until the next attempt."""
        said: list[list[str]] = [[] for _ in self.lanes]
        for place, item in enumerate(self.items):
            requests = [
                self.build(item.sample, variant, repeat, replies)
                for (variant, repeat), replies in zip(self.lanes, said, strict=True)
            ]
            predictions = await asyncio.gather(*(ask(item, request) for request in requests))
            if any(prediction.failure for prediction in predictions):
                await skip_after(ask, predictions, self._after(place))
                return
            answers = [
                read_answer(request, prediction) for request, prediction in zip(requests, predictions, strict=True)
            ]
            common = most_common(answers)
            for replies, answer in zip(said, answers, strict=True):
                replies.append(common if len(self.lanes) > 1 else answer)

    def _after(self, place: int) -> Iterator[tuple[Item, TrialKey]]:
        """Yield the trials of later rounds."""
        for item, (variant, repeat) in product(self.items[place + 1 :], self.lanes):
            yield item, TrialKey(self.task, item.sample.id, variant, repeat)


class Every(Inferencer):
    """Asks every round, the model's own answers before it as history."""

    needs = frozenset({Capability.GENERATE})

    def read_options(self, task: Task) -> DialogueOptions:
        """Check the task's options by name."""
        return convert(task.infer_options, DialogueOptions, f"infer_options of task {task.name!r}")

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[DialogueJob]:
        """Yield a job a dialogue and lane, in whatever order the items come; rounds follow their number."""
        return plan_dialogues(task, items, prompter.build, self.read_options(task).majority)


class EveryByLikelihood(Inferencer):
    """Asks every round by likelihood; the likeliest option enters the history of the next."""

    needs = frozenset({Capability.LIKELIHOOD})

    def read_options(self, task: Task) -> LikelihoodOptions:
        """Check the task's options by name: those of likelihood, and `majority`."""
        own = {name: value for name, value in task.infer_options.items() if name != "majority"}
        return read_likelihood_options(task, own)

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[DialogueJob]:
        """Yield a job a dialogue and lane; the history takes the option of the largest summed log-likelihood."""
        options = self.read_options(task)
        asks = without_options(prompter, options)

        def build(sample: Sample, variant: str, repeat: int, replies: Sequence[str] | None) -> Request:
            """Return one round's request."""
            key = TrialKey(task.name, sample.id, variant, repeat)
            return build_request(asks, sample, key, options, replies)

        return plan_dialogues(task, items, build, bool(task.infer_options.get("majority")))


def plan_dialogues(task: Task, items: Iterable[Item], build: Build, majority: bool) -> Iterator[DialogueJob]:
    """Yield the jobs of all dialogues for any way to build a round's request."""
    lanes = tuple(product(task.variants, range(task.repeats)))
    dialogues: dict[str, list[Item]] = {}
    for item in items:
        dialogues.setdefault(item.sample.group or item.sample.id, []).append(item)
    for members in dialogues.values():
        rounds = tuple(sorted(members, key=_round))
        for chosen in (lanes,) if majority else ((lane,) for lane in lanes):
            yield DialogueJob(task.name, rounds, chosen, build)


def read_answer(request: Request, prediction: Prediction) -> str:
    """Return what enters the history: the chosen option's text, else the reply as it is."""
    if prediction.loglikelihoods is not None:
        values = prediction.loglikelihoods
        best = max(range(len(values)), key=values.__getitem__)
        return request.shown[request.likelihood.stands_for[best] if request.likelihood.stands_for else best]
    return chosen_text(prediction.text or "", request.marks, request.shown, prediction.finish)


def most_common(answers: Sequence[str]) -> str:
    """Return the most frequent answer; of equals, the first given."""
    return Counter(answers).most_common(1)[0][0]


def _round(item: Item) -> tuple[int, int]:
    number = item.sample.tags.get("round")
    return (int(number) if isinstance(number, int | float) else item.position, item.position)


EVERY = Every()
EVERY_BY_LIKELIHOOD = EveryByLikelihood()

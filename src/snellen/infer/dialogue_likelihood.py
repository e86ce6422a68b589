"""Online dialogue by likelihood: the likeliest option of each round enters the history of the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..core.protocols import Capability
from ..core.tasks import Task
from ..core.types import Request, Sample, TrialKey
from ..prompt.build import Prompter
from . import likelihood
from .dialogue import DialogueJob, plan_dialogues
from .jobs import Item

NEEDS = frozenset({Capability.LIKELIHOOD})
MAJORITY = "majority"


def plan(task: Task, items: Iterable[Item], prompter: Prompter) -> Iterator[DialogueJob]:
    """Yield a job a dialogue and lane; the history takes the option of the largest summed log-likelihood."""
    options = read_options(task)
    asks = likelihood.without_options(prompter, options)

    def build(sample: Sample, variant: str, repeat: int, replies: Sequence[str] | None) -> Request:
        """Return one round's request."""
        return likelihood.build_request(asks, sample, TrialKey(task.name, sample.id, variant, repeat), options, replies)

    return plan_dialogues(task, items, build, bool(task.infer_options.get(MAJORITY)))


def read_options(task: Task) -> likelihood.LikelihoodOptions:
    """Check the task's options by name: those of likelihood, and `majority`."""
    own = {name: value for name, value in task.infer_options.items() if name != MAJORITY}
    return likelihood.read_options(msgspec.structs.replace(task, infer_options=own))

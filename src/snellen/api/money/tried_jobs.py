"""Jobs to the requests they will send, by running some of them against nobody: dialogues, chains and documents."""

from __future__ import annotations

from itertools import islice, starmap

from ...core.errors import SnellenError
from ...core.event_loop import run_to_end
from ...core.jobs import Ask, Item, Job
from ...core.registry import Registry
from ...core.types import Prediction, Request, Sample
from ..plan import PlannedTask, jobs_of

TRIED = 100
"""Requests that are looked at; the others are taken to be like them."""
READ = 2_000
"""Samples among whose jobs they are spread."""


def try_jobs(planned: PlannedTask, registry: Registry) -> tuple[list[tuple[Sample, Request]], int]:
    """Return some requests as they would be sent if all answers were right, and of how many trials they are."""
    items = list(islice(starmap(Item, enumerate(planned.dataset)), READ))
    jobs = list(jobs_of(planned, items, registry))
    trials = sum(len(job.keys) for job in jobs)
    step = max(1, trials // TRIED)
    return run_to_end(_try_all(jobs[::step] if step < len(jobs) else jobs[:1]))


async def _try_all(jobs: list[Job]) -> tuple[list[tuple[Sample, Request]], int]:
    sent: list[tuple[Sample, Request]] = []
    ask = _unasked(sent)
    for job in jobs:
        await job.run(ask)
    return sent, sum(len(job.keys) for job in jobs)


def _unasked(sent: list[tuple[Sample, Request]]) -> Ask:
    """Return what notes a request and answers it as a model that is right would."""

    async def ask(item: Item, request: Request, settled: Prediction | None = None, *, keep: bool = True) -> Prediction:
        if settled is not None:
            return settled
        if request.choices:
            raise SnellenError("likelihoods are not tried: how they are asked is found out at the server")
        sent.append((item.sample, request))
        return Prediction(request.key, text=_right(item.sample, request))

    return ask


def _right(sample: Sample, request: Request) -> str:
    answer = sample.answers[0] if sample.answers else ""
    if answer in request.shown and len(request.marks) == len(request.shown):
        return request.marks[request.shown.index(answer)]
    return answer

"""Jobs to the requests they will send, by running some of them against nobody: dialogues, chains and documents."""

from __future__ import annotations

from itertools import islice, starmap

from ...core.event_loop import run_to_end
from ...core.jobs import Ask, Item, Job
from ...core.registry import Registry
from ...core.types import Prediction, Request, Sample
from ...model.served.candidate_scorer import fitting_routes
from ...model.served.logprob_calls import calls_of
from ...model.served.logprob_routes import LETTERS
from ..plan import PlannedTask, jobs_of

TRIED = 100
"""Requests that are looked at; the others are taken to be like them."""
READ = 2_000
"""Samples among whose jobs they are spread."""


def try_jobs(
    planned: PlannedTask, registry: Registry, forced_route: str | None = None
) -> tuple[list[tuple[Sample, Request]], int]:
    """Return some requests as they would be sent if all answers were right, and of how many trials they are.

    Candidates are scored by the first way a server may be asked, or by the one that is named.
    """
    items = list(islice(starmap(Item, enumerate(planned.dataset)), READ))
    jobs = list(jobs_of(planned, items, registry))
    trials = sum(len(job.keys) for job in jobs)
    step = max(1, trials // TRIED)
    return run_to_end(_try_all(jobs[::step] if step < len(jobs) else jobs[:1], forced_route))


async def _try_all(jobs: list[Job], forced_route: str | None) -> tuple[list[tuple[Sample, Request]], int]:
    sent: list[tuple[Sample, Request]] = []
    ask = _unasked(sent, forced_route)
    for job in jobs:
        await job.run(ask)
    return sent, sum(len(job.keys) for job in jobs)


def _unasked(sent: list[tuple[Sample, Request]], forced_route: str | None) -> Ask:
    """Return what notes a request and answers it as a model that is right would."""

    async def ask(item: Item, request: Request, settled: Prediction | None = None, *, keep: bool = True) -> Prediction:
        if settled is not None:
            return settled
        if request.choices:
            route = next(iter(fitting_routes(request, forced_route)), LETTERS)
            sent.extend((item.sample, call) for call in calls_of(request, route))
            return _scored(item.sample, request)
        sent.append((item.sample, request))
        return Prediction(request.key, text=_right(item.sample, request))

    return ask


def _scored(sample: Sample, request: Request) -> Prediction:
    """Return values by which the right candidate is the likeliest, with the details that jobs look at."""
    values = [-1.0 if choice in sample.answers else -2.0 for choice in request.choices]
    counts = [1] * len(values)
    detail = {"tokens": counts, "bytes": counts, "token_logprobs": [[value] for value in values], "prompt_logprobs": []}
    return Prediction(request.key, loglikelihoods=tuple(values), detail=detail)


def _right(sample: Sample, request: Request) -> str:
    answer = sample.answers[0] if sample.answers else ""
    if answer in request.shown and len(request.marks) == len(request.shown):
        return request.marks[request.shown.index(answer)]
    return answer

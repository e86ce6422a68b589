"""A model, items and a plan in, a timeline and the replies out: warm up, choose processes, make the load, mark it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import EnvironmentProblem, UsageError
from ..timeline import Timeline
from .arrivals import Arrivals, replayed, slot_starts
from .collect import Outcome
from .fleet import processes_needed, run_fleet
from .generator import Item, LoadJob, LoadResult
from .journal import PARTIAL

SLOT_LIMIT_PER_PROCESS = 512
"""More streams than this are dealt to further processes when there are cores for them."""


ENOUGH_TO_TELL = 8
"""A warm-up of fewer requests says nothing about what one costs."""


class LoadPlan(Struct, frozen=True, omit_defaults=True):
    """What load to make; exactly one of `concurrency`, `rate`, `trace`, `pressure_s` (with `concurrency`) leads."""

    concurrency: int | None = None
    rate: float | None = None
    burstiness: float = 1.0
    ramp: str = "none"
    ramp_from: float = 0.0
    pressure_s: float | None = None
    trace: tuple[float, ...] = ()
    replay_speed: float = 1.0
    count: int | None = None
    """Items to ask; None = each once, or until `duration_s`."""
    duration_s: float | None = None
    warmup: int = 1
    processes: int = 0
    """0 = as many as the warm-up shows to be needed."""
    timeout_s: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rate is not None and self.trace:
            raise UsageError("--rate and --trace both say when to send: give one of them")
        if self.rate is None and not self.trace and self.concurrency is None:
            raise UsageError("say how much load: --concurrency N (closed loop), --rate R (open loop), or --trace FILE")
        if self.pressure_s is not None and (self.concurrency is None or self.rate is not None):
            raise UsageError("--pressure is a closed loop: it needs --concurrency and no --rate")

    @property
    def is_open(self) -> bool:
        """Whether requests are sent at given moments, whatever became of the earlier ones."""
        return self.rate is not None or bool(self.trace)

    def told(self) -> dict[str, Any]:
        """Return the plan as plain data, without the moments of a trace: the timeline has them."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if name != "trace"}


class Measured(Struct):
    """A load that was made."""

    timeline: Timeline
    outcomes: list[Outcome]


def make_job(
    plan: LoadPlan, items: Sequence[Item], provider: str, urls: Sequence[str], headers: dict[str, str]
) -> LoadJob:
    """Lay the plan out in time: pure, and equal for equal seeds."""
    shared: dict[str, Any] = {"provider": provider, "urls": tuple(urls), "headers": headers}
    shared |= {"items": tuple(items), "timeout_s": plan.timeout_s}
    if plan.is_open:
        return LoadJob(moments=tuple(due_moments(plan, len(items))), cap=plan.concurrency, **shared)
    slots = tuple(slot_starts(plan.concurrency or 1, min(1.0, (plan.pressure_s or 0) / 10)))
    duration = plan.pressure_s or plan.duration_s
    count = plan.count if plan.count is not None or duration is not None else len(items)
    return LoadJob(slots=slots, count=count, duration_s=duration, **shared)


def due_moments(plan: LoadPlan, items: int) -> list[float]:
    """Return when each request of an open loop is due."""
    if plan.trace:
        moments = replayed(plan.trace, plan.replay_speed)
        return moments[: plan.count] if plan.count else moments
    arrivals = Arrivals(plan.rate or 0.0, plan.burstiness, plan.ramp, plan.ramp_from, plan.seed)
    if plan.duration_s is not None and plan.count is None:
        return arrivals.moments_until(plan.duration_s)
    moments = arrivals.moments(plan.count or items)
    return moments if plan.duration_s is None else [moment for moment in moments if moment <= plan.duration_s]


async def measure(
    plan: LoadPlan,
    items: Sequence[Item],
    provider: str,
    urls: Sequence[str],
    headers: dict[str, str],
    *,
    stream: bool = True,
    folder: Path | None = None,
) -> Measured:
    """Warm up, make the load, and return what happened to every request; with a folder it is kept there meanwhile."""
    if not items:
        raise UsageError("the load has no items: the task is empty or --limit is 0")
    job = make_job(plan, items, provider, urls, headers)
    warmed = await warm_up(plan, job)
    if warmed is not None and warmed.interrupted:
        return to_measured(plan, job, msgspec.structs.replace(warmed, outcomes=[]), 1, stream=stream)
    processes = plan.processes or choose_processes(plan, job, warmed)
    journal = str(folder / f"{PARTIAL}.jsonl") if folder else ""
    result = await run_fleet(msgspec.structs.replace(job, journal=journal), processes)
    return to_measured(plan, job, result, processes, stream=stream)


async def warm_up(plan: LoadPlan, job: LoadJob) -> LoadResult | None:
    """Ask a few items whose results are thrown away; if none succeeds the load would only measure an error."""
    if plan.warmup < 1:
        return None
    slots = tuple([0.0] * min(plan.warmup, plan.concurrency or 8))
    last, open_end = job.items[-plan.warmup :], {"moments": (), "duration_s": None, "cap": None}
    warmed = await run_fleet(msgspec.structs.replace(job, items=last, slots=slots, count=plan.warmup, **open_end))
    if warmed.outcomes and not any(outcome.record.ok for outcome in warmed.outcomes) and not warmed.interrupted:
        reason = warmed.outcomes[0].record.message
        fix = "check --base-url and --model, or skip with --warmup 0"
        raise EnvironmentProblem(f"every warm-up request failed: {reason}; {fix}")
    return warmed


def choose_processes(plan: LoadPlan, job: LoadJob, warmed: LoadResult | None) -> int:
    """Return how many processes the load needs, by the warm-up's CPU and the number of slots; never more than cores."""
    by_slots = -(-len(job.slots) // SLOT_LIMIT_PER_PROCESS) if job.slots else 1
    if warmed is None or len(warmed.outcomes) < ENOUGH_TO_TELL:
        return max(1, min(by_slots, os.cpu_count() or 1))
    latency = sum(outcome.record.done - outcome.record.sent for outcome in warmed.outcomes) / len(warmed.outcomes)
    rate = plan.rate or (len(job.slots) / max(latency, 1e-4) if job.slots else 0.0)
    return max(min(by_slots, os.cpu_count() or 1), processes_needed(warmed, rate))


def to_measured(plan: LoadPlan, job: LoadJob, result: LoadResult, processes: int, *, stream: bool) -> Measured:
    """Order the outcomes by their due moments, count from the start of the load, and add what is known of it."""
    outcomes = sorted(result.outcomes, key=lambda outcome: outcome.record.due)
    load = {"plan": plan.told(), "started": result.started, "processes": processes, "urls": len(job.urls)}
    if job.moments:
        load["due"] = list(job.moments)
    timeline = Timeline(
        requests=tuple(outcome.record for outcome in outcomes),
        max_concurrency=plan.concurrency,
        stream=stream,
        planned=len(job.moments) or job.count,
        interrupted=result.interrupted,
        load=load,
        watch=msgspec.to_builtins(result.watch),
    )
    return Measured(timeline, outcomes)

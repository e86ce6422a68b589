"""A model, items and a plan in, a timeline and the replies out: warm up, choose processes, make the load, mark it."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, cast

import msgspec
from msgspec import Struct

from ..core.builtins import default_registry
from ..core.errors import EnvironmentProblem, UsageError
from ..model.options import ModelOptions
from ..model.served.dialect import Dialect
from .arrivals import Arrivals, replayed, slot_starts
from .collect import PARTIAL, Outcome
from .generator import Generator, Item, LoadJob, LoadResult
from .self_check import merge_reports
from .timeline import Timeline

READY = b"ready\n"
GC_THRESHOLD = 50_000


def dialect_of(family: str) -> Dialect:
    """Return how servers of a family write requests and replies."""
    model = default_registry().get("model", family)("load", ModelOptions())
    dialect: Dialect = model.dialect
    return dialect


Maker = Callable[["LoadJob"], Generator]
"""Makes what runs a job of this process, where no server is asked."""


async def run_job(job: LoadJob, start_at: float | None = None, make: Maker | None = None) -> LoadResult:
    """Make one job's load in this process. SIGINT and SIGTERM stop it; what is in flight is recorded as cancelled."""
    generator = Generator(job, dialect_of(job.provider)) if make is None else make(job)
    with stopped_by_signals(generator.stop):
        # A full collection in mid-load would pause every stream: what is there is frozen, the rest collected rarely.
        thresholds = gc.get_threshold()
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
        try:
            return await generator.run(start_at)
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGINT and SIGTERM during the block."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def end_with_parent(source: BinaryIO) -> None:
    """End this process when whoever started it is gone, killed perhaps: nobody wants the load any more.

    The pipe stays open as long as the parent lives, and nothing more comes through it. It is read below its buffer,
    whose lock a thread that waits for ever would hold against the end of the process.
    """
    os.read(source.fileno(), 1)
    os._exit(1)


def serve(source: BinaryIO, sink: BinaryIO, *, own_process: bool = False) -> None:
    """Read a job, say ready, wait for the moment to start, run, write the result.

    In a process of its own it ends when the source does.
    """
    (size,) = struct.unpack("<Q", source.read(8))
    job = msgspec.msgpack.decode(source.read(size), type=LoadJob)
    sink.write(READY)
    sink.flush()
    moment = source.read(8)
    if len(moment) < 8:
        return
    if own_process:
        threading.Thread(target=end_with_parent, args=(source,), daemon=True).start()
    result = asyncio.run(run_job(job, struct.unpack("<d", moment)[0]))
    sink.write(msgspec.msgpack.encode(result))
    sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, own_process=True)


HEAD_START_S = 0.05
BUSY_SHARE = 0.6
"""A process is given work for this share of its core; the rest keeps its stamps honest."""


async def run_fleet(job: LoadJob, processes: int = 1, make: Maker | None = None) -> LoadResult:
    """Run the job in `processes` processes (1: this one). SIGINT and SIGTERM end it early with what there is."""
    if processes <= 1 or make is not None:
        return await run_job(job, make=make)
    workers = [await _Worker.start(part) for part in deal(job, processes)]
    stopped: list[int] = []

    def stop() -> None:
        stopped.append(1)
        for worker in workers:
            worker.stop()

    try:
        with stopped_by_signals(stop):
            start = perf_counter() + HEAD_START_S
            merged = merge_results(await asyncio.gather(*(worker.finish(start) for worker in workers)))
    finally:
        for worker in workers:
            await worker.end()
    merged.interrupted = merged.interrupted or bool(stopped)
    return merged


class _Worker:
    """One further process of the generator."""

    def __init__(
        self, process: asyncio.subprocess.Process, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        self._process, self._source, self._sink = process, source, sink

    @classmethod
    async def start(cls, job: LoadJob) -> _Worker:
        """Start a process and hand it its job: through a pipe, since the headers may hold a key."""
        pipe, command = asyncio.subprocess.PIPE, (sys.executable, "-m", "snellen.perf.measure")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment)
        worker = cls(process, cast("asyncio.StreamReader", process.stdout), cast("asyncio.StreamWriter", process.stdin))
        body = msgspec.msgpack.encode(job)
        worker._sink.write(struct.pack("<Q", len(body)) + body)
        await worker._sink.drain()
        if await worker._source.readline() != READY:
            raise EnvironmentProblem("a process of the load generator did not start; try --processes 1")
        return worker

    async def finish(self, start: float) -> LoadResult:
        """Let it begin at a moment all share, and return what it saw."""
        self._sink.write(struct.pack("<d", start))
        await self._sink.drain()
        body = await self._source.read()
        if await self._process.wait() != 0 or not body:
            raise EnvironmentProblem("a process of the load generator died; try --processes 1")
        return msgspec.msgpack.decode(body, type=LoadResult)

    def stop(self) -> None:
        """Ask it to end now."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def end(self) -> None:
        """Make sure that it is gone."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._sink.close()


def deal(job: LoadJob, processes: int) -> list[LoadJob]:
    """Deal items, due moments and slots like cards, so that every process sees the same mixture."""
    width = max(1, min(processes, len(job.moments) or len(job.slots)))
    return [_part(job, place, width) for place in range(width)]


def _part(job: LoadJob, place: int, width: int) -> LoadJob:
    return msgspec.structs.replace(
        job,
        items=job.items[place::width] or job.items,
        moments=job.moments[place::width],
        slots=job.slots[place::width],
        count=None if job.count is None else len(range(place, job.count, width)),
        cap=None if job.cap is None else max(1, len(range(place, job.cap, width))),
        worker=place,
        journal=job.journal and job.journal.replace(PARTIAL, f"{PARTIAL}-{place}"),
    )


def merge_results(results: Sequence[LoadResult]) -> LoadResult:
    """Join what the processes saw, in the order of the due moments."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    return LoadResult(
        outcomes=sorted(outcomes, key=lambda outcome: outcome.record.due),
        started=min(result.started for result in results),
        watch=merge_reports([result.watch for result in results]),
        interrupted=any(result.interrupted for result in results),
    )


def processes_needed(warmed: LoadResult, rate: float) -> int:
    """Return how many processes a rate (requests/s) needs, from the CPU one request cost while warming up."""
    done = len(warmed.outcomes)
    if not done:
        return 1
    cores = os.cpu_count() or 1
    return max(1, min(cores, math.ceil(rate * warmed.watch.cpu_s / done / BUSY_SHARE)))


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

    def as_dict(self) -> dict[str, Any]:
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
    make: Maker | None = None,
) -> Measured:
    """Warm up, make the load, and return what happened to every request; with a folder it is kept there meanwhile.

    `make` runs the load on a model of this process instead of on servers.
    """
    if not items:
        raise UsageError("the load has no items: the task is empty or --limit is 0")
    job = make_job(plan, items, provider, urls, headers)
    warmed = await warm_up(plan, job, make)
    if warmed is not None and warmed.interrupted:
        return to_measured(plan, job, msgspec.structs.replace(warmed, outcomes=[]), 1, stream=stream)
    processes = 1 if make is not None else plan.processes or choose_processes(plan, job, warmed)
    journal = str(folder / f"{PARTIAL}.jsonl") if folder else ""
    result = await run_fleet(msgspec.structs.replace(job, journal=journal), processes, make)
    return to_measured(plan, job, result, processes, stream=stream)


async def warm_up(plan: LoadPlan, job: LoadJob, make: Maker | None = None) -> LoadResult | None:
    """Ask a few items whose results are thrown away; if none succeeds the load would only measure an error."""
    if plan.warmup < 1:
        return None
    slots = tuple([0.0] * min(plan.warmup, plan.concurrency or 8))
    last, open_end = job.items[-plan.warmup :], {"moments": (), "duration_s": None, "cap": None}
    first = msgspec.structs.replace(job, items=last, slots=slots, count=plan.warmup, **open_end)
    warmed = await run_fleet(first, make=make)
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
    load = {"plan": plan.as_dict(), "started": result.started, "processes": processes, "urls": len(job.urls)}
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

"""A load job in, its result out: made in this process, or dealt to several that start together, and merged."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import struct
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import cast

import msgspec

from ...core.errors import EnvironmentProblem
from .generator import LoadJob, LoadResult
from .journal import PARTIAL
from .self_check import merge_reports
from .worker import READY, run_job, stopped_by_signals

HEAD_START_S = 0.05
BUSY_SHARE = 0.6
"""A process is given work for this share of its core; the rest keeps its stamps honest."""


async def run_fleet(job: LoadJob, processes: int = 1) -> LoadResult:
    """Run the job in `processes` processes (1: this one). SIGINT and SIGTERM end it early with what there is."""
    if processes <= 1:
        return await run_job(job)
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
        pipe, command = asyncio.subprocess.PIPE, (sys.executable, "-m", "snellen.perf.load.worker")
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

"""A load job in, its result out: made in this process, or dealt to several that start together and merged by their stamps."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import struct
import sys
from collections.abc import Sequence
from time import perf_counter

import msgspec

from ..core.errors import EnvironmentProblem
from .load import LoadJob, LoadResult
from .watch import merge_reports
from .worker import READY, run_job

HEAD_START_S = 0.05
BUSY_SHARE = 0.6
"""A process is given work for this share of its core; the rest keeps its stamps honest."""


async def run_fleet(job: LoadJob, processes: int = 1) -> LoadResult:
    """Run the job in `processes` processes (1: this one)."""
    if processes <= 1:
        return await run_job(job)
    parts = deal(job, processes)
    workers = [await _start(part) for part in parts]
    loop = asyncio.get_running_loop()
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        for worker in workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        start = perf_counter() + HEAD_START_S
        results = await asyncio.gather(*(_finish(worker, start) for worker in workers))
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        for worker in workers:
            if worker.returncode is None:
                worker.kill()
    merged = merge_results(results)
    merged.interrupted = merged.interrupted or interrupted
    return merged


async def _start(job: LoadJob) -> asyncio.subprocess.Process:
    # The job travels through a pipe, not the command line or a file: its headers may hold a key.
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "snellen.perf.worker", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=_environment()
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    body = msgspec.msgpack.encode(job)
    worker.stdin.write(struct.pack("<Q", len(body)) + body)
    await worker.stdin.drain()
    if await worker.stdout.readline() != READY:
        raise EnvironmentProblem("a process of the load generator did not start; try --processes 1")
    return worker


def _environment() -> dict[str, str]:
    paths = [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


async def _finish(worker: asyncio.subprocess.Process, start: float) -> LoadResult:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(struct.pack("<d", start))
    await worker.stdin.drain()
    body = await worker.stdout.read()
    if await worker.wait() != 0 or not body:
        raise EnvironmentProblem("a process of the load generator died; try --processes 1")
    return msgspec.msgpack.decode(body, type=LoadResult)


def deal(job: LoadJob, processes: int) -> list[LoadJob]:
    """Deal items, due moments and slots like cards, so that every process sees the same mixture."""
    width = max(1, min(processes, len(job.moments) or len(job.slots)))
    parts = []
    for place in range(width):
        parts.append(
            msgspec.structs.replace(
                job,
                items=job.items[place::width] or job.items,
                moments=job.moments[place::width],
                slots=job.slots[place::width],
                count=None if job.count is None else len(range(place, job.count, width)),
                cap=None if job.cap is None else max(1, len(range(place, job.cap, width))),
                worker=place,
            )
        )
    return parts


def merge_results(results: Sequence[LoadResult]) -> LoadResult:
    """Join what the processes saw, in the order of the due moments."""
    outcomes = sorted((outcome for result in results for outcome in result.outcomes), key=lambda outcome: outcome.record.due)
    return LoadResult(
        outcomes=outcomes,
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

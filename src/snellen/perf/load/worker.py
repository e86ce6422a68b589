"""One process of a load (`python -m snellen.perf.load.worker`): a job and a go signal in, stamped outcomes out."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import msgspec

from ...core.builtins import default_registry
from ...model.options import ModelOptions
from ...model.served.dialect import Dialect
from .generator import Generator, LoadJob, LoadResult

READY = b"ready\n"
GC_THRESHOLD = 50_000


def dialect_of(family: str) -> Dialect:
    """Return how servers of a family write requests and replies."""
    model = default_registry().get("model", family)("load", ModelOptions())
    dialect: Dialect = model.dialect
    return dialect


async def run_job(job: LoadJob, start_at: float | None = None) -> LoadResult:
    """Make one job's load in this process. SIGINT and SIGTERM stop it; what is in flight is recorded as cancelled."""
    generator = Generator(job, dialect_of(job.provider))
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

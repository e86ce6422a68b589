"""Durable rows per second through the one writer, and how long the event loop ever stalls meanwhile."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey, Turn, Usage
from snellen.store.writer import RunWriter

ROWS, WORKERS = 20_000, 128
RATE_BAR, STALL_BAR_MS = 3_000, 20.0


async def fill(writer: RunWriter) -> tuple[float, list[float]]:
    numbers, stalls, done = iter(range(ROWS)), [], asyncio.Event()

    async def worker() -> None:
        for number in numbers:
            key = TrialKey("t", str(number))
            sample = Sample(
                key.sample, "t", Form.CHOICE, "Which thing is it? " * 20, options=("one", "two"), answers=("one",)
            )
            request = Request(key, (Turn("user", "Which thing is it? " * 30),))
            await writer.put(
                number, sample, request, Prediction(key, text="A because " * 20, usage=Usage(100, 20)), "d" * 64
            )

    async def watch() -> None:
        while not done.is_set():
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            stalls.append((time.perf_counter() - before - 0.001) * 1000)

    watcher = asyncio.create_task(watch())
    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    rate = ROWS / (time.perf_counter() - started)
    done.set()
    await watcher
    return rate, sorted(stalls)


def main() -> int:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a real disk: /tmp may be memory
        writer = RunWriter(Path(folder), RunHeader("id", {}, {}, "", tasks=[Task("t", {})]))
        rate, stalls = asyncio.run(fill(writer))
        writer.close()
    p99 = stalls[int(len(stalls) * 0.99)]
    print(f"{'PASS' if rate >= RATE_BAR else 'FAIL'} durable rows per second: {rate:.0f} (bar {RATE_BAR})")
    print(
        f"{'PASS' if p99 <= STALL_BAR_MS else 'FAIL'} event-loop stall at p99: {p99:.1f} ms (bar {STALL_BAR_MS}); longest {stalls[-1]:.1f} ms"
    )
    return 0 if rate >= RATE_BAR and p99 <= STALL_BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())

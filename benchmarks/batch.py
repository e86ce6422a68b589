"""Requests with pictures to batch files, as `snellen run --batch` writes them: rate and memory of 50,000.

Everything of a run is in it but the network: prompts, pictures encoded and hashed, bodies, files of the provider's size; a file
that is full is dropped as if it had been sent. One picture of 12 kB each, a thousand different ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

import snellen
from snellen.api.plan import make_plan
from snellen.core.clock import SystemClock
from snellen.engine.limits import Policy
from snellen.engine.loop import Engine
from snellen.kits.batches.batch_ledger import LinesWriter, open_ledger
from snellen.kits.batches.batch_queue import BatchedModel, BatchQueue
from snellen.kits.batches.batch_service import LinesFile
from snellen.kits.batches.file_service import FileService
from snellen.model.options import ModelOptions
from snellen.model.served.openai import OpenAI
from snellen.model.served.post import HttpResponse
from snellen.model.served.prices import batch_terms
from snellen.model.served.served_model import ServedModel
from snellen.store.writer import RunWriter

REQUESTS, PICTURES, SIDE = 50_000, 1_000, 64
BAR = 2_000
REPLY = b'{"choices":[{"index":0,"message":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}'


class Constant:
    """An HTTP client that answers the first request."""

    async def send(self, url: str, body: Any, headers: Mapping[str, str], timeout_s: float | None) -> HttpResponse:
        return HttpResponse(200, {}, REPLY)

    async def close(self) -> None:
        pass


class Dropped(FileService):
    """A service that takes files and keeps nothing but their sizes; it looks at our memory when one comes."""

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.sizes: list[int] = []

    async def submit(self, lines: LinesFile) -> str:
        self.sizes.append(lines.path.stat().st_size)
        return f"b{len(self.sizes)}"

    async def close(self) -> None:
        pass


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def write_rows(folder: Path) -> Path:
    noise = np.random.default_rng(0)
    for number in range(PICTURES):
        pixels = noise.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number}.png")
    row = {"options": ["one", "two", "three", "four"], "answer": "A"}
    lines = (
        json.dumps(row | {"id": str(n), "question": f"Which thing is number {n}?", "image": f"{n % PICTURES}.png"})
        for n in range(REQUESTS)
    )
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines))
    return path


async def write_batches(folder: Path) -> tuple[tuple[float, float], list[float], list[int]]:
    """Return seconds and CPU seconds, the memory in MB at each tenth, and the sizes of the files."""
    settings = snellen.RunSettings(tasks=(str(write_rows(folder)),), model="openai/mock", output_dir=folder / "run")
    plan, service, memory = make_plan(settings), Dropped(), list[float]()
    served = ServedModel(OpenAI(), "mock", ModelOptions(base_url="http://127.0.0.1/v1"), Constant())  # type: ignore[arg-type]
    ledger = open_ledger(plan.folder, served.name, "http://127.0.0.1/v1", {})
    terms = batch_terms()["openai"]
    writer = LinesWriter(
        plan.folder / "batch", service, most_lines=terms.requests, most_bytes=terms.most_bytes, run=plan.header.id
    )
    queue = BatchQueue(plan.folder, ledger, service, writer, clock=SystemClock(), say=lambda line: None)

    def note(waiting: int) -> None:
        if waiting % (REQUESTS // 10) == 0:
            memory.append(resident_mb())

    model = BatchedModel(served, queue, service.left_out, affords=note, timeout_s=60.0)
    store = RunWriter(plan.folder, plan.header)
    engine = Engine(model, store, Policy(timeout_s=None, adaptive=False), SystemClock())
    started, cpu = time.perf_counter(), time.process_time()
    await engine.run(plan.jobs())
    await queue.flush()
    seconds = time.perf_counter() - started, time.process_time() - cpu
    await queue.close()
    store.close()
    assert engine.state.parked == REQUESTS - 1
    return seconds, [*memory, resident_mb()], service.sizes


def main() -> int:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        (seconds, cpu), memory, sizes = asyncio.run(write_batches(Path(folder)))
    rate, growth = REQUESTS / cpu, memory[-1] - memory[1]
    each = f"{REQUESTS / seconds:,.0f}/s by the clock, {rate:,.0f} per CPU-second"
    print(f"{REQUESTS:,} requests with a picture of 12 kB: {each} (bar {BAR:,})")
    print(f"{len(sizes)} files of up to {max(sizes) / 1e6:,.0f} MB, {sum(sizes) / 1e6:,.0f} MB in all")
    print(f"memory: {memory[1]:,.0f} MB at a tenth, {memory[-1]:,.0f} MB at the end, {growth:+,.0f} MB (bar 30)")
    return 0 if rate >= BAR and growth <= 30 else 1


if __name__ == "__main__":
    sys.exit(main())

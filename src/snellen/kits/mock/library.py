"""A mock server's settings to a running server, and a task to the answer file that its readers know."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...api.load import load_dataset
from ...core.errors import UsageError
from .ask import AnswerBook, write_answers
from .batches import parse_batch_script
from .drafter import check_style
from .faults import parse_fault
from .readers import parse_reader
from .server import MockOptions, start
from .wire import Pace


def write_answer_file(task: str, path: Path, seed: int, limit: int | None) -> int:
    """Write what a simulated reader may know about the samples of a task; return how many there are."""
    return write_answers(load_dataset(task, seed=seed, limit=limit), path)


def build_options(arguments: Mapping[str, Any]) -> MockOptions:
    """Turn the command's arguments into MockOptions; a wrong one is a UsageError that names it."""
    values = dict(arguments)
    values["drafter"] = check_style(values["drafter"])
    answers = values.pop("answers")
    if answers is not None and not answers.is_file():
        raise UsageError(f"--answers {answers}: no such file")
    pace = Pace(values.pop("ttft_ms") / 1e3, values.pop("itl_ms") / 1e3, values.pop("chunk_tokens"))
    retry_after = values.pop("retry_after")
    return MockOptions(
        answers=AnswerBook.read(answers) if answers else None,
        reader=parse_reader(values.pop("reader")),
        faults=tuple(parse_fault(spec) for spec in values.pop("faults")),
        pace=pace,
        retry_after=None if retry_after == "none" else retry_after,
        batches=parse_batch_script(values.pop("batches")),
        **values,
    )


def serve_mock(
    port: int, arguments: Mapping[str, Any], on_ready: Callable[[dict[str, Any]], None], *, trivial: bool = False
) -> None:
    """Serve until SIGTERM or Ctrl-C; `on_ready` is told port, base_url and pid once the server listens."""
    asyncio.run(_serve(port, build_options(arguments), on_ready, trivial))


async def _serve(port: int, options: MockOptions, on_ready: Callable[[dict[str, Any]], None], trivial: bool) -> None:
    running = await start(options, port, trivial=trivial)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    on_ready({"port": running.port, "base_url": running.base_url, "pid": os.getpid()})
    await stop.wait()
    await running.close()

"""Jobs that are not a task's trials (drafts, checks, votes) down the same line: store, cache, limits, resume."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.clock import SystemClock
from ..core.event_loop import run_to_end
from ..core.jobs import Job
from ..core.protocols import Model
from ..core.tasks import RunHeader, Task
from ..engine.loop import Engine
from ..engine.purse import Purse
from ..engine.state import RunState
from ..store.writer import RunWriter
from .header import make_header
from .run import Watcher, asking, make_policy, response_cache, stop_on_signals, watching
from .settings import RunSettings


class Errand(NamedTuple):
    """Some jobs for one model, the folder that keeps the replies, and what changes them."""

    folder: Path
    model: Model
    jobs: Iterable[Job]
    planned: Mapping[str, int]
    """Requests by task, at least."""
    config: dict[str, Any]
    tasks: Sequence[Task] = ()
    versions: Mapping[str, str] = MappingProxyType({})


class Ran(NamedTuple):
    """How an errand went: the counters, and why it ended early, if it did."""

    state: RunState
    interrupted: bool = False
    over_budget: bool = False
    sent: int = 0
    """Requests that left, each attempt counted."""


def run_errand(
    errand: Errand, settings: RunSettings, watcher: Watcher | None = None, requests_at_most: int | None = None
) -> Ran:
    """Ask everything that is not stored yet, within a budget of requests; the same call again continues."""
    return run_to_end(_ask(errand, settings, watcher, requests_at_most))


async def _ask(errand: Errand, settings: RunSettings, watcher: Watcher | None, requests_at_most: int | None) -> Ran:
    async with asking(errand.model, errand.folder):
        if not (errand.folder / "run.db").exists():
            await errand.model.check()
        with closing(RunWriter(errand.folder, _header(errand, settings))) as writer, response_cache(settings) as cache:
            purse = Purse(requests_at_most)
            engine = Engine(errand.model, writer, make_policy(settings), SystemClock(), cache=cache, purse=purse)
            engine.state.planned = sum(errand.planned.values())
            with stop_on_signals(engine.stop, asyncio.current_task()), watching(watcher, engine.state):
                await engine.run(iter(errand.jobs))
            return Ran(engine.state, engine.stopping, purse.held_back, purse.sent)


def _header(errand: Errand, settings: RunSettings) -> RunHeader:
    return make_header(
        errand.model,
        errand.config,
        versions=errand.versions,
        command=settings.command,
        tasks=errand.tasks,
        planned=errand.planned,
    )

"""Jobs that are not a task's trials (drafts, checks) down the same line: store, cache, limits, retries, resume."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.clock import SystemClock
from ..core.errors import EnvironmentProblem
from ..core.ids import content_hash
from ..core.protocols import Model
from ..core.types import RunHeader
from ..engine.loop import Engine
from ..engine.state import RunState
from ..infer.jobs import Job
from ..store.writer import RunWriter
from .run import make_policy, response_cache, stop_on_signals
from .settings import RunSettings


class Errand(NamedTuple):
    """Some jobs for one model, the folder that keeps the replies, and what changes them."""

    folder: Path
    model: Model
    jobs: Iterable[Job]
    planned: Mapping[str, int]
    """Requests by task, at least."""
    config: dict[str, Any]


def run_errand(errand: Errand, settings: RunSettings, requests_at_most: int | None = None) -> tuple[RunState, bool]:
    """Ask everything that is not stored yet; the same call again continues. Returns the counters and whether it was stopped."""
    return asyncio.run(_ask(errand, settings, requests_at_most))


async def _ask(errand: Errand, settings: RunSettings, requests_at_most: int | None) -> tuple[RunState, bool]:
    try:
        if not (errand.folder / "run.db").exists():
            await errand.model.check()
        with closing(RunWriter(errand.folder, _header(errand, settings))) as writer, response_cache(settings) as cache:
            engine = Engine(errand.model, writer, make_policy(settings), SystemClock(), cache=cache)
            engine.state.planned = sum(errand.planned.values())
            with stop_on_signals(engine.stop, asyncio.current_task()):
                await engine.run(iter(_within(errand.jobs, engine, requests_at_most)))
            return engine.state, engine.stopping
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {error.filename or errand.folder}: {error.strerror}") from None
    finally:
        await errand.model.close()


def _within(jobs: Iterable[Job], engine: Engine, requests_at_most: int | None) -> Iterable[Job]:
    """Yield jobs until the budget of paid requests is spent; what is stored or cached costs nothing."""
    for job in jobs:
        if requests_at_most is not None and engine.state.done - engine.state.cached >= requests_at_most:
            engine.stop()
            return
        yield job


def _header(errand: Errand, settings: RunSettings) -> RunHeader:
    identity = {key: value for key, value in errand.model.identity().items() if key != "base_url"}
    config = msgspec.json.decode(msgspec.json.encode({"model": identity, **errand.config}))
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return RunHeader(content_hash(config), config, {}, created, settings.command, errand.model.name, planned=dict(errand.planned))

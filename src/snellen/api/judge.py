"""A judge asked about a stored run: a second plan of requests down the same line, kept beside the run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ..core.clock import SystemClock
from ..core.ids import content_hash
from ..core.protocols import Model
from ..core.tasks import RunHeader, Task
from ..core.types import Request, TrialKey
from ..data.catalog import Catalog
from ..engine.loop import Engine
from ..engine.state import RunState
from ..infer.jobs import Ask, Item
from ..scoring.scorers.judge import Judge, plan_votes, read_judge
from ..scoring.scorers.judged import judge_folder
from ..store.reader import RunReader
from ..store.writer import RunWriter
from .run import asking, make_policy, response_cache
from .settings import RunSettings


@dataclass(frozen=True, slots=True)
class VoteJob:
    """One vote on one trial."""

    item: Item
    request: Request

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return the one key."""
        return (self.request.key,)

    async def run(self, ask: Ask) -> None:
        """Ask it."""
        await ask(self.item, self.request)


def load_judge(name: str, catalogs: Sequence[Path] = ()) -> Judge:
    """Return a judge of the catalog."""
    return read_judge(Catalog(catalogs).card("judges", name), name)


def ask_judge(folder: Path, judge: Judge, model: Model, settings: RunSettings) -> RunState:
    """Ask a judge about every reply of a run; what was asked before is not asked again. Returns counts and tokens."""
    with RunReader(folder) as run:
        return asyncio.run(_ask_all(run, judge, model, settings))


async def _ask_all(run: RunReader, judge: Judge, model: Model, settings: RunSettings) -> RunState:
    async with asking(model, run.folder):
        await model.check()
        header = _header(run.header(), judge, model)
        with (
            closing(RunWriter(judge_folder(run.folder, judge.name), header)) as writer,
            response_cache(settings) as cache,
        ):
            engine = Engine(model, writer, make_policy(settings), SystemClock(), cache=cache)
            await engine.run(_jobs(run, judge))
            return engine.state


def _jobs(run: RunReader, judge: Judge) -> Iterator[VoteJob]:
    trials = ((position, trial) for task in run.header().tasks for position, trial in enumerate(run.trials(task.name)))
    for position, trial in trials:
        if trial.prediction.failure is None:
            for request in plan_votes(judge, [(trial.sample, trial.prediction)]):
                yield VoteJob(Item(position, trial.sample), request)


def _header(run: RunHeader, judge: Judge, model: Model) -> RunHeader:
    card = msgspec.to_builtins(judge)
    card.pop("name")
    identity = {key: value for key, value in model.identity().items() if key != "base_url"}
    config = msgspec.json.decode(msgspec.json.encode({"run": run.id, "judge": card, "model": identity}))
    tasks = [Task(f"{task.name}@{judge.name}", {"loader": "judge"}, task.form) for task in run.tasks]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return RunHeader(content_hash(config), config, run.versions, created, model=model.name, tasks=tasks)

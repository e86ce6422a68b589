"""A judge asked about a stored run: an errand whose replies are kept beside the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ..core.jobs import Item, ReadyRequests
from ..core.protocols import Model
from ..core.tasks import Task
from ..data.catalog import Catalog
from ..engine.state import RunState
from ..scoring.scorers.judge import Judge, plan_votes, read_judge
from ..scoring.scorers.judged import judge_folder
from ..store.reader import RunReader
from .errand import Errand, run_errand
from .settings import RunSettings


def load_judge(name: str, catalogs: Sequence[Path] = ()) -> Judge:
    """Return a judge of the catalog."""
    return read_judge(Catalog(catalogs).card("judges", name), name)


def ask_judge(folder: Path, judge: Judge, model: Model, settings: RunSettings) -> RunState:
    """Ask a judge about every reply of a run; what was asked before is not asked again. Returns counts and tokens."""
    with RunReader(folder) as run:
        header = run.header()
        card = msgspec.structs.asdict(judge)
        card.pop("name")  # another name asks the same
        tasks = [Task(f"{task.name}@{judge.name}", {"loader": "judge"}, task.form) for task in header.tasks]
        errand = Errand(
            judge_folder(folder, judge.name),
            model,
            _votes(run, judge, header.tasks),
            planned={},
            config={"run": header.id, "judge": card},
            tasks=tasks,
            versions=header.versions,
        )
        state, interrupted, *_ = run_errand(errand, settings)
    if interrupted:
        raise KeyboardInterrupt  # half a jury gives no score
    return state


def _votes(run: RunReader, judge: Judge, tasks: Sequence[Task]) -> Iterator[ReadyRequests]:
    """Yield a job a vote: the votes on one reply need not wait for each other."""
    trials = ((position, trial) for task in tasks for position, trial in enumerate(run.trials(task.name)))
    for position, trial in trials:
        if trial.prediction.failure is None:
            for request in plan_votes(judge, [(trial.sample, trial.prediction)]):
                yield ReadyRequests(Item(position, trial.sample), (request,))

"""A judge asked about a stored run: an errand whose replies are kept beside the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.errors import RunMismatch
from ..core.jobs import Item, ReadyRequests
from ..core.protocols import Model
from ..core.tasks import Task
from ..data.catalog import Catalog
from ..engine.state import RunState
from ..scoring.judging.asking import plan_votes
from ..scoring.judging.judge_card import Judge, judge_identity, read_judge
from ..scoring.judging.stored_votes import judge_folder, trials_to_judge
from ..store.reader import RunReader
from .errand import Errand, run_errand
from .settings import RunSettings


def load_judge(name: str, catalogs: Sequence[Path] = ()) -> Judge:
    """Return a judge of the catalog."""
    return read_judge(Catalog(catalogs).card("judges", name), name)


def ask_judge(folder: Path, judge: Judge, model: Model, settings: RunSettings) -> RunState:
    """Ask a judge about every reply of a run; what was asked before is not asked again. Returns counts and tokens.

    A judge that comes after another is asked about what that one extracted.
    """
    if judge.after:
        ask_judge(folder, load_judge(judge.after), model, settings)
    with RunReader(folder) as run:
        header = run.header()
        tasks = [Task(f"{task.name}@{judge.name}", {"loader": "judge"}, task.form) for task in header.tasks]
        errand = Errand(
            judge_folder(folder, judge.name),
            model,
            _votes(run, judge, header.tasks),
            planned={},
            config={"run": header.id, "judge": judge_identity(judge)},
            tasks=tasks,
            versions=header.versions,
        )
        try:
            state, interrupted, *_ = run_errand(errand, settings)
        except RunMismatch as mismatch:
            fix = f"to ask otherwise, move {errand.folder} away first: verdicts of two judges are never mixed"
            raise RunMismatch(f"judge {judge.name!r} was asked otherwise before ({mismatch}); {fix}") from None
    if interrupted:
        raise KeyboardInterrupt  # half a jury gives no score
    return state


def _votes(run: RunReader, judge: Judge, tasks: Sequence[Task]) -> Iterator[ReadyRequests]:
    """Yield a job a vote: the votes on one reply need not wait for each other."""
    trials = ((place, trial) for task in tasks for place, trial in enumerate(trials_to_judge(run, judge, task.name)))
    for position, trial in trials:
        for request in plan_votes(judge, [(trial.sample, trial.prediction)]):
            yield ReadyRequests(Item(position, trial.sample), (request,))

"""A judge asked about a stored run: its votes are kept beside the run, as a run of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import RunMismatch
from ..core.jobs import Item, ReadyRequests
from ..core.protocols import Model
from ..core.tasks import Task
from ..data.catalog import Catalog
from ..engine.limits import Limits
from ..engine.state import RunState
from ..scoring.judging.asking import plan_votes
from ..scoring.judging.judge_card import Judge, judge_identity, read_judge
from ..scoring.judging.stored_votes import judge_folder, trials_to_judge
from ..store.reader import RunReader
from .session import ModelJobs, ask_jobs, check_finished, limits_for
from .settings import RunSettings


def load_judge(name: str, catalogs: Sequence[Path] = ()) -> Judge:
    """Return a judge of the catalog."""
    return read_judge(Catalog(catalogs).card("judges", name), name)


def ask_judge(
    folder: Path, judge: Judge, model: Model, settings: RunSettings, limits: Limits | None = None
) -> RunState:
    """Ask a judge about every reply of a run; what was asked before is not asked again. Returns counts and tokens.

    A judge that comes after another is asked about what that one extracted, within the same limits.
    """
    limits = limits or limits_for(model, settings)
    if judge.after:
        ask_judge(folder, load_judge(judge.after), model, settings, limits)
    with RunReader(folder) as run:
        header = run.header()
        tasks = tuple(Task(f"{task.name}@{judge.name}", {"loader": "judge"}, task.form) for task in header.tasks)
        work = ModelJobs(
            judge_folder(folder, judge.name),
            model,
            _Votes(run, judge, header.tasks),
            planned={},
            config={"run": header.id, "judge": judge_identity(judge)},
            tasks=tasks,
            versions=header.versions,
        )
        try:
            state = ask_jobs(work, settings, limits=limits)
        except RunMismatch as mismatch:
            fix = f"to ask otherwise, move {work.folder} away first: verdicts of two judges are never mixed"
            raise RunMismatch(f"judge {judge.name!r} was asked otherwise before ({mismatch}); {fix}") from None
    check_finished(state, f"judge {judge.name!r}")  # half a jury gives no score
    return state


@dataclass(frozen=True, slots=True)
class _Votes:
    """A job a vote, made anew whenever they are gone through: the votes on one reply need not wait for each other."""

    run: RunReader
    judge: Judge
    tasks: Sequence[Task]

    def __iter__(self) -> Iterator[ReadyRequests]:
        for task in self.tasks:
            for position, trial in enumerate(trials_to_judge(self.run, self.judge, task.name)):
                for request in plan_votes(self.judge, [(trial.sample, trial.prediction)]):
                    yield ReadyRequests(Item(position, trial.sample), (request,))

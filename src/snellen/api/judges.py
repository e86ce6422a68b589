"""A model asked about the replies of a run: a judge about all of them, an extractor about those a rule left unread.

Both are runs of their own beside it: asked through a `Session`, kept, resumed, priced and limited as any run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..core.builtins import default_registry
from ..core.errors import EnvironmentProblem, RunMismatch, UsageError
from ..core.jobs import Item, ReadyRequests
from ..core.process import run_to_end
from ..core.protocols import Model
from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..core.text import plural
from ..core.types import TrialKey
from ..data.catalog import Catalog
from ..engine.limits import Limits
from ..engine.state import RunState
from ..model.served.prices import money
from ..report.files import atomic_file
from ..report.pages.finish import finish_run
from ..scoring.judges.extractor import extractor_folder, left_by_rule, slot_of, tasks_by_card
from ..scoring.judges.judge_card import Judge, judge_identity, plan_votes, read_judge
from ..scoring.judges.labels import (
    Labels,
    add_labels,
    asked_judge,
    check_draw,
    check_person,
    drawn_tasks,
    kept_labels,
    labels_file,
    marked_options,
    people_labels,
    read_label,
    read_labels,
)
from ..scoring.judges.verdicts import trials_to_judge
from ..scoring.protocols.readings import Reading, judge_folder
from ..scoring.ranges import joined_scorer
from ..scoring.scorers.replies import answer_text
from ..store.reader import RunReader, Trial
from .chosen_model import create_model
from .session import Listener, ModelJobs, ask_jobs, check_finished, limits_for
from .settings import RunSettings, make_record, refuse_others


def draw_replies(folder: str | Path, judge_name: str, count: int, by: str = "") -> list[dict[str, Any]]:
    """Return the first `count` judged replies of each task to label, without the judge's verdict: it would sway people.

    What `by` labelled before keeps its label, so that labelling can go on with a larger count; what others said of a
    reply is not shown either.
    """
    by = check_person(by)
    with RunReader(Path(folder)) as reader:
        drawn = drawn_tasks(reader, judge_name)
        labels = kept_labels(Path(folder), drawn.judge, by)
        rows = [row for task, keys in drawn.order.items() for row in _rows(reader, task, keys[:count], labels)]
    return [{**row, "by": by} for row in rows] if by else rows


def take_labels(folder: str | Path, judge_name: str, file: str | Path, by: str = "") -> dict[str, Any]:
    """Keep people's labels beside a run (labels-NAME.jsonl) and return its results, scored with them.

    `by` is who gave those that name nobody. Everybody's labels are kept; a person's own are corrected by later ones.
    """
    run = Path(folder)
    with RunReader(run) as reader:
        drawn = drawn_tasks(reader, judge_name)
    people = read_labels(Path(file), drawn.judge, list(drawn.order), check_person(by))
    if not people:
        raise UsageError(f"{file} holds no label: fill in the field label of its rows")
    kept = people_labels(run, drawn.judge)
    for person, labels in people.items():
        for task, keys in drawn.order.items():
            check_draw({key: value for key, value in labels.items() if key.task == task}, keys)
        _refuse_loss(labels, kept.get(person, {}), Path(file), labels_file(run, drawn.judge.name))
    add_labels(run, drawn.judge, {person: _changed(labels, kept.get(person, {})) for person, labels in people.items()})
    return finish_run(run, default_registry())


def _changed(labels: Labels, kept: Labels) -> Labels:
    """Return the labels that are not kept already, and corrections of those that are."""
    return {key: value for key, value in labels.items() if kept.get(key) != value}


def _refuse_loss(labels: Labels, kept: Labels, file: Path, place: Path) -> None:
    """Refuse a file that would take labels away which somebody gave elsewhere, in the viewer or in another file."""
    lost = [key for key in kept if key not in labels]
    if lost:
        count = max(sum(key.task == task for key in kept) for task in {key.task for key in kept})
        fix = f"draw with --count {count} or more, which takes them along, or remove {place.name} first"
        raise UsageError(
            f"{file} lacks {plural(len(lost), 'label')} that {place.name} holds (sample {lost[0].sample!r}): {fix}"
        )


def continue_labels(
    folder: str | Path, judge_name: str, count: int, file: str | Path, by: str = ""
) -> list[dict[str, Any]]:
    """Return the drawn replies with the labels of one person that a file holds already, if it is there."""
    rows = draw_replies(folder, judge_name, count, by)
    if not Path(file).exists():
        return rows
    with RunReader(folder) as reader:
        names = [task.name for task in reader.header().tasks]
    people = read_labels(Path(file), asked_judge(Path(folder), judge_name), names, by)
    kept = people.get(by, {})
    known = [(row, kept.get(TrialKey(*(row[name] for name in TrialKey.__struct_fields__)))) for row in rows]
    return [row if label is None else row | {"label": label} for row, label in known]


def check_label(folder: str | Path, judge_name: str, said: str) -> float | None:
    """Return what a label means on a judge's scale, None for an empty one; anything else is refused."""
    return read_label(said, asked_judge(Path(folder), judge_name), "this")


def write_drawn(rows: list[dict[str, Any]], path: str | Path) -> None:
    """Write replies to label as JSONL, for people to fill in."""
    with atomic_file(Path(path).absolute()) as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def _rows(reader: RunReader, task: str, drawn: Sequence[TrialKey], labels: Labels) -> list[dict[str, Any]]:
    wanted = {key: place for place, key in enumerate(drawn)}
    found = [trial for trial in reader.trials(task) if trial.prediction.key in wanted]
    found.sort(key=lambda trial: wanted[trial.prediction.key])
    return [
        {
            **msgspec.structs.asdict(trial.prediction.key),
            "question": trial.sample.question,
            "options": list(trial.sample.options),
            "shown": marked_options(trial.request),
            "answers": list(trial.sample.answers),
            "images": [image.ref for image in trial.sample.images if not image.ref.startswith("data:")],
            "reply": answer_text(trial.prediction),
            "label": labels.get(trial.prediction.key),
        }
        for trial in found
    ]


Wanted = Callable[[Task], Callable[[Trial], bool]]
"""Of a task: which of its trials a model is asked about."""


def load_judge(name: str, catalogs: Sequence[Path] = ()) -> Judge:
    """Return a judge of the catalog."""
    return read_judge(Catalog(catalogs).card("judges", name), name)


def asking_settings(model: str, told: Mapping[str, Any]) -> RunSettings:
    """Return how a judge or an extractor is asked; what its card says, and what means nothing there, is refused."""
    settings = make_record(RunSettings, "judge", {"tasks": (), "model": model, **told})
    refuse_others(settings, "judge")
    return settings


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
        votes = _Votes(run, judge, run.header().tasks)
        return _ask(votes, f"judge {judge.name!r}", judge_folder(folder, judge.name), model, settings, limits=limits)


def _ask(votes: _Votes, who: str, into: Path, model: Model, settings: RunSettings, *, limits: Limits) -> RunState:
    """Ask for all votes that are not stored yet; half of them are refused, as they give no score."""
    header, judge = votes.run.header(), votes.judge
    work = ModelJobs(
        into,
        model,
        votes,
        planned={},
        config={"run": header.id, "judge": judge_identity(judge)},
        tasks=tuple(Task(f"{task.name}@{judge.name}", {"loader": "judge"}, task.form) for task in votes.tasks),
        versions=header.versions,
    )
    try:
        state = ask_jobs(work, settings, votes.listener, limits=limits)
    except RunMismatch as mismatch:
        fix = f"to ask otherwise, move {into} away first: verdicts of two judges are never mixed"
        raise RunMismatch(f"{who} was asked otherwise before ({mismatch}); {fix}") from None
    check_finished(state, who)
    return state


def _every_reply(task: Task) -> Callable[[Trial], bool]:
    return lambda trial: True


@dataclass(frozen=True, slots=True)
class _Votes:
    """A job a vote, made anew whenever they are gone through: the votes on one reply need not wait for each other."""

    run: RunReader
    judge: Judge
    tasks: Sequence[Task]
    wanted: Wanted = _every_reply
    listener: Listener | None = None

    def __iter__(self) -> Iterator[ReadyRequests]:
        for task in self.tasks:
            is_wanted = self.wanted(task)
            for position, trial in enumerate(trials_to_judge(self.run, self.judge, task.name)):
                if not is_wanted(trial):
                    continue
                for request in plan_votes(self.judge, [(trial.sample, trial.prediction)], trial.request):
                    yield ReadyRequests(Item(position, trial.sample), (request,))


def check_extractor(header: RunHeader, model: str, protocol: str = "", *, catalogs: Sequence[Path] = ()) -> None:
    """Refuse an extractor where no task has a slot for one, before anything is asked."""
    cards = tasks_by_card(header, protocol)
    for card in cards:
        load_judge(card, catalogs)
    if not cards:
        names = ", ".join(f"{task.name} ({protocol or task.protocol or 'no protocol'})" for task in header.tasks)
        what = f"--extractor {model}: no tool of these protocols asks a model for the answer"
        raise UsageError(f"{what}: {names}; leave it out, or --protocol names another")


def check_reachable(settings: RunSettings, registry: Registry) -> None:
    """Refuse an extractor that cannot be asked (a mistyped name, a dead server) before a run is paid for."""
    run_to_end(_look_at(create_model(settings, registry)))


async def _look_at(model: Model) -> None:
    try:
        await model.check()
    finally:
        await model.close()


def ask_extractor(
    folder: Path,
    reading: Reading,
    settings: RunSettings,
    registry: Registry,
    *,
    listener: Listener | None = None,
    catalogs: Sequence[Path] = (),
) -> None:
    """Ask the extractor of a reading about every reply that the protocols' own rules leave unread, each once.

    All cards of a run's tasks are asked within the same limits.
    """
    with RunReader(folder) as run:
        header = run.header()
        check_extractor(header, reading.extractor, reading.protocol, catalogs=catalogs)
        limits: Limits | None = None
        for card, tasks in tasks_by_card(header, reading.protocol).items():
            model = create_model(settings, registry)  # a session closes its model
            limits = limits or limits_for(model, settings)
            votes = _Votes(run, load_judge(card, catalogs), tasks, left_to_model(registry, reading), listener)
            into = extractor_folder(folder, card, reading.extractor)
            _ask(votes, f"extractor {reading.extractor}", into, model, settings, limits=limits)


def left_to_model(registry: Registry, reading: Reading) -> Wanted:
    """Return which trials of a task its protocol's own rule leaves to the model."""

    def of_task(task: Task) -> Callable[[Trial], bool]:
        slot, score = slot_of(task), joined_scorer(registry, reading.scorers or task.scorers)
        if slot is None:
            raise ValueError(f"task {task.name!r} has no slot for an extractor")
        options = {**task.score_options, **reading.options()}
        return lambda trial: left_by_rule(score, slot, (trial.sample, trial.request, trial.prediction), options)[1]

    return of_task


def rest_of(settings: RunSettings, spent: float, seconds: float) -> dict[str, float]:
    """Return what a run that spent so much and took so long leaves its extractor of its own limits."""
    rest: dict[str, float] = {}
    if settings.max_cost is not None:
        rest["max_cost"] = settings.max_cost - spent
    if settings.deadline_s is not None:
        rest["deadline_s"] = settings.deadline_s - seconds
    if min(rest.values(), default=1.0) <= 0:
        what = f"the limits of the run leave its extractor nothing ({money(spent)} spent, {seconds:.0f} s gone)"
        raise EnvironmentProblem(f"{what}; every reply is kept, the same command with more continues it")
    return rest

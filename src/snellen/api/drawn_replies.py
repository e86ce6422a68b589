"""People's labels on judged replies: which replies to look at, and what their labels make of the judge's figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.text import plural
from ..core.types import TrialKey
from ..report.files import atomic_file
from ..report.pages.finish import finish_run
from ..scoring.judges.label_desk import add_labels, asked_judge, drawn_tasks, kept_labels, people_labels
from ..scoring.judges.labels import Labels, check_draw, labels_file, marked_options, read_label, read_labels
from ..scoring.judges.people import check_person
from ..scoring.scorers.replies import answer_text
from ..store.reader import RunReader


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

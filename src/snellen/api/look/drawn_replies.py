"""People's labels on judged replies: which replies to look at, and what their labels make of the judge's figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ...core.builtins import default_registry
from ...core.errors import UsageError, did_you_mean
from ...core.types import TrialKey
from ...report.files import atomic_file
from ...report.finish import finish_run
from ...scoring.judging.judge_card import Judge
from ...scoring.judging.labels import (
    check_draw,
    draw_order,
    judged_keys,
    label_lines,
    labels_file,
    read_label,
    read_labels,
)
from ...scoring.judging.stored_votes import FOLDER_PREFIX, judge_folder, judge_folders, stored_judge, stored_verdicts
from ...scoring.scorers.replies import answer_text
from ...store.reader import RunReader


def draw_replies(folder: str | Path, judge_name: str, count: int) -> list[dict[str, Any]]:
    """Return the first `count` judged replies of each task to label, without the judge's verdict: it would sway people.

    What was labelled before keeps its label, so that labelling can go on with a larger count.
    """
    run = Path(folder)
    judge = asked_judge(run, judge_name)
    with RunReader(run) as reader:
        names = [task.name for task in reader.header().tasks]
        kept = labels_file(run, judge.name)
        labels = read_labels(kept, judge, names) if kept.is_file() else {}
        rows: list[dict[str, Any]] = []
        for task in names:
            drawn = draw_order(reader.header().id, _judged(reader, judge, task))[:count]
            rows += _rows(reader, task, drawn, labels)
    return rows


def take_labels(folder: str | Path, judge_name: str, file: str | Path) -> dict[str, Any]:
    """Keep people's labels beside a run (labels-NAME.jsonl) and return its results, scored with them."""
    run = Path(folder)
    judge = asked_judge(run, judge_name)
    with RunReader(run) as reader:
        header = reader.header()
        labels = read_labels(Path(file), judge, [task.name for task in header.tasks])
        if not labels:
            raise UsageError(f"{file} holds no label: fill in the field label of its rows")
        for task in header.tasks:
            own = {key: value for key, value in labels.items() if key.task == task.name}
            check_draw(own, draw_order(header.id, _judged(reader, judge, task.name)))
    with atomic_file(labels_file(run, judge.name)) as kept:
        kept.write(label_lines(labels))
    return finish_run(run, default_registry())


def continue_labels(folder: str | Path, judge_name: str, count: int, file: str | Path) -> list[dict[str, Any]]:
    """Return the drawn replies with the labels that a file holds already, if it is there."""
    rows = draw_replies(folder, judge_name, count)
    if not Path(file).exists():
        return rows
    with RunReader(folder) as reader:
        names = [task.name for task in reader.header().tasks]
    kept = read_labels(Path(file), asked_judge(Path(folder), judge_name), names)
    known = [(row, kept.get(TrialKey(*(row[name] for name in TrialKey.__struct_fields__)))) for row in rows]
    return [row if label is None else row | {"label": label} for row, label in known]


def check_label(folder: str | Path, judge_name: str, said: str) -> float | None:
    """Return what a label means on a judge's scale, None for an empty one; anything else is refused."""
    return read_label(said, asked_judge(Path(folder), judge_name), "this")


def write_drawn(rows: list[dict[str, Any]], path: str | Path) -> None:
    """Write replies to label as JSONL, for people to fill in."""
    with atomic_file(Path(path).absolute()) as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def asked_judge(run: Path, name: str) -> Judge:
    """Return a judge that was asked about a run; one that was not is refused, with those that were."""
    folder = judge_folder(run, name)
    if not (folder / "run.db").exists():
        known = [one.name.removeprefix(FOLDER_PREFIX) for one in judge_folders(run)]
        asked = f"asked: {', '.join(known)}" if known else f"ask it: snellen score {run} --judge {name} --judge-model …"
        raise UsageError(f"judge {name!r} was not asked about {run}{did_you_mean(name, known)}; {asked}")
    with RunReader(folder) as votes:
        return stored_judge(votes)


def _judged(reader: RunReader, judge: Judge, task: str) -> list[TrialKey]:
    return judged_keys(judge, stored_verdicts(reader, task))


def _rows(reader: RunReader, task: str, drawn: list[TrialKey], labels: dict[TrialKey, float]) -> list[dict[str, Any]]:
    wanted = {key: place for place, key in enumerate(drawn)}
    found = [trial for trial in reader.trials(task) if trial.prediction.key in wanted]
    found.sort(key=lambda trial: wanted[trial.prediction.key])
    return [
        {
            **msgspec.structs.asdict(trial.prediction.key),
            "question": trial.sample.question,
            "options": list(trial.sample.options),
            "answers": list(trial.sample.answers),
            "images": [image.ref for image in trial.sample.images if not image.ref.startswith("data:")],
            "reply": answer_text(trial.prediction),
            "label": labels.get(trial.prediction.key),
        }
        for trial in found
    ]

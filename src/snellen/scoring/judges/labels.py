"""What people say of a few judged replies: which few (drawn, so that nobody chooses), and their labels on disk.

Trials are put in an order that hangs on the run alone; whoever labels begins at its beginning. So any number of labels
without a gap is a random sample, and labels that were picked by hand are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.ids import content_hash
from ...core.types import BASE_VARIANT, Request, Score, TrialKey
from ...data.files.records import read_records
from .judge_card import WORD, Judge
from .people import check_person

Labels = Mapping[TrialKey, float]


def labels_file(run: Path, judge: str) -> Path:
    """Return where the labels on the replies that a judge saw are kept."""
    return run / f"labels-{judge}.jsonl"


def draw_order(run_id: str, keys: Iterable[TrialKey]) -> list[TrialKey]:
    """Return trials in the order in which people look at them: as good as random, and the same every time."""
    return sorted(keys, key=lambda key: content_hash(["label", run_id, key], 32))


def judged_keys(judge: Judge, scores: Iterable[Score]) -> list[TrialKey]:
    """Return the trials on which a judge has a valid verdict: those that a label can be held against."""
    return [score.key for score in scores if score.metric == judge.metric and score.value is not None]


def read_labels(path: Path, judge: Judge, tasks: Sequence[str], by: str = "") -> dict[str, dict[TrialKey, float]]:
    """Read labels (JSONL: task, sample, variant, repeat, label, by) by person; an empty label is none yet.

    `by` is who gave those that name nobody; a row that names somebody else is refused.
    """
    labels: dict[str, dict[TrialKey, float]] = {}
    for record in read_records(path):
        fields = record.fields
        where = f"{path} record {record.number}"
        value = read_label(fields.get("label"), judge, where)
        if value is None:
            continue
        task = str(fields.get("task") or (tasks[0] if len(tasks) == 1 else ""))
        if task not in tasks:
            raise DataError(f"{where} names task {task!r}; the run has {', '.join(tasks)}")
        sample = fields.get("sample")
        if sample is None:
            raise DataError(f"{where} names no sample: keep the rows as they were drawn, and fill in label alone")
        variant, repeat = str(fields.get("variant") or BASE_VARIANT), int(fields.get("repeat") or 0)
        key = TrialKey(task, str(sample), variant, repeat)
        person = _person(fields.get("by"), by, where)
        if labels.setdefault(person, {}).setdefault(key, value) != value:
            fix = "keep one label a reply and person (--by NAME, or a field `by`, says whose it is)"
            raise DataError(f"{where} labels sample {sample!r} again, and otherwise: {fix}")
    return labels


def _person(named: Any, by: str, where: str) -> str:
    person = check_person(str(named or by))
    if by and person != by:
        raise DataError(f"{where} is a label of {person!r}, and --by says {by!r}: leave --by, or mend the row")
    return person


def read_label(value: Any, judge: Judge, where: str) -> float | None:
    """Return what a label means on the judge's scale, None for none; anything else is refused."""
    if value is None or value == "":
        return None
    low, high = judge.bounds()
    if isinstance(value, str) and judge.verdict == WORD and value.strip() in judge.choices:
        return judge.choices[value.strip()]
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if low <= number <= high:
        return number
    words = f"one of {', '.join(judge.choices)}, or " if judge.choices else ""
    raise DataError(f"{where}: label {value!r} is not {words}a number from {low:g} to {high:g}")


def marked_options(request: Request) -> list[str]:
    """Return the options as the model saw them: a reply `B` means nothing without the marks and their order."""
    return [f"{mark}. {text}" for mark, text in zip(request.marks, request.shown, strict=False)]


def check_draw(labels: Labels, order: Sequence[TrialKey]) -> None:
    """Refuse labels that are not the beginning of the order they are drawn in: chosen by hand, they would mislead."""
    unknown = next((key for key in labels if key not in set(order)), None)
    if unknown is not None:
        raise DataError(f"sample {unknown.sample!r} of task {unknown.task!r} has a label and no verdict of the judge")
    missing = next((key for key in order[: len(labels)] if key not in labels), None)
    if missing is not None:
        why = "a part chosen by hand would mislead"
        fix = f"label it, or drop the labels of the rows after it ({why})"
        raise DataError(f"sample {missing.sample!r} was drawn before others that have labels, and has none: {fix}")


def label_lines(labels: Labels, by: str = "") -> bytes:
    """Return one person's labels as JSONL."""
    told = {"by": by} if by else {}
    rows = [{**msgspec.structs.asdict(key), "label": value, **told} for key, value in labels.items()]
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)

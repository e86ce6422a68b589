"""The desk at which people label judged replies: who was asked, what comes next, and labels kept one by one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError, EnvironmentProblem, UsageError, did_you_mean
from ...core.types import TrialKey
from ...store.reader import RunReader
from ..protocols.readings import JUDGE_PREFIX, judge_folder, judge_folders
from .judge_card import Judge
from .labels import Labels, draw_order, judged_keys, label_lines, labels_file, read_label
from .people import LabelsByPerson, check_person
from .stored_votes import stored_judge, stored_verdicts


class DrawnTasks(Struct, frozen=True):
    """A judge that was asked about a run, and its judged trials by task in the order in which people look at them."""

    judge: Judge
    order: Mapping[str, Sequence[TrialKey]]

    def next_key(self, labels: Labels, task: str = "") -> TrialKey | None:
        """Return the first drawn trial without a label, of a task or of any; None where all have one."""
        drawn = [self.order[task]] if task in self.order else list(self.order.values())
        return next((key for keys in drawn for key in keys if key not in labels), None)

    def check_turn(self, key: TrialKey, labels: Labels) -> None:
        """Refuse a trial that has no label and is not the next of its task: picked by hand, it would mislead."""
        if key not in labels and self.next_key(labels, key.task) != key:
            fix = "label them in the order in which they are drawn; open the page again"
            raise UsageError(f"sample {key.sample!r} of task {key.task!r} is not the next one: {fix}")


def asked_judges(run: Path) -> list[str]:
    """Return the names of the judges that were asked about a run."""
    return [folder.name.removeprefix(JUDGE_PREFIX) for folder in judge_folders(run) if (folder / "run.db").exists()]


def asked_judge(run: Path, name: str) -> Judge:
    """Return a judge that was asked about a run; one that was not is refused, with those that were."""
    known = asked_judges(run)
    if name not in known:
        asked = f"asked: {', '.join(known)}" if known else f"ask it: snellen score {run} --judge {name} --judge-model …"
        raise UsageError(f"judge {name!r} was not asked about {run}{did_you_mean(name, known)}; {asked}")
    with RunReader(judge_folder(run, name)) as votes:
        return stored_judge(votes)


def drawn_tasks(reader: RunReader, name: str) -> DrawnTasks:
    """Return what people are to look at of a run that a judge was asked about."""
    judge, header = asked_judge(Path(reader.folder), name), reader.header()
    judged = {task.name: judged_keys(judge, stored_verdicts(reader, task.name)) for task in header.tasks}
    return DrawnTasks(judge, {task: draw_order(header.id, keys) for task, keys in judged.items()})


class _Line(Struct, frozen=True):
    task: str
    sample: str
    variant: str
    repeat: int
    label: Any = None
    by: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def kept_labels(run: Path, judge: Judge, by: str = "") -> dict[TrialKey, float]:
    """Return the labels of one person kept beside a run, in the order in which they were given."""
    return people_labels(run, judge).get(check_person(by), {})


def people_labels(run: Path, judge: Judge) -> dict[str, dict[TrialKey, float]]:
    """Return everybody's labels kept beside a run; of one person's on one reply the last counts: a correction."""
    path = labels_file(run, judge.name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise EnvironmentProblem(f"cannot read {path}: {error.strerror}") from None
    found: dict[str, dict[TrialKey, float]] = {}
    for number, text in enumerate(content.split(b"\n")[:-1], 1):  # what follows the last line end was never finished
        where = f"{path} line {number}"
        try:
            line = _decode(text)
        except msgspec.DecodeError as error:
            raise DataError(f"{where} is not a label ({error}): mend or remove the line") from None
        value = read_label(line.label, judge, where)
        key = TrialKey(line.task, line.sample, line.variant, line.repeat)
        own = found.setdefault(check_person(line.by), {})
        own.pop(key, None)
        if value is not None:
            own[key] = value
    return found


def add_label(run: Path, judge: Judge, key: TrialKey, value: float, by: str = "") -> None:
    """Add a person's label to those kept beside a run: synced before this returns."""
    add_labels(run, judge, {by: {key: value}})


def add_labels(run: Path, judge: Judge, people: LabelsByPerson) -> None:
    """Add people's labels to those kept beside a run, in lines after them; a torn end is cut off first."""
    path = labels_file(run, judge.name)
    lines = b"".join(label_lines(labels, by) for by, labels in people.items())
    try:
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from None

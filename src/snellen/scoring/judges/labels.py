"""What people say of a few judged replies: which few (drawn, so that nobody chooses), and their labels on disk.

Trials are put in an order that hangs on the run alone; whoever labels begins at its beginning. So any number of labels
without a gap is a random sample, and labels that were picked by hand are refused.
"""

from __future__ import annotations

import fcntl
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError, EnvironmentProblem, UsageError, did_you_mean
from ...core.ids import content_hash
from ...core.text import plural
from ...core.types import BASE_VARIANT, Request, Score, TrialKey
from ...data.files.records import read_records
from ...stats.agreement import Agreement
from ...store.reader import RunReader
from ..protocols.readings import JUDGE_PREFIX, judge_folder, judge_folders
from .judge_card import NUMBER, PAIR, WORD, Judge
from .verdicts import stored_judge, stored_verdicts

LabelsByPerson = Mapping[str, Mapping[TrialKey, float]]
"""Person -> reply -> label; nobody's name is empty."""
UNNAMED = "unnamed"
LONGEST_NAME = 80
SHOWN_DISPUTES = 5


class SettledLabels(Struct, frozen=True):
    """One label a reply, where people agree, and what became of the replies on which they do not."""

    labels: dict[TrialKey, float]
    disputed: dict[TrialKey, dict[str, float]]
    """Replies without a label that more than half gave, and what everybody said: none of them is used."""
    majority: int
    """Replies on which people differ and more than half of three or more agree: theirs is used."""
    averaged: int
    """Replies on which people's grades differ: their mean is used."""
    people: dict[str, int]
    """How many replies each person labelled."""
    agreement: Agreement
    apart: float | None
    """How far two people's labels on one reply lie apart on average."""

    def with_disputed(self, pick: Any) -> dict[TrialKey, float]:
        """Return the labels with the disputed replies too, each with the one of its labels that `pick` takes."""
        return self.labels | {key: pick(said.values()) for key, said in self.disputed.items()}


def check_person(name: str) -> str:
    """Return the name that a person's labels are kept under; a name that no line could show is refused.

    `Anna` and `anna ` are one person: as two she would agree with herself, and outvote somebody else.
    """
    bare = unicodedata.normalize("NFKC", name).casefold().strip()
    if len(bare) > LONGEST_NAME or not bare.isprintable():
        raise UsageError(f"{bare[:LONGEST_NAME]!r} is no name: at most {LONGEST_NAME} printable characters")
    return " ".join(bare.split())


def settle_people(people: LabelsByPerson, judge: Judge) -> SettledLabels:
    """Settle every reply that somebody labelled: by agreement, by a majority of three or more; of grades the mean."""
    said: dict[TrialKey, dict[str, float]] = {}
    for person, labels in people.items():
        for key, value in labels.items():
            said.setdefault(key, {})[person] = value
    settled: dict[TrialKey, float] = {}
    disputed: dict[TrialKey, dict[str, float]] = {}
    counts, agreement, apart = Counter[str](), Agreement(), []
    for key, given in said.items():
        agreement.change({}, {person: f"{value:g}" for person, value in given.items()})
        apart += _distances(list(given.values()))
        label, how = _settle(list(given.values()), graded=judge.verdict in (NUMBER, PAIR))
        counts[how] += 1
        if label is None:
            disputed[key] = given
        else:
            settled[key] = label
    each = {person: len(labels) for person, labels in people.items() if labels}
    mean = sum(apart) / len(apart) if apart else None
    return SettledLabels(settled, disputed, counts["majority"], counts["mean"], each, agreement, mean)


def _settle(values: list[float], *, graded: bool) -> tuple[float | None, str]:
    label, most = Counter(values).most_common(1)[0]
    if most == len(values):
        return label, "same"
    if graded:
        return sum(values) / len(values), "mean"
    return (label, "majority") if 2 * most > len(values) else (None, "disputed")


def _distances(values: list[float]) -> list[float]:
    return [abs(one - other) for at, one in enumerate(values) for other in values[at + 1 :]]


def people_account(settled: SettledLabels, judge: Judge) -> dict[str, Any]:
    """Return what results.json says of the people who labelled: who, how far they agree, what was not used."""
    agreement = settled.agreement
    account: dict[str, Any] = {"people": {person or UNNAMED: count for person, count in settled.people.items()}}
    if len(settled.people) < 2:
        return account
    graded = judge.verdict in (NUMBER, PAIR)
    return account | {
        "shared": agreement.items,
        "people_same": agreement.observed,
        "people_apart": settled.apart,
        "alpha": None if graded else agreement.alpha(),
        "kappas": [] if graded else _kappa_rows(agreement),
        "by_majority": settled.majority,
        "by_mean": settled.averaged,
        "disputed": [
            {**msgspec.structs.asdict(key), "labels": {person or UNNAMED: value for person, value in given.items()}}
            for key, given in settled.disputed.items()
        ],
    }


def _kappa_rows(agreement: Agreement) -> list[dict[str, Any]]:
    """Return Cohen's kappa of every two people."""
    return [
        {"people": [one or UNNAMED, other or UNNAMED], "kappa": kappa, "n": shared}
        for (one, other), (kappa, shared) in agreement.kappas().items()
    ]


def people_notes(labels: Mapping[str, Any], judge: Judge, figure: str) -> list[str]:
    """Say who labelled, how far they agree, and which replies were settled or left out; nothing of one person alone."""
    people = labels.get("people", {})
    if len(people) < 2:
        return []
    notes = [
        f"{figure}: labels of {', '.join(f'{person} ({count})' for person, count in people.items())}{_shared(labels)}"
    ]
    if labels["by_majority"]:
        settled = f"{plural(labels['by_majority'], 'reply')} on which people differ"
        notes.append(f"{figure}: settled by the label of more than half: {settled}")
    if labels["by_mean"]:
        settled = f"{plural(labels['by_mean'], 'reply')} on which people's grades differ"
        notes.append(f"{figure}: settled by the mean grade: {settled}")
    if labels["disputed"]:
        notes.append(_disputes(labels, judge, figure))
    return notes


def _shared(labels: Mapping[str, Any]) -> str:
    if not labels["shared"]:
        return "; no reply was labelled by two of them, so nothing is known of how far they agree"
    share = f"{100 * labels['people_same']:.1f} % have one label"
    same = f"; of {plural(labels['shared'], 'reply')} that several labelled {share}"
    kappas = labels["kappas"]
    if len(kappas) == 1 and kappas[0]["kappa"] is not None:
        return f"{same} (Cohen's kappa {kappas[0]['kappa']:.2f})"
    if labels["alpha"] is not None:
        return f"{same} (Krippendorff's alpha {labels['alpha']:.2f})"
    return f"{same}, and two labels lie {labels['people_apart']:.3g} apart on average"


def _disputes(labels: Mapping[str, Any], judge: Judge, figure: str) -> str:
    disputed = labels["disputed"]
    words = {value: word for word, value in judge.choices.items()} if judge.verdict == WORD else {}
    shown = [f"{one['sample']}: {_said(one['labels'], words)}" for one in disputed[:SHOWN_DISPUTES]]
    more = len(disputed) - len(shown)
    listed = "; ".join(shown) + (f"; {more} more in results.json" if more else "")
    said = f"{figure}: not used: {plural(len(disputed), 'reply')} on which people disagree ({listed})"
    if labels["range"] is None:
        return said
    low, high = labels["range"]
    return f"{said}; with the lower label for all of them it would be {low:.3f}, with the higher {high:.3f}"


def _said(labels: Mapping[str, float], words: Mapping[float, str]) -> str:
    return ", ".join(f"{person} {words.get(value, value)}" for person, value in labels.items())


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
    judge, header = asked_judge(reader.folder, name), reader.header()
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

"""Predictions made elsewhere to a stored run: replies as they are, failures as failures, damage counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...api.header import installed_versions, make_header
from ...api.judges import ask_extractor
from ...api.load import load_dataset
from ...api.session import open_store
from ...api.settings import RunSettings
from ...core.builtins import default_registry
from ...core.errors import DataError, UsageError
from ...core.ids import file_sha256
from ...core.process import rare_collections, run_to_end
from ...core.tasks import RunHeader, Task
from ...core.text import clean_text
from ...core.types import (
    Failure,
    FailureKind,
    Form,
    Likelihood,
    Prediction,
    Request,
    Sample,
    Timing,
    TrialKey,
    Turn,
    Usage,
)
from ...data.atlas.peer_cards import peer_card
from ...data.dataset import fingerprint_of
from ...data.loaders.option_texts import fold
from ...report.files import atomic_file
from ...report.pages.finish import finish_run
from ...scoring.protocols.readings import OWN, Reading
from ...scoring.scorers.option_choice import RIGHT
from ...scoring.scorers.replies import PEER
from .damage import Damage
from .foreign_rows import ForeignFile, ForeignRow, has_letters_alone, letter_options, lettered
from .formats import OWN_ROWS, open_predictions
from .row_spool import FIRST, REFUSE, RowSpool, spool_rows

BY_ID, BY_ORDER = "id", "order"
TRACES = "traces"
JOINS = (BY_ID, BY_ORDER)


class BenchmarkRows:
    """The samples of a dataset, found by id or by the place a row says it has."""

    def __init__(self, task: str, join: str | None, catalogs: Sequence[str | Path] = ()) -> None:
        if join is not None and join not in JOINS:
            raise UsageError(f"--join {join!r} is none of {', '.join(JOINS)}")
        self._name, self._join = task, join
        self._samples = list(load_dataset(task, catalogs=catalogs))
        self._by_id = {sample.id: sample for sample in self._samples}
        self._used: set[str] = set()

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def fingerprint(self) -> str:
        """Return what these rows are known by."""
        return fingerprint_of(self._samples)

    def compare(self, rows: Iterable[ForeignRow], damage: Damage) -> None:
        """Find every row and count what reads otherwise, or has no prediction.

        A row that is not in the data is refused, and so is data of which most questions read otherwise.
        """
        for row in rows:
            self._compare(row, self.find(row), damage)
        self._check(damage)

    def _compare(self, row: ForeignRow, sample: Sample, damage: Damage) -> None:
        self._used.add(sample.id)
        if sample.options and has_letters_alone(row.options, row.answers):
            row = _by_letters(row, sample)
            damage.mend(row.id)
        pairs = {
            "other_question": ([row.question] if row.question else [], [sample.question] if sample.question else []),
            "other_options": (row.options.values(), sample.options),
            "other_gold": (row.answers, sample.answers),
        }
        for kind, (told, known) in pairs.items():
            if told and known and not _same(told, known):
                damage.add(kind, row.id)
        if sample.answers and not row.answers:
            damage.mend(row.id)

    def find(self, row: ForeignRow) -> Sample:
        """Return the sample of a row: by its id, or by its place where the file names only that."""
        by_order = self._join == BY_ORDER or (
            self._join is None and row.place is not None and row.id not in self._by_id
        )
        if by_order:
            place = row.place if row.place is not None else -1
            if 0 <= place < len(self._samples):
                return self._samples[place]
            raise DataError(f"row {row.id!r} has no place in {self._name} ({len(self)} rows): is it another split?")
        if row.id not in self._by_id:
            first = next(iter(self._by_id), "")
            advice = f"its ids look like {first!r}; is it another version, or do rows join by --join order?"
            raise DataError(f"row {row.id!r} is not in {self._name}: {advice}")
        return self._by_id[row.id]

    def _check(self, damage: Damage) -> None:
        differing = damage.counts["other_question"]
        if differing * 2 > len(self._used):
            first = damage.named["other_question"][0]
            raise DataError(
                f"{differing} of {len(self._used)} questions read otherwise in {self._name} (first: row {first!r}): "
                "this is another benchmark, or another version of it"
            )
        for sample in self._samples:
            if sample.id not in self._used:
                damage.add("missing", sample.id)


def _same(texts: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether two lists hold the same texts, in whatever order."""
    return sorted(map(fold, texts)) == sorted(map(fold, others))


def join_row(row: ForeignRow, sample: Sample) -> ForeignRow:
    """Return a row with the options of its benchmark where the file shows none or others, and its right answers.

    Options that only stand in another order are kept as the file shows them; so are its right answers, since the
    harness's number came from them.
    """
    if not sample.options or (row.options and _same(row.options.values(), sample.options)):
        return replace(row, answers=row.answers or sample.answers)
    if has_letters_alone(row.options, row.answers):
        return _by_letters(row, sample)
    letters = {letter: text for letter, text in row.options.items() if text in row.answers}
    options = lettered(sample.options)
    answers = tuple(options[letter] for letter in letters if letter in options)
    form = row.form if row.form is Form.MULTIPLE else Form.CHOICE
    return replace(row, options=options, answers=answers or sample.answers, form=form)


def _by_letters(row: ForeignRow, sample: Sample) -> ForeignRow:
    """Return a row of which only letters are known with the options of its benchmark in their order."""
    options = lettered(sample.options)
    answers = tuple(options[answer[1]] for answer in row.answers if answer[1] in options)
    return replace(row, options=options, answers=answers or sample.answers)


def merged_sample(row: ForeignRow, sample: Sample) -> Sample:
    """Return the sample with what its joined row says of it."""
    return replace(
        sample,
        form=row.form,
        options=tuple(row.options.values()),
        answers=row.answers,
        group=row.group or sample.group,
        tags={**row.tags, **sample.tags},
    )


LONGEST_MESSAGE = 2_000
_KINDS = (
    (("timed out", "timeout"), FailureKind.TIMEOUT),
    (("rate limit", "429", "too many requests"), FailureKind.RATE),
    (("inappropriate", "content filter", "content_filter", "safety"), FailureKind.REFUSED),
    (("401", "403", "unauthorized", "api key"), FailureKind.AUTH),
    (("connection", "network"), FailureKind.NETWORK),
    (("holds no reply",), FailureKind.DECODE),
)
"""Words in a failure's text -> its kind; any other is the server's."""


def sample_of(row: ForeignRow, task: str) -> Sample:
    """Return the question as the file tells it."""
    return Sample(
        row.id,
        task,
        row.form,
        row.question or row.prompt,
        row.images,
        tuple(row.options.values()),
        row.answers,
        group=row.group,
        tags=dict(row.tags),
        meta=dict(row.meta),
    )


def request_of(key: TrialKey, row: ForeignRow, sample: Sample) -> Request:
    """Return what was sent, as far as the file holds it; else the question alone."""
    turns = (Turn("user", row.prompt or sample.question, sample.images),)
    shown = tuple(row.options.values())
    if row.loglikelihoods:
        return Request(key, turns, choices=shown, shown=shown, likelihood=Likelihood(row.reduction))
    return Request(key, turns, marks=tuple(row.options), shown=shown)


def prediction_of(key: TrialKey, row: ForeignRow) -> Prediction:
    """Return the reply or the failure, with what the harness made of it."""
    told = {"reply": row.read_reply, "read": row.read_answer, "verdict": row.verdict}
    peer = {name: value for name, value in told.items() if value is not None}
    detail: dict[str, Any] = {**row.detail, **({PEER: peer} if peer else {})}
    if row.right is not None:
        detail[RIGHT] = row.right
    failure = None if row.failure is None else failure_of(row.failure)
    likelihoods = row.loglikelihoods if failure is None and row.loglikelihoods else None
    return Prediction(
        key,
        text=None if failure is not None or likelihoods else clean_text(row.reply or ""),
        loglikelihoods=likelihoods,
        failure=failure,
        reasoning=row.reasoning,
        usage=Usage(*row.tokens) if row.tokens else None,
        timing=None if row.latency_s is None else Timing(0.0, row.latency_s),
        finish=row.finish,
        detail=detail,
        at=row.at,
    )


def failure_of(told: str) -> Failure:
    """Return a failure from a harness's own words; those of a run of ours begin with its kind."""
    named, _, message = told.partition(": ")
    if named in {kind.value for kind in FailureKind} and message:
        return Failure(FailureKind(named), message[:LONGEST_MESSAGE])
    return Failure(kind_of_failure(told), told[:LONGEST_MESSAGE])


def kind_of_failure(message: str) -> FailureKind:
    """Return the kind of failure that a harness's own words tell of."""
    lowered = message.lower()
    return next((kind for words, kind in _KINDS if any(word in lowered for word in words)), FailureKind.SERVER)


IMPORTED = "imported"
"""Where run.db keeps whose predictions it holds."""
ROWS_AT_ONCE = 1_000
DIGEST = "imported"
VERDICT = "file_verdict"
"""The scorer of files that say themselves what was right."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
NumberedTrial = tuple[int, Sample, Request, Prediction]


class ImportResult(Struct, frozen=True):
    """What an import left: the run, what was counted, and the results of reading it."""

    folder: Path
    about: dict[str, Any]
    """Harness, task, model, file, rows, failures, damage, notes, numbers reported."""
    results: dict[str, Any]


class Answerer(Struct, frozen=True):
    """The model that another harness asked, as far as its file says."""

    name: str
    harness: str
    digest: str

    def identity(self) -> Mapping[str, Any]:
        """Return the hash of the file: whatever it is called, its replies are these."""
        return {"model": self.name, IMPORTED: self.harness, "sha256": self.digest}


@rare_collections()
def import_predictions(
    path: str | Path,
    *,
    harness: str | None = None,
    task: str | None = None,
    model: str | None = None,
    data: str | None = None,
    join: str | None = None,
    repeated: str = REFUSE,
    columns: Mapping[str, str] | None = None,
    catalogs: Sequence[str | Path] = (),
    output: str | Path | None = None,
    command: str = "",
) -> ImportResult:
    """Read the predictions of another harness into a run, score them as Snellen reads, and say what was damaged.

    `data` names the benchmark (a file or a task) where ids, questions and pictures come from; `join` says whether rows
    are found in it by `id` or by `order`; `columns` says which column, or path (`messages[-1].content`), of one's own
    rows is which field. The same call again changes nothing.
    """
    damage = Damage()
    file = open_predictions(path, damage, harness, columns)
    return store_file(
        file,
        damage,
        task=task,
        model=model,
        data=data,
        join=join,
        repeated=repeated,
        catalogs=catalogs,
        output=output,
        command=command or f"snellen import {path}",
    )


class TakenQuestions(Struct, frozen=True):
    """What was taken from a file as questions to ask again."""

    path: Path
    questions: int
    pictures: int
    notes: list[str]
    """What the file has lost, in words."""


def take_questions(
    path: str | Path,
    output: str | Path,
    *,
    harness: str | None = None,
    columns: Mapping[str, str] | None = None,
    repeated: str = FIRST,
) -> TakenQuestions:
    """Write the questions of a file (a log, an export of a trace store) as rows that `snellen run` asks, each once.

    Replies are left aside, and may be missing; what else the file has lost is counted.
    """
    damage, target, seen, pictures = Damage(), Path(output), set[str](), 0
    file = open_predictions(path, damage, harness, columns)
    with closing(spool_rows(file, damage, repeated)) as spool, atomic_file(target) as rows:
        for row in spool:
            if row.id not in seen:
                seen.add(row.id)
                pictures += len(row.images)
                rows.write(msgspec.json.encode(_question(row)) + b"\n")
    for kind in ("lost", "empty", "superseded", "repeated"):
        damage.counts.pop(kind, None)
    return TakenQuestions(target, len(seen), pictures, damage.lines())


def _question(row: ForeignRow) -> dict[str, Any]:
    question = row.question or row.prompt
    found: dict[str, Any] = {"id": row.id, "question": _without_options(question, row.options)}
    if row.options:
        found["options"] = list(row.options.values())
    if row.answers:
        found["answer"] = row.answers[0] if len(row.answers) == 1 else list(row.answers)
    if row.images:
        found["image"] = row.images[0].ref if len(row.images) == 1 else [image.ref for image in row.images]
    return found


def _without_options(question: str, options: Mapping[str, str]) -> str:
    """Return the question before the list of its options, which the prompt will show again."""
    first = next(iter(options.items()), None)
    listed = (
        None
        if first is None
        else re.search(rf"^\(?{re.escape(first[0])}[.):]\)?\s*{re.escape(first[1])}\s*$", question, re.M)
    )
    return question[: listed.start()].strip() if listed else question


def store_file(
    file: ForeignFile,
    damage: Damage,
    *,
    task: str | None = None,
    model: str | None = None,
    data: str | None = None,
    join: str | None = None,
    repeated: str = REFUSE,
    catalogs: Sequence[str | Path] = (),
    reading: Reading = OWN,
    output: str | Path | None = None,
    command: str = "",
) -> ImportResult:
    """Store the rows of an opened file as a run, and score it."""
    with closing(spool_rows(file, damage, repeated)) as spool:
        if file.harness == TRACES and damage.counts["lost"] == len(spool):
            fix = "--as-data FILE.jsonl writes them as data for `snellen run`"
            raise DataError(f"{file.path} holds {len(spool)} questions and no reply: {fix}")
        known = None if data is None else BenchmarkRows(data, join, catalogs)
        if known is not None:
            known.compare(spool, damage)
        # Rows of one's own name no benchmark: those that are joined with one are of it, so that they can be compared.
        own = Path(data).stem if data is not None and file.harness == OWN_ROWS else our_name(file)
        named = (task or own, model or file.model or "unknown")
        header = _header(file, named, spool, known, command)
        about = _about(file, header, damage, spool)
        trials = _trials(header.tasks[0].name, spool, known)
        return store_run(header, trials, about, output=output, reading=reading)


def store_run(
    header: RunHeader,
    trials: Iterator[NumberedTrial],
    about: dict[str, Any],
    *,
    output: str | Path | None = None,
    reading: Reading = OWN,
    extracting: RunSettings | None = None,
) -> ImportResult:
    """Store trials whose replies were made elsewhere as a run, and score it as any run.

    `extracting` says how the extractor of the reading is asked.
    """
    folder = Path(output) if output is not None else Path("runs") / _folder_name(header)
    run_to_end(_store(folder, header, trials, about, reading))
    registry = default_registry()
    if extracting is not None:
        ask_extractor(folder, reading, extracting, registry)
    results = finish_run(folder, registry, reading=reading if extracting else None)
    return ImportResult(folder, about, results)


def our_name(file: ForeignFile) -> str:
    """Return our name of a benchmark: of one the harness's card knows, else the harness's own name in our style."""
    found = peer_card(file.harness).find(file.task)
    own = _UNSAFE.sub("-", file.task).strip("-").lower() or "predictions"
    return (found.task if found is not None else "") or own


def _header(
    file: ForeignFile, named: tuple[str, str], spool: RowSpool, known: BenchmarkRows | None, command: str
) -> RunHeader:
    """Return the header: rows that are missing are planned too, and so are counted as not asked."""
    expected = len(known) * spool.repeats if known is not None else file.expected or 0
    made = _task(file, named[0], spool, alone=known is None)
    joined = known.fingerprint if known is not None else None
    rows = {"data": spool.digest, "joined": joined, "repeats": spool.repeats}
    digest = file_sha256(file.path) if file.path.is_file() else spool.digest
    rows |= {"scoring": msgspec.to_builtins(dict(file.scoring))} if file.scoring else {}
    return make_header(
        Answerer(named[1], file.harness, digest),
        {"tasks": {made.name: rows}, "seed": 0},
        versions=installed_versions(),
        command=command,
        tasks=[made],
        planned={made.name: max(len(spool), expected)},
    )


def _task(file: ForeignFile, name: str, spool: RowSpool, *, alone: bool) -> Task:
    """Return the task: choices alone are scored as such, others (or what --data may make of them) as its card says."""
    choices = alone and spool.forms == {Form.CHOICE}
    scorers = ("choice",) if choices else peer_card(file.harness).rules(file.task).ours
    scorers = (*scorers, VERDICT) if spool.judged else scorers
    form = Form.CHOICE if choices else Form.AUTO
    fields = {"form": form, "scorers": scorers, "title": file.task, **file.scoring}
    return Task(name, {"loader": IMPORTED}, repeats=spool.repeats, **fields)


def _folder_name(header: RunHeader) -> str:
    label = f"{header.tasks[0].name[:60]}--{header.model[:60]}"
    return f"{_UNSAFE.sub('-', label)}--{header.config['model'][IMPORTED]}-{header.id[:8]}"


async def _store(
    folder: Path, header: RunHeader, trials: Iterator[NumberedTrial], about: Mapping[str, Any], reading: Reading
) -> None:
    """Write all rows and what is known of them."""
    with open_store(folder, header, reading) as writer:
        while batch := list(islice(trials, ROWS_AT_ONCE)):
            await writer.put_all(batch, DIGEST)
        writer.put_meta(IMPORTED, about)


def _trials(task: str, spool: RowSpool, known: BenchmarkRows | None) -> Iterator[NumberedTrial]:
    for told in spool:
        found = None if known is None else known.find(told)
        row = told if found is None else join_row(told, found)
        row = _with_letters(row, spool.highest_letter)
        sample = sample_of(row, task) if found is None else merged_sample(row, found)
        key = TrialKey(task, sample.id, row.variant, row.repeat)
        yield spool.questions[told.id], sample, request_of(key, row, sample), prediction_of(key, row)


def _with_letters(row: ForeignRow, highest: str) -> ForeignRow:
    """Return a row whose options are known by their letters only with these: letter is read against letter."""
    if not has_letters_alone(row.options, row.answers):
        return row
    return msgspec.structs.replace(row, options=letter_options(highest))


def _about(file: ForeignFile, header: RunHeader, damage: Damage, spool: RowSpool) -> dict[str, Any]:
    name = header.tasks[0].name
    return {
        "harness": file.harness,
        "peer_task": file.task,
        "task": name,
        "model": header.model,
        "file": str(file.path),
        "rows": len(spool),
        "failed": spool.failed,
        "judged": spool.judged,
        "planned": header.planned[name],
        "reported": dict(file.reported),
        "damage": damage.described(),
        "notes": file.notes,
    }

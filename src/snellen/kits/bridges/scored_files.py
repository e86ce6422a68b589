"""`snellen score FILE`: predictions made elsewhere to a run and its numbers, whatever form they are in."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ...api.header import installed_versions, make_header
from ...api.judges import asking_settings, check_extractor
from ...core.builtins import default_registry
from ...core.errors import DataError, FailureKind, UsageError
from ...core.ids import file_sha256
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Failure, Form, Prediction, Sample
from ...data.atlas import card_rows
from ...data.atlas.peer_cards import versioned
from ...data.catalog import Catalog
from ...data.files.records import Source
from ...data.files.rows import read_rows
from ...data.loaders.row_map import FIELD
from ...prompt.build import Prompter, PrompterByForm
from ...scoring.aggregates.headline import NO_ESTIMATE, headline
from ...scoring.protocols.peer_scores import check_fallback, judge_needed, peer_beside
from ...scoring.protocols.readings import Reading
from ...store.reader import RunReader
from .damage import LONGEST_REASON, Damage, damage_lines, failure_in
from .foreign_runs import (
    VERDICT,
    Answerer,
    ImportResult,
    NumberedTrial,
    import_predictions,
    store_file,
    store_run,
)
from .formats import ForeignSource, RowFields

REPLY_COLUMNS = ("response", "prediction")
NO_QUESTION = "(the question is not in the file)"
UNASKED = {"set": "question", "words": NO_QUESTION, "without": "question"}
"""Replies can be scored without their questions: none of the readers looks at them."""


def import_by_card(
    path: str | Path,
    task: str,
    protocol: str | None = None,
    *,
    catalogs: Sequence[Path] = (),
    overrides: Sequence[tuple[str, Any]] = (),
    columns: Mapping[str, str] | None = None,
    output: str | Path | None = None,
    extractor: str | None = None,
    extractor_settings: Mapping[str, Any] | None = None,
) -> ImportResult:
    """Store a table of rows (`id, options, answer, response`) as a run of a card in one of its protocols, and score it.

    `options` may be a list, or one written as text; an empty `response` is an empty reply, none at all a failure.
    Columns of the benchmark's own shapes (`A`, `B`, `category` …) are understood as its card says; `columns` says by
    which path of a record others are found. Pictures need not be there; a row that cannot be read is counted. The
    model `extractor` reads what the protocol's rule leaves, where its tool asks one.
    """
    extracting = asking_settings(extractor, extractor_settings or {}) if extractor else None
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"there is no file {str(path)!r} with rows to score")
    with plain_rows(file, columns or {}) as rows:
        names = _check_columns(rows, file.name)
        catalog = Catalog(catalogs)
        told = [("dataset.path", str(rows.resolve())), *overrides]
        card = _scorable(catalog.task(task, told, protocol), names)
        refused: dict[str, str] = {}
        context = LoadContext(replies_only=True, refused=refused)
        trials = list(_trials(card, context, catalog))
    if not trials:
        first = next(iter(refused.values()), "it is empty")
        raise DataError(f"{file.name}: no row can be scored as {task}: {first}")
    if extractor and any(sample.question == NO_QUESTION for _, sample, *_ in trials):
        context.notes["the extractor was not shown the questions: the file has none"] = Counter(rows=len(trials))
    if "group_by" not in dict(overrides):
        card = _grouped_by_what_there_is(card, trials[0][1], context)
    digest = file_sha256(file)
    stored = msgspec.structs.replace(card, dataset={**card.dataset, "path": str(file)})
    read_as = msgspec.to_builtins(card)
    read_as["dataset"].pop("path")  # the content counts, not where it lies
    identity = {"data": digest, "columns": columns or {}, "card": read_as}
    header = make_header(
        Answerer(file.stem, card.protocol or "rows", digest),
        {"tasks": {card.name: identity}, "seed": 0},
        versions=installed_versions(),
        command=f"snellen score {path} --task {task}",
        tasks=[stored],
        planned={card.name: len(trials)},
        protocols={card.name: catalog.protocols(task)},
    )
    if extractor:
        check_extractor(header, extractor, catalogs=catalogs)
    about, reading = _about(file, stored, context, trials), Reading(extractor=extractor or "")
    return store_run(header, iter(trials), about, output=output, reading=reading, extracting=extracting)


def _grouped_by_what_there_is(task: Task, sample: Sample, context: LoadContext) -> Task:
    """Return the task without the card's groups that the rows of a file say nothing of; each is noted."""
    lacking = [tag for tag in task.group_by if tag not in sample.tags]
    for tag in lacking:
        context.notes.setdefault(f"not told apart by {tag}: the rows have no such column", Counter({sample.id: 1}))
    return msgspec.structs.replace(task, group_by=tuple(tag for tag in task.group_by if tag not in lacking))


def _about(file: Path, task: Task, context: LoadContext, trials: Sequence[NumberedTrial]) -> dict[str, Any]:
    """Return what is known of rows that were read by a card."""
    damage = Damage()
    for name, why in (context.refused or {}).items():
        damage.add("bad", f"{name}: {why[:LONGEST_REASON]}")
    return {
        "harness": "rows",
        "peer_task": task.name,
        "task": task.name,
        "model": file.stem,
        "file": str(file),
        "rows": len(trials),
        "failed": sum(prediction.failure is not None for *_, prediction in trials),
        "judged": 0,
        "planned": len(trials),
        "reported": {},
        "damage": damage.described(),
        "notes": [f"{text} ({sum(who.values())})" for text, who in context.notes.items()],
    }


@contextmanager
def plain_rows(file: Path, columns: Mapping[str, str]) -> Iterator[Path]:
    """Give rows as a table: the file itself, or its records, wherever they stand, with the fields that were named."""
    source = ForeignSource(file, columns)
    if not columns and not source.is_object:
        yield file
        return
    fields = RowFields(columns)
    fields.check(source.first, file.name)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, f"{file.stem}.jsonl")
        with rows.open("wb") as lines:
            for _, record in source.records():
                told = {field: fields.get(record, field) for field in columns}
                taken = set(columns.values()) - set(columns)
                kept = {name: value for name, value in record.items() if name not in taken}
                lines.write(msgspec.json.encode(kept | told, enc_hook=str) + b"\n")
        yield rows


def _check_columns(file: Path, called: str) -> set[str]:
    """Return the columns of a file; one of which no row could be scored is refused before a run's words say it."""
    first = next((row for _, row in read_rows(file)), None)
    if first is None:
        raise DataError(f"{called} has no rows to score")
    if not set(REPLY_COLUMNS) & set(first):
        needed = f"replies stand in a column {' or '.join(REPLY_COLUMNS)}; --map response=COLUMN names another"
        raise DataError(f"{called} has no column of replies (it has {', '.join(map(str, first))}); {needed}")
    return set(map(str, first))


def _scorable(task: Task, columns: Collection[str]) -> Task:
    """Return the task as one of rows that have replies and need no question."""
    check_fallback(task.fallback, f"task {task.name!r}")
    of_table = task.dataset["loader"] == "table" and bool(task.protocol)
    if task.dataset["loader"] != "card" and not of_table:
        fix = "leave --task out; `snellen import FILE --task NAME` calls rows of your own so"
        raise UsageError(f"task {task.name!r} is no card of a published benchmark: {fix}")
    rows = _without_videos(task.dataset, columns) if of_table else task.dataset
    unasked = [] if of_table and "question" in rows.get("columns", {}) else [UNASKED]
    dataset = {
        **rows,
        "any_shape": True,
        "rows": [*unasked, *task.dataset.get("rows", ())],
        "not_pictures": (*task.dataset.get("not_pictures", ()), *REPLY_COLUMNS),
    }
    groups = tuple(tag for tag in task.group_by if tag in columns) if of_table else task.group_by
    return msgspec.structs.replace(task, dataset=dataset, group_by=groups)


def _without_videos(dataset: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """Return where a video card's rows lie, without what the file need not have: videos, and columns of other names."""
    named = {key: column for key, column in (dataset.get("columns") or {}).items() if column in columns}
    places = {key: value for key, value in dataset.items() if key not in ("table_tag", "table_roots", "columns")}
    needed = {key: FIELD.finditer(str(places.get(key, ""))) for key in ("video", "subtitles")}
    lacking = [key for key, fields in needed.items() if not {field[1] for field in fields} <= set(columns)]
    return {key: value for key, value in places.items() if key not in lacking} | ({"columns": named} if named else {})


def _trials(task: Task, context: LoadContext, catalog: Catalog) -> Iterator[NumberedTrial]:
    """Yield the rows as trials: the request as the protocol would have made it, the reply as the file has it."""
    prompters: dict[Form, Prompter | PrompterByForm] = {}
    rows: dict[str, int] = {}
    for row, sample in enumerate(card_rows.load(task, context)):
        if rows.setdefault(sample.id, row) != row:
            same = f"rows {rows[sample.id] + 1} and {row + 1} are both sample {sample.id!r}"
            raise DataError(f"{same}: give every row an id of its own in a column id, or remove one")
        try:
            reply, asked = _take_reply(sample, task)
            if asked.form not in prompters:
                prompt = catalog.prompt(task, asked.form)
                # The question was put elsewhere: nothing is sent here, so no option can be missing in it.
                hidden = msgspec.structs.replace(prompt, hidden=prompt.hidden or ("",))
                prompters[asked.form] = Prompter(task, hidden, 0)
            request = prompters[asked.form].build(asked)
        except DataError as error:
            context.refuse(f"sample {sample.id!r}", error)
            continue
        failure = _failure(reply)
        text = None if failure else reply
        yield row, asked, request, Prediction(request.key, text=text, failure=failure)


def _take_reply(sample: Sample, task: Task) -> tuple[str | None, Sample]:
    column = next((name for name in REPLY_COLUMNS if name in sample.tags), None)
    if column is None:
        raise DataError(f"sample {sample.id!r} has no reply: the column must be called {' or '.join(REPLY_COLUMNS)}")
    if len(sample.options) == 1:
        raise DataError(f"sample {sample.id!r} has one option alone ({sample.options[0]!r:.60}); a choice needs two")
    tags = {name: value for name, value in sample.tags.items() if name != column}
    reply = sample.tags[column]
    return None if reply is None else str(reply), msgspec.structs.replace(sample, tags=tags, dataset=task.name)


def _failure(reply: str | None) -> Failure | None:
    """Return what failed where a tool wrote a failed call in the place of a reply, or nothing at all."""
    if reply is None:
        return Failure(FailureKind.SERVER, "no reply in the file")
    if failure_in("vlmevalkit", reply) is not None or failure_in("lmms-eval", reply) is not None:
        return Failure(FailureKind.SERVER, reply[:200])
    return None


def framed(
    task: Task, result: dict[str, Any], reasons: Mapping[str, int], notes: Sequence[str], rows: int
) -> dict[str, Any]:
    """Return the headline of a task with its counts, and everything beside it, as plain data."""
    metrics = result["metrics"]
    headline = result["headline"]
    shown = metrics[headline]
    read = (shown["read"] or shown)["n"]
    protocol = result.get("protocol") or {}
    more = [one["why"] for one in (judge_needed(task, headline), protocol.get("extractor")) if one]
    return {
        "task": task.name,
        "protocol": task.protocol,
        "version": versioned(task.protocol),
        "rows": rows,
        "n": shown["n"] + shown["unscored"] + shown["failed"],
        "metric": headline,
        "value": shown["value"],
        "ci95": shown["ci95"],
        "bounds": shown["bounds"],
        "read": shown["read"],
        "scored": read,
        "unread": shown["n"] - read,
        "unscored": shown["unscored"],
        "failed": shown["failed"],
        "unit": shown["unit"],
        "reasons": dict(sorted(reasons.items())),
        "peer": peer_beside(task, metrics, headline),
        "metrics": metrics,
        "groups": result["groups"],
        "notes": [*more, *notes, *result["notes"]],
    }


def score_records(
    predictions: Source, formulation: str, *, output: str | Path | None = None, **options: Any
) -> dict[str, Any]:
    """Score predictions by a formulation; told no `output`, nothing stays: `snellen.score_predictions`."""
    if output is not None:
        return score_file(predictions, formulation=formulation, output=output, **options)
    with tempfile.TemporaryDirectory() as folder:
        found = score_file(predictions, formulation=formulation, output=Path(folder, "run"), **options)
    return {name: value for name, value in found.items() if name != "folder"}


def score_file(
    predictions: Source,
    *,
    formulation: str | None = None,
    task: str | None = None,
    protocol: str | None = None,
    output: str | Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Import predictions as a run (told no `output`, one below `runs`) and return its numbers.

    By a `formulation` with its options; by the card `task` in its `protocol`, with the settings of `import_by_card`;
    else as the file looks, with those of `import_predictions`.
    """
    if formulation is not None:
        damage = Damage()
        open_formulation = default_registry().get("formulation", formulation)
        file, reading = open_formulation(predictions, formulation, damage, options)
        done = store_file(file, damage, reading=reading, output=output, command=f"snellen score {file.path}")
        return frame(done) | {"formulation": formulation, "profile": reading.profile}
    if not isinstance(predictions, str | Path):
        raise UsageError("records in memory are scored by a formulation: write rows to a file first")
    if task is not None:
        return frame(import_by_card(predictions, task, protocol, output=output, **options))
    done = import_predictions(predictions, output=output, command=f"snellen score {predictions}", **options)
    found = frame(done)
    if not found["scored"]:
        why = "no row has a right answer that could be compared: give the benchmark with --data, or --map answer=COLUMN"
        raise DataError(f"{predictions}: nothing to score, {why} (the run is kept in {done.folder})")
    return found


def frame(done: ImportResult) -> dict[str, Any]:
    """Return what a program wants of an import: the headline with its counts, all metrics, what was damaged."""
    with RunReader(done.folder) as reader:
        task = next(one for one in reader.header().tasks if one.name == done.about["task"])
        reasons: Counter[str] = Counter()
        for _, scores in reader.with_scores(task.name):
            reasons.update({one.reason for one in scores if one.value is None and one.reason})
    result = done.results["tasks"][task.name]
    name, estimate = headline(result)
    notes = [*damage_lines(done.about["damage"]), *done.about["notes"]]
    if not estimate["n"] and result["metrics"].get(VERDICT, NO_ESTIMATE)["n"]:
        name = VERDICT
        notes.insert(0, "no row has a right answer: this is the share that the file itself calls right")
    found = framed(task, {**result, "headline": name}, reasons, notes, done.about["rows"])
    return {"folder": str(done.folder), **found, "damage": done.about["damage"]}

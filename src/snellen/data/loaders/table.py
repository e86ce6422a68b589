"""Own data without code: the rows of JSON, JSONL, CSV, TSV or Parquet files to Samples; `row_reader` reads each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import msgspec

from ...core.config import convert
from ...core.errors import DataError, UsageError, did_you_mean, not_among
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Sample
from ..files.records import paths_among, with_values_at
from ..files.rows import Row, read_rows
from .authors_files import ReadFile, named_reader
from .option_texts import are_letters, own_marks, without_mark
from .row_dialogues import DIALOGUES, ROUNDS, last_rounds, with_rounds
from .row_map import RowMap, choose_map, with_columns
from .row_reader import RowReader
from .row_source import TableSource, resolve

SEARCHED_ROWS = 1_000
"""A column named by the user must be in one of so many first rows."""
DUPLICATES = ("error", "keep", "drop")
BAD_ROWS = ("refuse", "leave")


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield one Sample a row (of a dialogue in one row: one a round). Columns that are not fields become tags."""
    source = convert(task.dataset, TableSource, f"task {task.name!r}, dataset")
    if source.table_tag:
        return _every_table(task, source, context)
    return load_rows(task, source, source.files(context.root), context)


def _every_table(task: Task, source: TableSource, context: LoadContext) -> Iterator[Sample]:
    """Yield the samples of all tables of a folder, each with the name of its table as a tag and before its id."""
    for name, files in source.tables(context.root).items():
        for sample in load_rows(task, _rooted(source, name, files[0], context), files, context):
            tags = {source.table_tag: name, **sample.tags}
            yield msgspec.structs.replace(sample, id=f"{name}/{sample.id}", tags=tags)


def _rooted(source: TableSource, name: str, table: Path, context: LoadContext) -> TableSource:
    """Return the source of one table, with the folder its videos lie in."""
    folder = resolve(source.path, context.root)
    root = folder if folder.is_dir() and not source.image_root else source.picture_root(table, context.root)
    place = root / source.table_roots.get(name, "")
    place = place if place.is_dir() else root
    return msgspec.structs.replace(source, image_root=str(place.resolve())) if place.is_dir() else source


def load_rows(
    task: Task, source: TableSource, files: list[Path], context: LoadContext, read: ReadFile | None = None
) -> Iterator[Sample]:
    """Yield the samples of files whose rows `read` reads, or else the reader that the source names."""
    _check(source)
    read = read or (named_reader(source.reader, f"task {task.name!r}") if source.reader else read_rows)
    read = _following_paths(read, source) if source.columns else read
    samples = _samples(task, source, files, context, read)
    if task.infer in DIALOGUES:
        samples = map(_refuse_sets, samples)
        samples = with_rounds(samples, needs_answers=task.infer not in ("every", "every_likelihood"))
    if source.rounds == "last":
        samples = last_rounds(samples)
    if source.strip_marks:
        samples = map(strip_marks, samples)
    return map(capitalise, samples) if source.capitalise else samples


def _samples(
    task: Task, source: TableSource, files: list[Path], context: LoadContext, read: ReadFile
) -> Iterator[Sample]:
    """Yield what every row holds; the first row says what all of them mean."""
    reader: RowReader | None = None
    leaves = source.bad_rows != "refuse" or context.refused is not None
    for file in files:
        rows = read(file, source.sheet)
        if reader is None:
            head = list(islice(rows, SEARCHED_ROWS if source.columns else 1))
            row_map = _recognised(task, source, files[0].name, [row for _, row in head], context)
            reader = RowReader(task, source, row_map, files, context)
            rows = chain(head, rows)
        name = file.name
        for number, row in rows:
            where = f"{name} record {number}"
            found = reader.read_or_leave(row, where) if leaves else reader.read(row, where)
            if isinstance(found, Sample):
                yield found
            else:
                yield from found


def _recognised(task: Task, source: TableSource, file: str, head: list[Row], context: LoadContext) -> RowMap:
    """Return the row map of a file that begins with these rows, the user's own columns first."""
    found = choose_map(source.preset, head[0] if head else {})
    if found.reason and task.dataset.get("loader") != "card":  # a card chose the map, not whoever asks
        context.notes.setdefault(f"read as {found.name} because {found.reason}", Counter())[""] += 1
    if not source.columns:
        return found.map
    rows = with_columns(found.map, source.columns)
    inside = [row[name] for row in head for name in rows.inside if isinstance(row.get(name), dict)]
    if head:
        _check_columns(source, file, list(dict.fromkeys(chain.from_iterable([*head, *inside]))))
    return rows


def _check_columns(source: TableSource, file: str, known: list[str]) -> None:
    """Refuse a column named by the user that no row of the head has."""
    for field, column in source.columns.items():
        parts = [column] if column in known else column.split(",")
        for part in map(str.strip, parts):
            if part not in known:
                where, has = f"{file} has no column {part!r}", f"it has: {', '.join(known)}"
                raise DataError(
                    f"{where}{did_you_mean(part, known)} for {field}; {has}; --map {field}=COLUMN names one"
                )


def _following_paths(read: ReadFile, source: TableSource) -> ReadFile:
    """Return a reader whose rows have what the user's paths (`--map answer=messages[-1].content`) lead to."""
    named = source.columns.values()
    paths = paths_among(named)
    if not paths:
        return read
    return lambda file, sheet: ((number, with_values_at(row, paths, named)) for number, row in read(file, sheet))


def _check(source: TableSource) -> None:
    if source.duplicates not in DUPLICATES:
        raise UsageError(f"--duplicates {not_among(source.duplicates, DUPLICATES, ' is unknown')}")
    if source.bad_rows not in BAD_ROWS:
        raise UsageError(f"dataset.bad_rows {not_among(source.bad_rows, BAD_ROWS, ' is unknown')}")
    if source.rounds not in ROUNDS:
        raise UsageError(f"dataset.rounds {not_among(source.rounds, ROUNDS, ' is unknown')}")


def _refuse_sets(sample: Sample) -> Sample:
    """Refuse a round of which several options may be right: a history has room for one answer."""
    if sample.form is Form.MULTIPLE and "round" in sample.tags:
        fix = "ask the rows alone (--infer-method generation)"
        raise DataError(f"sample {sample.id!r}: a round of a dialogue cannot have several right options yet; {fix}")
    return sample


def strip_marks(sample: Sample) -> Sample:
    """Return the sample with options without the letters they begin with, if each begins with one of its own."""
    bare = {text: without_mark(text) for text in sample.options} if are_letters(own_marks(sample.options)) else {}
    if not bare or len(set(bare.values())) < len(sample.options) or not all(bare.values()):
        return sample
    answers = tuple(bare.get(answer, answer) for answer in sample.answers)
    return msgspec.structs.replace(sample, options=tuple(bare.values()), answers=answers)


def capitalise(sample: Sample) -> Sample:
    """Begin every text of a sample with a capital letter (`--capitalize`); the rest of it stays as it is."""
    texts = {field: tuple(map(_raise, getattr(sample, field))) for field in ("options", "answers")}
    turns = tuple(msgspec.structs.replace(turn, text=_raise(turn.text)) for turn in sample.turns)
    meta, rounds = sample.meta, sample.meta.get("history_options")
    if rounds:
        meta = {**meta, "history_options": [[_raise(text) for text in options] for options in rounds]}
    return msgspec.structs.replace(sample, question=_raise(sample.question), turns=turns, meta=meta, **texts)


def _raise(text: str) -> str:
    return text[:1].upper() + text[1:]

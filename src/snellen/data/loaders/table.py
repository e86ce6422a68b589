"""Own data without code: a JSON, JSONL, CSV, TSV or Parquet file to Samples; `row_reader` reads its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...core.config import convert
from ...core.errors import DataError, UsageError, not_among
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Sample
from ..files.records import paths_among, with_values_at
from .answers import are_letters, own_marks, without_mark
from .authors_files import named_reader
from .row_dialogues import DIALOGUES, ROUNDS, last_rounds, with_rounds
from .row_reader import ReadRows, RowReader
from .row_source import TableSource, resolve

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
    task: Task, source: TableSource, files: list[Path], context: LoadContext, read: ReadRows | None = None
) -> Iterator[Sample]:
    """Yield the samples of files whose rows `read` reads, or else the reader that the source names."""
    _check(source)
    read = following_paths(read or named_reader(source.reader, f"task {task.name!r}"), source)
    reader = RowReader(task, source, files, context, read)
    samples = reader.samples()
    if task.infer in DIALOGUES:
        samples = map(_refuse_sets, samples)
        samples = with_rounds(samples, needs_answers=task.infer not in ("every", "every_likelihood"))
    if source.rounds == "last":
        samples = last_rounds(samples)
    if source.strip_marks:
        samples = map(strip_marks, samples)
    return map(capitalise, samples) if source.capitalise else samples


def following_paths(read: ReadRows, source: TableSource) -> ReadRows:
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

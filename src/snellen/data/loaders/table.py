"""Own data without code: rows of a JSON, JSONL, CSV, TSV or Parquet file to Samples by naming columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import msgspec
import pybase64

from ...core.config import convert
from ...core.errors import DataError, did_you_mean
from ...core.ids import content_hash
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Image, Sample, Turn
from ..answers import find_answers, fold_options, lettered_columns
from ..files.rows import Row, read_rows

FIELDS = frozenset({"id", "image", "images", "question", "options", "answer", "group"})
PLAIN_PATH = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")
"""What is joined to a folder's name as it is; any other path may be absolute, or say a step twice."""
NONE: frozenset[str] = frozenset()


class TableSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the table loader."""

    loader: str
    path: str
    columns: dict[str, str] = {}
    """Our field -> the file's column (`question = "prompt"`)."""
    image_root: str | None = None
    answer_kind: str = "auto"
    capitalise: bool = False


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield one Sample a row. Columns that are not fields become tags."""
    source = convert(task.dataset, TableSource, f"task {task.name!r}, dataset")
    path = _resolve(source.path, context.root)
    root = _resolve(source.image_root, context.root) if source.image_root else path.parent
    name, columns, before = path.name, source.columns, str(root / "x")[:-1]
    for number, row in read_rows(path):
        where = f"{name} record {number}"
        sample = _to_sample(_rename(row, columns, where) if columns else row, task, source, before, where)
        yield capitalise(sample) if source.capitalise else sample


def capitalise(sample: Sample) -> Sample:
    """Begin every text of a sample with a capital letter (`--capitalize`); the rest of it stays as it is."""
    texts = {field: tuple(map(_raise, getattr(sample, field))) for field in ("options", "answers")}
    turns = tuple(Turn(turn.role, _raise(turn.text), turn.images) for turn in sample.turns)
    meta, rounds = sample.meta, sample.meta.get("history_options")
    if rounds:
        meta = {**meta, "history_options": [[_raise(text) for text in options] for options in rounds]}
    return msgspec.structs.replace(sample, question=_raise(sample.question), turns=turns, meta=meta, **texts)


def _raise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _to_sample(row: Row, task: Task, source: TableSource, root: str, where: str) -> Sample:
    options, used, keyed = _read_options(row, where)
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise DataError(f"{where} has no question{_hint('question', row)}; name its column with --map question=COLUMN")
    pictures = _image_values(row, where)
    images = tuple([_read_image(value, root, where) for value in pictures]) if pictures else ()
    answer = row.get("answer")
    answers = find_answers(_by_key(answer, keyed) if keyed else answer, options, source.answer_kind, where)
    form = task.form if options or task.form is not Form.CHOICE else Form.OPEN
    return Sample(
        id=_read_id(row, where),
        dataset=task.name,
        form=form,
        question=question,
        images=images,
        options=options,
        answers=answers,
        group=None if row.get("group") is None else str(row["group"]),
        tags={} if FIELDS.issuperset(row) else _read_tags(row, used),
    )


def _rename(row: Row, columns: Mapping[str, str], where: str) -> Row:
    renamed = dict(row)
    for field, column in columns.items():
        if column not in row:
            raise DataError(f"{where} has no column {column!r}{did_you_mean(column, row)}; it has: {', '.join(row)}")
        if field != column:
            renamed[field] = renamed.pop(column)
    return renamed


def _read_id(row: Row, where: str) -> str:
    value = row.get("id")
    if value is None:
        return content_hash([row.get("question"), row.get("image"), row.get("images"), row.get("options")], 12)
    text = str(value)
    if not text.strip():
        raise DataError(f"{where} has an empty id")
    return text


def _read_options(row: Row, where: str) -> tuple[tuple[str, ...], Set[str], Mapping[str, str]]:
    """Return the options, the columns they came from, and the options by the keys the data gives them."""
    value = row.get("options")
    if isinstance(value, str):
        value = _parse_list(value, where)
    if isinstance(value, list):
        return _unique(tuple(map(str, value)), where), NONE, {}
    if isinstance(value, dict):
        keyed = {str(key): str(value[key]) for key in sorted(value, key=str)}
        return _unique(tuple(keyed.values()), where), NONE, keyed
    if value is None:
        return _lettered_options(row, where)
    raise DataError(f"{where}: options must be a list or a mapping of letters, not {type(value).__name__}")


def _by_key(answer: Any, keyed: Mapping[str, str]) -> Any:
    """Return the text of the option that an answer names by its key; any other answer as it is."""
    if isinstance(answer, list):
        return [_by_key(one, keyed) for one in answer]
    return keyed.get(str(answer), answer)


def _lettered_options(row: Row, where: str) -> tuple[tuple[str, ...], Set[str], Mapping[str, str]]:
    """Read options that stand in columns of their own: A, B, C… or choice_A, option_B…"""
    columns = lettered_columns(row)
    keyed = {letter: str(row[key]) for letter, key in columns.items() if row[key] not in (None, "")}
    if len(keyed) < 2:
        return (), NONE, {}
    return _unique(tuple(keyed.values()), where), set(columns.values()), keyed


def _unique(options: tuple[str, ...], where: str) -> tuple[str, ...]:
    folded = fold_options(options)
    if len(set(folded)) < len(folded):
        second = next(place for place, text in enumerate(folded) if text in folded[:place])
        first = folded.index(folded[second])
        raise DataError(f"{where}: options {first + 1} and {second + 1} are the same ({options[second]!r})")
    return options


def _parse_list(text: str, where: str, field: str = "options") -> Any:
    if not text.strip():
        return None
    if text.lstrip().startswith(("[", "{")):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DataError(f"{where}: {field} are not valid JSON: {error}") from None
    return [part.strip() for part in re.split(r"[|;]", text)]


def _image_values(row: Row, where: str) -> Sequence[Any]:
    value = row.get("images")
    if value is None or value == "":
        value = row.get("image")
        if value is None or value == "":
            return ()
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _parse_list(value, where, "images")
    return value if isinstance(value, list) else [value]


def _read_image(value: Any, root: str, where: str) -> Image:
    if isinstance(value, dict):  # the form in which Parquet files of the hubs carry pictures
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return Image("data:image/unknown;base64," + pybase64.b64encode(value).decode())
    if not isinstance(value, str) or not value:
        raise DataError(f"{where}: an image must be a file name, not {type(value).__name__}")
    if value.startswith(("data:", "http://", "https://")):
        return Image(value)
    return Image(root + value if PLAIN_PATH.fullmatch(value) else str(Path(root) / value))


def _read_tags(row: Row, used: Set[str]) -> dict[str, str | int | float | bool | None]:
    return {key: _tag(value) for key, value in row.items() if key not in FIELDS and key not in used}


def _tag(value: Any) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()


def _hint(field: str, row: Row) -> str:
    return did_you_mean(field, row) or f" (columns: {', '.join(row)})"


def _resolve(path: str, root: Path | None) -> Path:
    return Path(path) if root is None else root / path

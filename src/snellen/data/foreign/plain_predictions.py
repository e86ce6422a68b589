"""Rows of one's own: id, options (a list, a list written as text, or columns A, B …), answer and response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import DataError, UsageError, not_among
from ...core.types import Form
from ..files.row_paths import root_of, value_at
from ..loaders.answers import find_answers, fold, is_plain_number, lettered_columns
from .damage_counts import Damage
from .failure_marks import failure_anywhere
from .foreign_rows import ForeignFile, ForeignRow, is_nothing, plain_id, share, short_tags
from .foreign_source import IDS, REPLIES, ForeignSource, Record
from .gold import Gold, as_list, lettered, settle_gold, shown_options
from .malformed import each_readable

HARNESS = "rows"
FIELDS: Mapping[str, Sequence[str]] = {
    "id": IDS,
    "response": REPLIES,
    "answer": ("answer", "gold", "target", "label", "ground_truth"),
    "options": ("options", "choices", "answer_options"),
    "question": ("question",),
    "prompt": ("prompt",),
    "verdict": ("correct", "hit", "is_correct", "score", "acc", "true_false"),
    "read": ("extracted", "parsed", "pred", "extracted_answer", "extraction"),
    "error": ("error",),
    "finish": ("finish",),
    "repeat": ("repeat",),
    "group": ("group",),
}
"""What `--map FIELD=PATH` can name, and the columns that are looked at where nobody says; the first with something."""


def is_plain(source: ForeignSource) -> bool:
    """Tell rows of one's own by a column for the reply, or by the user's word for it."""
    return "response" in source.columns or bool(source.first.keys() & set(REPLIES))


def open_plain(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open rows of one's own; they name no harness, so a second opinion must be told whose rule read them."""
    fields = RowFields(source.columns)
    fields.check(source.first, source.path.name)
    rows = each_readable(source.records(), partial(_row, fields=fields, damage=damage), damage)
    return ForeignFile(HARNESS, source.path, rows, source.path.stem, source.path.stem)


class RowFields:
    """Where the fields of a row stand: the user's paths, else columns that are called so and serve no other field."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        for field, path in columns.items():
            if field not in FIELDS:
                raise UsageError(f"--map {field}={path}: there is no field {not_among(field, FIELDS)}")
        self._told = dict(columns)
        used = {part.strip() for path in columns.values() for part in (path, *path.split(","))}
        self._names = {field: [name for name in names if name not in used] for field, names in FIELDS.items()}
        self._taken = frozenset(used | {root_of(path) for path in used}) | {
            name for names in FIELDS.values() for name in names
        }

    def get(self, record: Record, field: str) -> Any:
        """Return what a record has of a field, or None."""
        if field in self._told:
            value = value_at(record, self._told[field])
            return None if is_nothing(value) and value != "" else value
        return next((record[name] for name in self._names[field] if not is_nothing(record.get(name))), None)

    def reply(self, record: Record) -> Any:
        """Return the reply, the empty one too: it is another thing than none."""
        if "response" in self._told:
            return self.get(record, "response")
        value = self.get(record, "response")
        return value if value is not None else next((record[n] for n in self._names["response"] if n in record), None)

    def check(self, first: Record, name: str) -> None:
        """Refuse a path whose column the first record has not, with the columns that it has."""
        for field, path in self._told.items():
            parts = [path] if path in first else [part.strip() for part in path.split(",")]
            missing = next((part for part in parts if part not in first and root_of(part) not in first), None)
            if missing is not None:
                raise DataError(f"--map {field}={path}: {name} has no column {not_among(root_of(missing), first)}")

    def tags(self, record: Record) -> dict[str, Any]:
        """Return the columns that are no field and can be groups."""
        return short_tags(record, self._taken | frozenset(lettered_columns(record).values()))


def _row(number: int, record: Record, *, fields: RowFields, damage: Damage) -> Iterator[ForeignRow]:
    named = fields.get(record, "id")
    name = plain_id(named) if named is not None else f"row-{number}"
    question, prompt = (_text(fields.get(record, field) or "") for field in ("question", "prompt"))
    answer = fields.get(record, "answer")
    options = _options(fields.get(record, "options"), record) or _in_text((question, prompt), answer)
    gold = _gold(options, answer, name, damage)
    reply, failure = _reply(fields.reply(record), fields.get(record, "error"), name, damage)
    finish, read = fields.get(record, "finish"), fields.get(record, "read")
    yield ForeignRow(
        name,
        gold.form,
        reply,
        failure,
        _repeat(fields.get(record, "repeat"), name),
        question=question,
        prompt=prompt,
        options=options,
        answers=gold.answers,
        finish=None if finish is None else str(finish),
        group=None if fields.get(record, "group") is None else str(fields.get(record, "group")),
        tags=fields.tags(record),
        read_reply=failure,
        read_answer=None if read is None else str(read),
        verdict=share(fields.get(record, "verdict")),
    )


def _repeat(value: Any, name: str) -> int:
    repeat = int(value or 0)
    if repeat < 0:
        raise DataError(f"row {name!r}: repeat {value!r} is no whole number from 0")
    return repeat


def _text(value: Any) -> str:
    """Return the words of a cell: a text, or a message as a chat API has it, with its parts."""
    if isinstance(value, dict):
        value = value.get("content", value.get("text", value))
    if isinstance(value, list) and value and all(isinstance(part, dict | str) for part in value):
        texts = [part if isinstance(part, str) else part.get("text") for part in value]
        value = "\n".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else str(value)


def _options(value: Any, record: Record) -> dict[str, str]:
    listed = as_list(value)
    if isinstance(listed, list):
        return lettered(listed)
    if isinstance(listed, dict):
        return {str(letter): str(text) for letter, text in listed.items()}
    columns = lettered_columns(record)
    return {letter: str(record[column]) for letter, column in columns.items() if not is_nothing(record[column])}


def _in_text(texts: Sequence[str], answer: Any) -> dict[str, str]:
    """Return the options that question or prompt list, unless the right answer is none of them: it is open then."""
    found = next(filter(None, map(shown_options, texts)), {})
    return found if found and (answer is None or settle_gold(found, answer, "", Damage()).answers) else {}


def _gold(options: dict[str, str], value: Any, name: str, damage: Damage) -> Gold:
    """Return form and right answer; a number beside options is read as the table loader reads it, or not at all."""
    if options and not isinstance(value, bool) and isinstance(value, int):
        try:
            return Gold(Form.CHOICE, find_answers(value, tuple(options.values()), "auto", name))
        except DataError:
            if fold(str(value)) in map(fold, options.values()):  # one option's text and the place of another
                damage.add("two_golds", name)
                return Gold(Form.CHOICE, ())
    gold = settle_gold(options, value, name, damage)
    # No harness says how the answers of one's own rows are compared, so numbers are compared as numbers.
    numbers = gold.form is Form.OPEN and gold.answers and all(is_plain_number(text.strip()) for text in gold.answers)
    return gold._replace(form=Form.NUMBER) if numbers else gold


def _reply(value: Any, error: Any, name: str, damage: Damage) -> tuple[str | None, str | None]:
    if error is not None and is_nothing(value):
        return None, str(error)
    if value == "":
        damage.add("empty", name)
        return "", None
    if is_nothing(value):
        damage.add("lost", name)
        return None, "the file holds no reply"
    if not isinstance(value, str | list | dict):
        damage.add("typed", name)
    text = _text(value)
    failure = failure_anywhere(text)
    return (None, failure) if failure else (text, None)

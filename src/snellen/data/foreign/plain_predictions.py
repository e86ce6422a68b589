"""Rows of one's own: id, options (a list, a list written as text, or columns A, B …), answer and response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.errors import DataError
from ...core.types import Form
from ..answers import find_answers, fold, is_plain_number, lettered_columns
from .damage_counts import Damage
from .failure_marks import failure_anywhere
from .foreign_rows import ForeignFile, ForeignRow, is_nothing, plain_id, share, short_tags
from .foreign_source import ForeignSource, Record
from .gold import Gold, as_list, lettered, settle_gold

HARNESS = "rows"
IDS = ("id", "index", "question_id", "sample_id", "sample", "pid", "idx")
REPLIES = ("response", "prediction", "reply", "output", "model_output", "generated_text", "text")
ANSWERS = ("answer", "gold", "target", "label", "ground_truth")
VERDICTS = ("correct", "hit", "is_correct", "score", "acc")
READ = ("extracted", "parsed", "pred", "extracted_answer")
OPTIONS = ("options", "choices", "answer_options")
_NO_TAGS = frozenset((*IDS, *REPLIES, *ANSWERS, *VERDICTS, *READ, *OPTIONS, "question", "prompt", "error", "finish"))


def is_plain(source: ForeignSource) -> bool:
    """Tell rows of one's own by a column for the reply."""
    return bool(source.first.keys() & set(REPLIES))


def open_plain(source: ForeignSource, damage: Damage) -> ForeignFile:
    """Open rows of one's own; they name no harness, so a second opinion must be told whose rule read them."""
    return ForeignFile(HARNESS, source.path, _rows(source, damage), source.path.stem, source.path.stem)


def _rows(source: ForeignSource, damage: Damage) -> Iterator[ForeignRow]:
    for number, record in source.records():
        named = _first(record, IDS)
        name = plain_id(named) if named is not None else f"row-{number}"
        options = _options(record)
        gold = _gold(options, _first(record, ANSWERS), name, damage)
        reply, failure = _reply(record, name, damage)
        yield ForeignRow(
            name,
            gold.form,
            reply,
            failure,
            _repeat(record.get("repeat"), name),
            question=str(record.get("question") or ""),
            prompt=str(record.get("prompt") or ""),
            options=options,
            answers=gold.answers,
            finish=None if is_nothing(record.get("finish")) else str(record["finish"]),
            tags=short_tags(record, _NO_TAGS | frozenset(lettered_columns(record).values())),
            read_reply=failure,
            read_answer=None if _first(record, READ) is None else str(_first(record, READ)),
            verdict=share(_first(record, VERDICTS)),
        )


def _repeat(value: Any, name: str) -> int:
    repeat = int(value or 0)
    if repeat < 0:
        raise DataError(f"row {name!r}: repeat {value!r} is no whole number from 0")
    return repeat


def _first(record: Record, names: Sequence[str]) -> Any:
    return next((record[name] for name in names if not is_nothing(record.get(name))), None)


def _options(record: Record) -> dict[str, str]:
    listed = as_list(_first(record, OPTIONS))
    if isinstance(listed, list):
        return lettered(listed)
    if isinstance(listed, dict):
        return {str(letter): str(text) for letter, text in listed.items()}
    columns = lettered_columns(record)
    return {letter: str(record[column]) for letter, column in columns.items() if not is_nothing(record[column])}


def _gold(options: dict[str, str], value: Any, name: str, damage: Damage) -> Gold:
    """Return the right answer; a number may be the place of an option, where that can mean one thing only."""
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


def _reply(record: Record, name: str, damage: Damage) -> tuple[str | None, str | None]:
    column = next((name for name in REPLIES if name in record), REPLIES[0])
    value = next((record[name] for name in REPLIES if not is_nothing(record.get(name))), record.get(column))
    if not is_nothing(record.get("error")) and is_nothing(value):
        return None, str(record["error"])
    if value == "":
        damage.add("empty", name)
        return "", None
    if is_nothing(value):
        damage.add("lost", name)
        return None, "the file holds no reply"
    if not isinstance(value, str):
        damage.add("typed", name)
    failure = failure_anywhere(str(value))
    return (None, failure) if failure else (str(value), None)

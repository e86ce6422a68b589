"""The answer of a row: the texts that its cell accepts, whether it is a letter, a number, a list or an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...core.errors import DataError
from ...core.tasks import Task
from ...core.types import Form
from ..files.records import is_written_list, parse_literal
from ..files.rows import Row
from .answers import WHOLE, LookedAt, answers_among, find_answer_set, find_keyed, fold, refuse_flags
from .row_map import Cells, Places, RowMap
from .row_options import is_nothing, marked_answer
from .row_source import TableSource

ACCEPTED_FIELDS = ("answer", "text", "value")
ALSO_ACCEPTED = "aliases"
JUDGED = ("correct", "iscorrect")
"""Fields that say of an answer whether it is a right one."""
AS_JSON = "-p dataset.answer_kind=whole takes it as one text of JSON"
LISTS = ("[", "array(", "np.array(", "('", '("', "{'", '{"')
"""How lists, tuples and sets begin that a program wrote into a cell; `(3, 4)` is a text."""
SHORT_YES_NO = {"1": "yes", "0": "no", "y": "yes", "n": "no", "t": "yes", "f": "no"}


class RowAnswers:
    """Reads the answers of rows of one map."""

    def __init__(self, task: Task, source: TableSource, rows: RowMap, cells: Cells) -> None:
        self._form = task.form
        self._kind = source.answer_kind
        self._unanswered = rows.unanswered
        self._first = cells.first
        self._how = f"{self._kind} {self._form}"
        """All that beside the row itself decides how an answer is read."""

    def of_places(self, row: Row, places: Places, where: str, options: tuple[str, ...] = ()) -> Any:
        """Return the answer of a row as one value or a flat list; None where it has none.

        A text that is one of the `options` is that option, even if it looks like a list (`[0, 2]`).
        """
        value = self._first(row, places.fields["answer"])
        if self._kind == WHOLE:
            return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
        if isinstance(value, str) and not value.lstrip().startswith(LISTS):
            return None if value in self._unanswered else value
        if isinstance(value, str) and value.strip() in options:
            return value.strip()
        parsed = _parsed(value, where)
        return plain_answers(parsed, where) if isinstance(parsed, list | dict) else parsed

    def refuse_more(self, row: Row, places: Places, answer: Any, where: str) -> None:
        """Refuse a row without options that has other answers, or options, in a second column of answers."""
        first, *others = places.fields["answer"] or ("",)
        for column in others if isinstance(answer, str) and self._kind != WHOLE else ():
            more = plain_answers(_parsed(row[column], where), where)
            listed = isinstance(more, list)
            if {fold(str(one)) for one in (more if listed else [more] if more else [])} - {fold(answer)}:
                all_of_them = f"accepts all of them, --map options={column} offers them"
                fix = f"--map answer={column} {all_of_them if listed else 'takes it'}, --map answer={first} the first"
                raise DataError(f"{where}: columns {first!r} and {column!r} differ; {fix}")

    def refuse_other(self, row: Row, places: Places, answers: tuple[str, ...], seen: LookedAt, where: str) -> None:
        """Refuse a row with options that has another right one in a second column of answers."""
        first, *others = places.fields["answer"]
        for column in others:
            try:
                more = self._read(plain_answers(_parsed(row[column], where), where), seen, {}, where, "")
            except DataError:
                continue  # it says something else than which option is right
            if more and not set(more) & set(answers):
                fix = f"--map answer={first} or --map answer={column} says which is meant"
                raise DataError(f"{where}: columns {first!r} and {column!r} name different options; {fix}")

    def texts(self, answer: Any, seen: LookedAt, keyed: Mapping[str, str], where: str, stated: str) -> tuple[str, ...]:
        """Return the texts of an answer; for a choice each is one of its options.

        One that stood beside the same options before is not read again.
        """
        if keyed or not seen.options or type(answer) is not str:
            return self._read(answer, seen, keyed, where, stated)
        key = self._how, stated, answer
        found = seen.read_as.get(key)
        if found is None:
            found = seen.read_as[key] = self._read(answer, seen, keyed, where, stated)
        return found

    def _read(self, answer: Any, seen: LookedAt, keyed: Mapping[str, str], where: str, stated: str) -> tuple[str, ...]:
        if isinstance(answer, list) and self._kind == "auto":
            refuse_flags(answer, seen.options, where)
        if seen.options and self._is_set(stated) and not (isinstance(answer, str) and answer in keyed):
            return find_answer_set(answer, seen.options, self._kind, where)
        if not isinstance(answer, list):
            return self._texts_of(answer, seen, keyed, where)
        if not seen.options and self._kind == "auto":
            _refuse_numbers(answer, where)
        return tuple(text for one in answer for text in self._texts_of(one, seen, keyed, where))

    def _texts_of(self, answer: Any, seen: LookedAt, keyed: Mapping[str, str], where: str) -> tuple[str, ...]:
        """Return the texts of one answer; one that names an option by the key its data gives it means that option."""
        if (
            seen.options
            and type(answer) is str
            and len(answer) > 3
            and (named := marked_answer(answer, seen.options)) is not None
        ):
            return (named,)
        if keyed and isinstance(answer, float) and answer.is_integer():
            answer = int(answer)  # in a column that has gaps
        if keyed and (found := find_keyed(answer, keyed, self._kind, where)) is not None:
            return (found,)
        return answers_among(answer, seen, self._kind, where)

    def _is_set(self, stated: str) -> bool:
        """Tell whether several options may be right: the user or the row says so; it is never guessed from answers."""
        return self._form is Form.MULTIPLE or (self._form is Form.AUTO and stated == Form.MULTIPLE)


def _parsed(value: Any, where: str) -> Any:
    """Return the list that a text writes; what is not understood of one is refused, any other text is itself."""
    if not isinstance(value, str) or not value.rstrip().endswith(("]", ")", "}")):
        return value
    listed = is_written_list(value)
    parsed = parse_literal(value.strip()) if listed or value.startswith(LISTS) else None
    if listed and not isinstance(parsed, list):
        fix = 'write it as ["a", "b"]'
        raise DataError(f"{where}: answer looks like a list and is none: {value.strip()[:60]!r}; {fix}")
    return parsed if isinstance(parsed, list) else value


def plain_answers(value: Any, where: str) -> Any:
    """Return an answer as one value or a flat list; of objects the text they accept, of gaps in a list nothing."""
    if isinstance(value, dict):
        value = _accepted(value, where)
    if not isinstance(value, list):
        return value
    return _flat(value, where) or None


def _flat(values: list[Any], where: str) -> list[Any]:
    found: list[Any] = []
    for one in values:
        if isinstance(one, list):
            raise DataError(f"{where}: answer is a list of lists; write a flat list of the right ones, or {AS_JSON}")
        accepted = _accepted(one, where) if isinstance(one, dict) else one
        found += accepted if isinstance(accepted, list) else [accepted]
    return [one for one in found if not is_nothing(one)]


def _accepted(answer: Mapping[str, Any], where: str) -> Any:
    """Return what one object accepts: its text, and its aliases beside it."""
    flag = next((name for name in answer if name.lower().replace("_", "") in JUDGED), None)
    if flag is not None:
        raise DataError(
            f"{where}: an answer says by {flag!r} whether it is right; write the right ones alone, as a list"
        )
    field = next((name for name in ACCEPTED_FIELDS if isinstance(answer.get(name), (str, int, float, list))), None)
    if field is None:
        has = ", ".join(map(str, list(answer)[:8]))
        raise DataError(f"{where}: answer is an object with {has}; write the right text (or a list), or {AS_JSON}")
    also = answer.get(ALSO_ACCEPTED)
    if not isinstance(also, list):
        return answer[field]
    text = answer[field]
    return [*(text if isinstance(text, list) else [text]), *also]


def _refuse_numbers(answer: Any, where: str) -> None:
    """Refuse several different numbers as answer of an open question: a box is one answer, accepted ones are many."""
    if not isinstance(answer, list) or len(set(map(str, answer))) < 2:
        return
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in answer):
        ways = "-p dataset.answer_kind=text accepts each of them, answer_kind=whole takes them as one answer, as JSON"
        raise DataError(f"{where}: answer is a list of {len(answer)} numbers; {ways}")


def yes_or_no(answers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the answers of a yes/no question, those that are a number or a letter as words."""
    return tuple([SHORT_YES_NO.get(answer.casefold(), answer) for answer in answers])

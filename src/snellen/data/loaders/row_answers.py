"""The answer of a row in any usual form (letter, number, text, list, object) to the texts that a Sample keeps."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from ...core.errors import DataError, not_among
from ...core.tasks import Task
from ...core.types import Form
from ..files.records import is_nothing, is_written_list, parse_literal
from ..files.rows import Row
from .option_texts import OptionFacts, by_mark, fold, marked_answer, option_facts
from .row_map import Cells, Places, RowMap
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

    def refuse_other(self, row: Row, places: Places, answers: tuple[str, ...], facts: OptionFacts, where: str) -> None:
        """Refuse a row with options that has another right one in a second column of answers."""
        first, *others = places.fields["answer"]
        for column in others:
            try:
                more = self._read(plain_answers(_parsed(row[column], where), where), facts, {}, where, "")
            except DataError:
                continue  # it says something else than which option is right
            if more and not set(more) & set(answers):
                fix = f"--map answer={first} or --map answer={column} says which is meant"
                raise DataError(f"{where}: columns {first!r} and {column!r} name different options; {fix}")

    def texts(
        self, answer: Any, facts: OptionFacts, keyed: Mapping[str, str], where: str, stated: str
    ) -> tuple[str, ...]:
        """Return the texts of an answer; for a choice each is one of its options.

        One that stood beside the same options before is not read again.
        """
        if keyed or not facts.options or type(answer) is not str:
            return self._read(answer, facts, keyed, where, stated)
        key = self._how, stated, answer
        found = facts.read_as.get(key)
        if found is None:
            found = facts.read_as[key] = self._read(answer, facts, keyed, where, stated)
        return found

    def _read(
        self, answer: Any, facts: OptionFacts, keyed: Mapping[str, str], where: str, stated: str
    ) -> tuple[str, ...]:
        if isinstance(answer, list) and self._kind == "auto":
            refuse_flags(answer, facts.options, where)
        if facts.options and self._is_set(stated) and not (isinstance(answer, str) and answer in keyed):
            return find_answer_set(answer, facts.options, self._kind, where)
        if not isinstance(answer, list):
            return self._texts_of(answer, facts, keyed, where)
        if not facts.options and self._kind == "auto":
            _refuse_numbers(answer, where)
        return tuple(text for one in answer for text in self._texts_of(one, facts, keyed, where))

    def _texts_of(self, answer: Any, facts: OptionFacts, keyed: Mapping[str, str], where: str) -> tuple[str, ...]:
        """Return the texts of one answer; one that names an option by the key its data gives it means that option."""
        if (
            facts.options
            and type(answer) is str
            and len(answer) > 3
            and (named := marked_answer(answer, facts.options)) is not None
        ):
            return (named,)
        if keyed and isinstance(answer, float) and answer.is_integer():
            answer = int(answer)  # in a column that has gaps
        if keyed and (found := find_keyed(answer, keyed, self._kind, where)) is not None:
            return (found,)
        return answers_among(answer, facts, self._kind, where)

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


NUMBER_AT_END = re.compile(r"\d{1,3}\Z")
PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:,\d{3}){1,4})(?:\.\d+)?")


def is_plain_number(text: str) -> bool:
    """Tell whether a text is a number and nothing else; `007` and `10:30` are written so for a reason."""
    return text[:1] in "-0123456789" and PLAIN_NUMBER.fullmatch(text) is not None


def find_answers(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return the answer texts; for a choice each is one of `options`, else DataError. None gives ()."""
    return answers_among(value, option_facts(options), kind, where)


def answers_among(value: Any, facts: OptionFacts, kind: str, where: str) -> tuple[str, ...]:
    """Return the same, of options that were looked at."""
    if kind not in READINGS:
        raise DataError(f"answer_kind {not_among(kind, READINGS, ' is unknown')}")
    if value is None or value == "":
        return ()
    if isinstance(value, (list, tuple)):
        return tuple([_find_option(answer, facts, kind, where) if facts.options else str(answer) for answer in value])
    return (_find_option(value, facts, kind, where) if facts.options else str(value),)


def refuse_flags(answers: Collection[Any], options: tuple[str, ...], where: str) -> None:
    """Refuse a list of as many 0 and 1 as there are options: one flag each, or the places of two of them?"""
    if options and len(answers) == len(options) and all(type(one) is int and one in (0, 1) for one in answers):
        fix = "write the letters of the right ones, or -p dataset.answer_kind=index takes places from 0"
        raise DataError(f"{where}: answer {list(answers)} can be a flag for each option, or places among them; {fix}")


def find_keyed(answer: Any, keyed: Mapping[str, str], kind: str, where: str) -> str | None:
    """Return the option that an answer names by the key its data gives it, or None."""
    text = str(answer).strip()
    if kind in ("text", WHOLE):
        return None
    if not text.isdecimal():
        return keyed.get(text)
    if kind not in ("auto", "letter"):
        return None  # a place was told, not a name
    if kind == "auto" and "A" in keyed and tuple(keyed) != tuple(string.ascii_uppercase[: len(keyed)]):
        fix = "write its letter"
        raise DataError(f"{where}: answer {text} is a place among options with a gap ({', '.join(keyed)}); {fix}")
    numbered = {match[0]: option for key, option in keyed.items() if (match := NUMBER_AT_END.search(key))}
    return _by_number(text, numbered, where) if len(numbered) == len(keyed) else keyed.get(text)


def _by_number(text: str, keyed: Mapping[str, str], where: str) -> str:
    """Return the option of a number; one that is another option's text too is refused, as is one that is no name."""
    named = keyed.get(text)
    said = next((option for option in keyed.values() if fold(option) == fold(text)), None)
    if named is None and said is None:
        fix = "is it a place from 0? -p dataset.answer_kind=index"
        raise DataError(f"{where}: answer {text} is none of the options {', '.join(keyed)}; {fix}")
    if named is not None and said is not None and said != named:
        fix = "set -p dataset.answer_kind=text, or index for a place from 0"
        raise DataError(f"{where}: answer {text} can mean option {text} or the text {text!r}; {fix}")
    return said if named is None and said is not None else str(named)


def find_answer_set(value: Any, options: tuple[str, ...], kind: str, where: str) -> tuple[str, ...]:
    """Return all right options of a multiple response: a list, `A,C`, `AC`, texts joined by commas, or a single one."""
    facts = option_facts(options)
    if isinstance(value, str) and value.strip():
        value = _listed_options(value.strip(), facts, kind, where)
    return tuple(dict.fromkeys(answers_among(value, facts, kind, where)))


def _listed_options(text: str, facts: OptionFacts, kind: str, where: str) -> Any:
    """Return a cell as the list it writes; as it is where it names one option, or nothing that is understood."""
    letters = _letters(text, facts.options) if kind in ("auto", "letter") else ()
    if fold(text) in facts.folded:
        if letters:
            by_letters = f"{' and '.join(map(repr, letters))} by letters"
            raise DataError(f"{where}: answer {text!r} can mean {text!r}, or {by_letters}; write it as a list")
        return text
    return list(letters) or [part for part in SEVERAL.split(text) if part]


SEVERAL = re.compile(r"\s*[,;、，；|&/]\s*|\s+and\s+")
"""What divides the right options of one cell; letters may have a space between them too."""


def _letters(text: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options of letters that stand together or apart, in capitals and each once (`ACD`, `A, C`)."""
    letters = "".join(SEVERAL.sub("", text).split())
    places = [string.ascii_uppercase.find(letter) for letter in letters]
    named = len(letters) > 1 and letters.isalpha() and letters.isupper() and len(set(letters)) == len(letters)
    inside = named and all(0 <= place < len(options) for place in places)
    return tuple(options[place] for place in places) if inside else ()


def names_several(value: Any, options: tuple[str, ...]) -> bool:
    """Tell whether an answer is the letters of several options."""
    return isinstance(value, str) and bool(_letters(value.strip(), options))


def _find_option(value: Any, facts: OptionFacts, kind: str, where: str) -> str:
    text, found = _written(value, facts, kind, where), None
    for _, read in READINGS[kind]:
        option = read(text, facts)
        if option is None or option == found:
            continue
        if found is not None:
            raise _ambiguous(value, facts, kind, where)
        found = option
    if found is None:
        several = (
            "; several right options? question_type multiple-response, or --form multiple"
            if _letters(text, facts.options)
            else ""
        )
        raise DataError(f"{where}: answer {value!r} {_not_found(text, facts, kind)}{several}")
    return found


def _written(value: Any, facts: OptionFacts, kind: str, where: str) -> str:
    """Return an answer as its cell would be written; a whole float is a place, in a column that has gaps."""
    text = str(value).strip()
    if not isinstance(value, float) or not value.is_integer():
        return text
    place = str(int(value))
    if kind != "auto" or fold(text) not in facts.folded:
        return text if kind == "text" and fold(text) in facts.folded else place
    if _by_index(place, facts) not in (None, _by_text(text, facts)):
        ways = f"the text {text!r} or place {place}"
        raise DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind=text|index")
    return text


def _not_found(text: str, facts: OptionFacts, kind: str) -> str:
    """Say that an answer names no option; where it does when read otherwise than it was told to be, say so."""
    shown = ", ".join(map(repr, facts.options))
    other = [name for name, read in _SINGLE if name != kind and read(text, facts) is not None]
    if kind in ("auto", WHOLE, "text") and not other:
        return f"is not among the options ({shown}); write the letter, the text or the place (from 0) of one"
    fix = f"; is it the {' or the '.join(other)}? -p dataset.answer_kind={'|'.join(other)}" if other else ""
    return f"read as {kind} is not among the options ({shown}){fix}"


def _ambiguous(value: Any, facts: OptionFacts, kind: str, where: str) -> DataError:
    meanings = {name: read(str(value).strip(), facts) for name, read in READINGS[kind]}
    meanings = {name: option for name, option in meanings.items() if option is not None}
    ways = " or ".join(f"{option!r} by {name}" for name, option in meanings.items())
    return DataError(f"{where}: answer {value!r} can mean {ways}; set -p dataset.answer_kind={'|'.join(meanings)}")


def _by_text(text: str, facts: OptionFacts) -> str | None:
    sought = fold(text)
    return facts.options[facts.folded.index(sought)] if sought in facts.folded else None


def _by_letter(text: str, facts: OptionFacts) -> str | None:
    letter = (text if text.isascii() else unicodedata.normalize("NFKC", text)).strip("().").upper()
    return _at(string.ascii_uppercase.find(letter), facts.options) if len(letter) == 1 else None


def _by_mark(text: str, facts: OptionFacts) -> str | None:
    return by_mark(text, facts.options, facts.marks) if facts.marks else None


def _by_index(text: str, facts: OptionFacts) -> str | None:
    return _at(int(text), facts.options) if text.isdecimal() else None


def _by_index1(text: str, facts: OptionFacts) -> str | None:
    return _at(int(text) - 1, facts.options) if text.isdecimal() else None


def _at(index: int, options: tuple[str, ...]) -> str | None:
    return options[index] if 0 <= index < len(options) else None


Reading = tuple[str, Callable[[str, OptionFacts], str | None]]
_TEXT, _LETTER, _INDEX, _MARK = ("text", _by_text), ("letter", _by_letter), ("index", _by_index), ("mark", _by_mark)
_SINGLE: tuple[Reading, ...] = (_TEXT, _LETTER, _INDEX, ("index1", _by_index1), _MARK)
WHOLE = "whole"
"""The cell is one answer, also where it is a list: a box, the members of a list that all belong to the answer."""
READINGS: dict[str, tuple[Reading, ...]] = {
    "auto": (_TEXT, _LETTER, _INDEX, _MARK),
    WHOLE: (_TEXT,),
    **{reading[0]: (reading,) for reading in _SINGLE},
}
"""How an answer is read, by the kind that is told; `auto` reads it in four ways, which must agree."""

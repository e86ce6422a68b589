"""What the plan says of a file's rows: what is not asked, what stays unscored, and how answers are taken."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from ...core.config import read_config_file
from ...core.errors import DataError, did_you_mean
from ...core.types import Form, Sample
from ...extract.other_kinds import extract_number, extract_yesno
from ..files.records import parse_literal
from .answers import NAN, LookedAt, is_plain_number

_WRONG = r"(?:incorrect|wrong|false)[ _-]?(?:answers?|options?)|distractors?"
_OPTIONS = rf"(?:options?|choices?|candidates?|alternatives?|endings|{_WRONG}|选项|選項|選択肢)"
OPTION_COLUMN = re.compile(rf"(?:.*[ _-])?{_OPTIONS}(?:[ _-]?list)?", re.IGNORECASE)
BETWEEN = re.compile(r"[|;\n]")
BETWEEN_WORDS = re.compile(r"[ -]+")
_PICTURE = r"(?:image|img|picture|photo|pic)s?"
PICTURE_NAME_COLUMN = re.compile(
    rf"{_PICTURE}[ _-]?(?:id|ids|name|names|file|filename|file_name|idx|index|key|src)", re.IGNORECASE
)
PICTURE_LINK_COLUMN = re.compile(rf"(?:.*[ _-])?{_PICTURE}(?:[ _-]?(?:url|uri|link)s?)?", re.IGNORECASE)
ADDRESSES = ("http://", "https://")
PICTURE_FILE = re.compile(r"\S{1,1000}\.(?:png|jpe?g|gif|webp|bmp|tiff?|pdf|svg|avif|heic|jp2)", re.IGNORECASE)
VIDEO_FILE = re.compile(r"\S{1,1000}\.(?:mp4|webm|mkv|mov|avi|m4v)", re.IGNORECASE)
FAMILY = re.compile(r"(.*?)[ _.:/\[-]?(\d{1,2}|[a-z])\]?", re.IGNORECASE)


@cache
def telling_names(kind: str) -> tuple[str, ...]:
    """Return the names of columns that look like the given thing."""
    return tuple(read_config_file(str(files("snellen") / "catalog/answers/columns.toml"))[kind])


def option_family(columns: Iterable[str]) -> tuple[str, ...]:
    """Return columns that are called as options in columns of their own would be (`opa`, `opb`), or none.

    They must run from a, 0 or 1 without a gap.
    """
    found: dict[str, dict[int, str]] = {}
    for column in columns:
        match = FAMILY.fullmatch(column.strip())
        if match and fold_column(match[1]) in telling_names("option_stems"):
            place = int(match[2]) if match[2].isdecimal() else ord(match[2].lower()) - ord("a")
            found.setdefault(fold_column(match[1]), {})[place] = column
    for places in found.values():
        if len(places) > 1 and min(places) < 2 and max(places) - min(places) == len(places) - 1:
            return tuple(places[place] for place in sorted(places))
    return ()


def refuse_family(family: Sequence[str], where: str) -> None:
    """Refuse a row with something in several columns of one family: they look like options, and nothing reads them."""
    if len(family) > 1:
        use = f"--map options={','.join(family)} offers them, -p dataset.not_options={family} keeps tags"
        raise DataError(f"{where}: columns {' and '.join(map(repr, family[:2]))} look like options; {use}")


def unread_options(columns: Iterable[str], row: Mapping[str, Any], answer: Any) -> str | None:
    """Return a column that nothing reads and that holds options: it is called so, or the answer is a letter of it."""
    place = _place_of_letter(answer)
    for column in columns:
        cell = row[column]
        named = _is_named(column, OPTION_COLUMN)
        if cell and isinstance(cell, list | dict | str) and (named or place >= 0):
            least = 2 if named else max(2, place + 1)
            if _count(column, cell) >= least:
                return column
    return None


def _place_of_letter(answer: Any) -> int:
    """Return the place that a letter means, counted from 0, or -1 for any other answer."""
    letter = answer.strip("(). ").upper() if isinstance(answer, str) and len(answer) < 6 else ""
    return string.ascii_uppercase.find(letter) if len(letter) == 1 else -1


def _count(column: str, cell: Any) -> int:
    """Return how many options a cell lists; what is no list of texts is one only where its column says so."""
    if isinstance(cell, str) and cell.startswith(("[", "{", "array(")):
        cell = parse_literal(cell.strip())
    if _is_named(column, OPTION_COLUMN):
        return len(BETWEEN.split(cell)) if isinstance(cell, str) else len(cell or ())
    return len(cell) if isinstance(cell, list) and all(isinstance(one, str) for one in cell) else 0


def names_picture(column: str, cell: Any) -> bool:
    """Tell whether a cell of a row without pictures names one, by its column or by its ending; it may be elsewhere."""
    if isinstance(cell, dict):
        return any(names_picture(str(key), value) for key, value in cell.items() if isinstance(value, str))
    if isinstance(cell, list):
        return any(names_picture(column, one) for one in cell if isinstance(one, dict))
    if type(cell) in (str, int) and _is_named(column, PICTURE_NAME_COLUMN):
        return True
    if not isinstance(cell, str):
        return False
    linked = cell.startswith(ADDRESSES) and _is_named(column, PICTURE_LINK_COLUMN)
    return linked or ("." in cell[-5:] and PICTURE_FILE.fullmatch(cell) is not None)


def says_picture(column: str, cell: Any) -> bool:
    """Tell whether a cell says that the row is about a picture: `data_type` is `image`."""
    return isinstance(cell, str) and fold_column(column) in telling_names("kind") and cell.casefold() in _pictures()


@cache
def _pictures() -> frozenset[str]:
    return frozenset(telling_names("picture"))


def names_video(cell: Any) -> bool:
    """Tell whether a cell names the file of a video."""
    return isinstance(cell, str) and "." in cell[-5:] and VIDEO_FILE.fullmatch(cell) is not None


def is_file_name(cell: Any) -> bool:
    """Tell whether a cell holds more than a number or a bare name: what a column of pictures may hold as it is."""
    if not isinstance(cell, str):
        return not isinstance(cell, int)
    return "." in cell[-5:] or len(cell) > 64 or cell.startswith(ADDRESSES)


def near_columns(columns: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Return the columns whose names are among the wanted ones, however they are written."""
    known = {name: place for place, name in enumerate(wanted)}
    folded = {column: fold_column(column) for column in columns}
    return sorted((column for column in folded if folded[column] in known), key=lambda column: known[folded[column]])


def question_hint(row: Mapping[str, Any]) -> str:
    """Say why a row has no question: what its column holds, which may be meant, or which there are."""
    if (column := next(iter(near_columns(row, ("question",))), None)) is not None:
        cell = row[column]
        empty = cell is None or (isinstance(cell, str) and not cell.strip())
        return f": column {column!r} {'is empty' if empty else f'holds {type(cell).__name__}, not text'}"
    holder = next((column for column, cell in row.items() if _holds_questions(cell)), None)
    if holder is not None:
        return f": column {holder!r} holds some; give each a row of its own, with its picture and its answer"
    near = near_columns(row, telling_names("question"))
    meant = (
        f" (did you mean {near[0]!r}?)" if near else did_you_mean("question", set(row) - {"question_id", "questionId"})
    )
    return meant or f" (columns: {', '.join(list(row)[:20])}{', …' if len(row) > 20 else ''})"


def _holds_questions(cell: Any) -> bool:
    """Tell whether a cell holds questions inside it, one or a list of them, also as text."""
    if isinstance(cell, str) and cell.startswith(("[{", "{")):
        cell = parse_literal(cell)
    one = next(iter(cell), None) if isinstance(cell, list) else cell
    return isinstance(one, dict) and "question" in one


def refuse_list(question: str, where: str) -> None:
    """Refuse a question that is a list written as text: several questions, or the messages of a dialogue."""
    parsed = parse_literal(question.strip()) if question.rstrip().endswith("]") else None
    if isinstance(parsed, list) and any(isinstance(one, str | dict) for one in parsed):
        fix = "give each a row (group and round make them a dialogue), or write them as `messages`"
        raise DataError(f"{where}: the question is a list of {len(parsed)}; {fix}")


@lru_cache(maxsize=1024)
def fold_column(name: str) -> str:
    """Return a column's name without what people write differently: case, space, hyphens."""
    folded = name.strip().casefold()
    return BETWEEN_WORDS.sub("_", folded) if " " in folded or "-" in folded else folded


@lru_cache(maxsize=1024)
def _is_named(column: str, pattern: re.Pattern[str]) -> bool:
    return pattern.fullmatch(column.strip()) is not None


UNANSWERED = "rows without an answer: asked, and unscored"
UNREAD = {
    Form.YESNO: "rows whose answer is neither yes nor no: asked, and unscored",
    Form.NUMBER: "rows whose answer is not one number: asked, and unscored",
}
PLAIN_YES_NO = frozenset(("yes", "no", "Yes", "No", "True", "False"))
NOTHING = frozenset(("nan", "n/a", "na", "#n/a", "null", "-", "?", "tbd"))
"""What tools and people write where they have no answer."""
JOINTS = ("<AND>", "<OR>")
"""What MM-Vet writes between texts that are all needed, or of which one is enough."""


class RowNotes:
    """Counts what is to be said of rows."""

    def __init__(self, notes: MutableMapping[str, Counter[str]], is_empty: Callable[[Any], bool]) -> None:
        self._notes = notes
        self._is_empty = is_empty

    def add(self, text: str, who: str = "") -> None:
        """Count one more row of which a sentence is true."""
        self._notes.setdefault(text, Counter())[who] += 1

    def unanswered(self, who: str, columns: Iterable[str]) -> None:
        """Say that a row has no answer, and which of these columns may be one."""
        near = near_columns(columns, telling_names("answer"))
        self.add(f"{UNANSWERED}; is it {near[0]!r}? --map answer={near[0]}" if near else UNANSWERED, who)

    def sent(self, told: dict[str, Any]) -> dict[str, Any]:
        """Say what a row itself says of how it is asked, and return it."""
        for name in told:
            said = "system prompt" if name == "system" else name
            self.add(f"rows with a {said} of their own: it is sent instead of the run's")
        return told

    def contexts(self, row: dict[str, Any], columns: Iterable[str]) -> None:
        """Say which texts before the question are not asked."""
        for column in columns:
            if not self._is_empty(row[column]) and row[column] != []:
                text = isinstance(row[column], str)
                fix = f"--map hint={column} puts it first" if text else "a list `messages` can hold it"
                self.add(f"rows with a column {column!r} that is not asked ({fix})")

    def lost(self, row: dict[str, Any], columns: Iterable[str]) -> None:
        """Say which columns go on with the letters of options after a gap."""
        for column in columns:
            if not self._is_empty(row[column]):
                self.add(f"rows with a column {column!r} that is no option: the letters before it have a gap")

    def texts(self, sample: Sample, *, forced: bool) -> None:
        """Say how the answers of a row without options are compared, where that may not be what is meant."""
        if sample.form is Form.OPEN and not forced:
            said = _compared(sample.answers)
        else:
            said = UNREAD[sample.form] if sample.form in UNREAD and not _is_readable(sample) else ""
        if said:
            self.add(said, sample.id)

    def options(self, seen: LookedAt) -> None:
        """Say that options begin with letters of their own, or that one looks like an empty cell."""
        if seen.marks and seen.marks[0] == "A":
            own = "rows whose options begin with letters of their own"
            self.add(f"{own} (-p dataset.strip_marks=true takes them off)")
        if NAN in seen.folded:
            self.add("rows with an option 'nan': it is offered; leave the cell empty where there is none")

    def several(self, who: str) -> None:
        """Say that more than one option counts."""
        self.add("rows with several right options: any one of them counts (--form multiple asks for all)", who)

    def place(self, answer: Any, sample: Sample) -> None:
        """Say that an answer was taken for a place counted from 0, where it is a number and no option's text."""
        if isinstance(answer, list):
            answer = answer[0] if len(answer) else None
        whole = isinstance(answer, float) and answer.is_integer()
        number = whole or type(answer) is int or (isinstance(answer, str) and answer.isdecimal())
        place = int(answer) if number and sample.answers and str(answer) not in sample.answers else -1
        if 0 <= place < len(sample.options) and sample.options[place] in sample.answers:
            said = "rows with a number as answer: the place of an option, from 0"
            self.add(f"{said} (-p dataset.answer_kind=index1 counts from 1)")


def _compared(answers: tuple[str, ...]) -> str:
    """Return what is to be said of answers that are matched as exact text, or nothing."""
    first = answers[0]
    if len(first) == 1 and first.isalpha():
        return "rows with a letter as answer and no options found: matched as exact text"
    if first.casefold() in NOTHING:
        return f"rows whose answer is {first!r}: compared as a text; leave the cell empty where there is none"
    if any(joint in first for joint in JOINTS):
        return "rows whose answer joins texts by <AND> or <OR>: right where the reply holds all of them, or one"
    if "|" in first or (first[:1] == "[" and first[-1:] == "]"):
        return "rows whose answer may hold several (|): compared as one text; write a list of all that are right"
    return ""


def _is_readable(sample: Sample) -> bool:
    """Tell whether a scorer can read the answer of a question for yes or no, or for a number."""
    if sample.form is Form.YESNO:
        return any(answer in PLAIN_YES_NO or extract_yesno(answer).letter for answer in sample.answers)
    return any(is_plain_number(answer) or _is_one_number(answer) for answer in sample.answers)


def _is_one_number(text: str) -> bool:
    read = extract_number(text)
    return read.value is not None and read.rule != "last"

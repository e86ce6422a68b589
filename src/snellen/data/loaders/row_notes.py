"""What is to be said of rows: what is noted and counted, and columns that nothing reads though they seem to matter."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from functools import cache, lru_cache
from typing import Any

from ...core.errors import DataError, did_you_mean
from ...core.types import Form, Sample
from ...extract.other_kinds import extract_number, extract_yesno
from ..files.records import parse_literal
from ..files.rows import Row
from .option_texts import NAN, OptionFacts, refuse_contrary
from .row_answers import is_plain_number
from .row_map import Cells, Places, fold_column, near_columns, telling_names
from .row_media import looks_like_pictures
from .row_source import TableSource

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

    def __init__(self, notes: MutableMapping[str, Counter[str]], source: TableSource, form: Form) -> None:
        self._notes = notes
        self._marks_count = not (source.strip_marks or source.keep_marks)
        self._may_be_places = source.answer_kind == "auto"
        self._is_forced = form is not Form.AUTO

    def add(self, text: str, who: str = "") -> None:
        """Count one more row of which a sentence is true."""
        self._notes.setdefault(text, Counter())[who] += 1

    def sent(self, told: dict[str, Any]) -> dict[str, Any]:
        """Say what a row itself says of how it is asked, and return it."""
        for name in told:
            said = "system prompt" if name == "system" else name
            self.add(f"rows with a {said} of their own: it is sent instead of the run's")
        return told

    def answers(self, sample: Sample, columns: Iterable[str] = ()) -> None:
        """Say that a row has no answer (which of `columns` may be one?), or how one without options is compared."""
        if not sample.answers:
            near = near_columns(columns, telling_names("answer"))
            self.add(f"{UNANSWERED}; is it {near[0]!r}? --map answer={near[0]}" if near else UNANSWERED, sample.id)
        elif not sample.options:
            self._compared(sample)

    def _compared(self, sample: Sample) -> None:
        """Say how the answers of a row without options are compared, where that may not be what is meant."""
        if sample.form is Form.OPEN and not self._is_forced:
            said = _about_texts(sample.answers)
        else:
            said = UNREAD[sample.form] if sample.form in UNREAD and not _is_readable(sample) else ""
        if said:
            self.add(said, sample.id)

    def choice(self, sample: Sample, facts: OptionFacts, answer: Any, where: str) -> None:
        """Say what is odd about a choice; refuse options whose own letters contradict the prompt's.

        `answer` is as the row has it; None where its options have names of their own.
        """
        if self._marks_count:
            refuse_contrary(facts.marks, where)
            if facts.marks and facts.marks[0] == "A":
                own = "rows whose options begin with letters of their own"
                self.add(f"{own} (-p dataset.strip_marks=true takes them off)")
            if NAN in facts.folded:
                self.add("rows with an option 'nan': it is offered; leave the cell empty where there is none")
        if len(sample.answers) > 1 and sample.form is Form.CHOICE:
            self.add(
                "rows with several right options: any one of them counts (--form multiple asks for all)", sample.id
            )
        if self._may_be_places and _is_place(answer, sample):
            said = "rows with a number as answer: the place of an option, from 0"
            self.add(f"{said} (-p dataset.answer_kind=index1 counts from 1)")


def _is_place(answer: Any, sample: Sample) -> bool:
    """Tell whether an answer was taken for a place counted from 0: it is a number and no option's text."""
    if isinstance(answer, list):
        answer = answer[0] if len(answer) else None
    whole = isinstance(answer, float) and answer.is_integer()
    number = whole or type(answer) is int or (isinstance(answer, str) and answer.isdecimal())
    place = int(answer) if number and sample.answers and str(answer) not in sample.answers else -1
    return 0 <= place < len(sample.options) and sample.options[place] in sample.answers


def _about_texts(answers: tuple[str, ...]) -> str:
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


_WRONG = r"(?:incorrect|wrong|false)[ _-]?(?:answers?|options?)|distractors?"
_OPTIONS = rf"(?:options?|choices?|candidates?|alternatives?|endings|{_WRONG}|选项|選項|選択肢)"
OPTION_COLUMN = re.compile(rf"(?:.*[ _-])?{_OPTIONS}(?:[ _-]?list)?", re.IGNORECASE)
BETWEEN = re.compile(r"[|;\n]")
_PICTURE = r"(?:image|img|picture|photo|pic)s?"
PICTURE_NAME_COLUMN = re.compile(
    rf"{_PICTURE}[ _-]?(?:id|ids|name|names|file|filename|file_name|idx|index|key|src)", re.IGNORECASE
)
PICTURE_LINK_COLUMN = re.compile(rf"(?:.*[ _-])?{_PICTURE}(?:[ _-]?(?:url|uri|link)s?)?", re.IGNORECASE)
ADDRESSES = ("http://", "https://")
PICTURE_FILE = re.compile(r"\S{1,1000}\.(?:png|jpe?g|gif|webp|bmp|tiff?|pdf|svg|avif|heic|jp2)", re.IGNORECASE)
VIDEO_FILE = re.compile(r"\S{1,1000}\.(?:mp4|webm|mkv|mov|avi|m4v)", re.IGNORECASE)


class UnreadColumns:
    """Looks at the columns that nothing reads: what seems to belong to the question is refused, the rest is noted."""

    def __init__(self, source: TableSource, cells: Cells, root: str, notes: RowNotes) -> None:
        self._not_options, self._not_pictures = source.not_options, source.not_pictures
        self._cells = cells
        self._root = root
        self._notes = notes

    def note(self, row: Row, places: Places) -> None:
        """Say which columns go on with the letters of options after a gap, and which texts before it are not asked."""
        for column in places.lost:
            if not self._cells.is_empty(row[column]):
                self._notes.add(f"rows with a column {column!r} that is no option: the letters before it have a gap")
        for column in places.contexts:
            if not self._cells.is_empty(row[column]) and row[column] != []:
                text = isinstance(row[column], str)
                fix = f"--map hint={column} puts it first" if text else "a list `messages` can hold it"
                self._notes.add(f"rows with a column {column!r} that is not asked ({fix})")

    def refuse_options(self, row: Row, places: Places, answer: Any, where: str) -> None:
        """Refuse a row without options that has some in columns of one family, or in one that is called so."""
        columns = [column for column in places.unread if column not in self._not_options]
        family = [column for column in places.family if column in columns and not self._cells.is_empty(row[column])]
        if len(family) > 1:
            use = f"--map options={','.join(family)} offers them, -p dataset.not_options={family} keeps tags"
            raise DataError(f"{where}: columns {' and '.join(map(repr, family[:2]))} look like options; {use}")
        if column := _unread_options(columns, row, answer):
            use = f"--map options={column} offers them, -p dataset.not_options=[{column!r}] keeps a tag"
            raise DataError(f"{where}: column {column!r} looks like options and is not used; {use}")

    def refuse_pictures(self, row: Row, columns: Iterable[str], places: Places, pictured: bool, where: str) -> None:
        """Refuse a column that holds pictures, or that names one or speaks of one in a row that shows none."""
        columns = [column for column in columns if row[column] and column not in self._not_pictures]
        for column in columns:
            if not pictured:
                self._refuse_said(column, row[column], where)
            alike = looks_like_pictures(column, row[column], self._root)
            if alike or (not pictured and _names_picture(column, row[column])):
                fix = self._how_to_show(row, column, columns, places)
                use = f"{fix} shows them, -p dataset.not_pictures=[{column!r}] keeps a tag"
                raise DataError(f"{where}: column {column!r} looks like pictures and is not used; {use}")

    def _refuse_said(self, column: str, cell: Any, where: str) -> None:
        """Refuse a cell that says that the row is about a picture, or that names a video, in a row that shows none."""
        keep = f"-p dataset.not_pictures=[{column!r}] asks without"
        if _says_picture(column, cell):
            fix = f"-p 'dataset.image=FOLDER/{{COLUMN}}.jpg' says where they lie, {keep}"
            raise DataError(f"{where}: column {column!r} says {cell!r} and the row shows no picture; {fix}")
        if isinstance(cell, str) and "." in cell[-5:] and VIDEO_FILE.fullmatch(cell):
            raise DataError(
                f"{where}: column {column!r} names a video and is not used; --map video={column} shows it, {keep}"
            )

    def _how_to_show(self, row: Row, column: str, columns: Sequence[str], places: Places) -> str:
        if not _is_file_name(row[column]):
            return f"-p 'dataset.image=FOLDER/{{{column}}}.jpg'"
        shown = [name for group in places.images for name in group if not self._cells.is_empty(row[name])]
        alike = [name for name in columns if looks_like_pictures(name, row[name], self._root)]
        return f"--map images={','.join([*shown, *(alike or [column])])}"


def _unread_options(columns: Iterable[str], row: Mapping[str, Any], answer: Any) -> str | None:
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


def _names_picture(column: str, cell: Any) -> bool:
    """Tell whether a cell of a row without pictures names one, by its column or by its ending; it may be elsewhere."""
    if isinstance(cell, dict):
        return any(_names_picture(str(key), value) for key, value in cell.items() if isinstance(value, str))
    if isinstance(cell, list):
        return any(_names_picture(column, one) for one in cell if isinstance(one, dict))
    if type(cell) in (str, int) and _is_named(column, PICTURE_NAME_COLUMN):
        return True
    if not isinstance(cell, str):
        return False
    linked = cell.startswith(ADDRESSES) and _is_named(column, PICTURE_LINK_COLUMN)
    return linked or ("." in cell[-5:] and PICTURE_FILE.fullmatch(cell) is not None)


def _says_picture(column: str, cell: Any) -> bool:
    """Tell whether a cell says that the row is about a picture: `data_type` is `image`."""
    return isinstance(cell, str) and fold_column(column) in telling_names("kind") and cell.casefold() in _pictures()


@cache
def _pictures() -> frozenset[str]:
    return frozenset(telling_names("picture"))


def _is_file_name(cell: Any) -> bool:
    """Tell whether a cell holds more than a number or a bare name: what a column of pictures may hold as it is."""
    if not isinstance(cell, str):
        return not isinstance(cell, int)
    return "." in cell[-5:] or len(cell) > 64 or cell.startswith(ADDRESSES)


@lru_cache(maxsize=1024)
def _is_named(column: str, pattern: re.Pattern[str]) -> bool:
    return pattern.fullmatch(column.strip()) is not None


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

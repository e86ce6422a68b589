"""What the plan says of a file's rows: what is not asked, what stays unscored, and how answers are taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

from ...core.types import Form, Sample
from ...extract.other_kinds import extract_number, extract_yesno
from .answers import NAN, LookedAt, is_plain_number
from .unused_columns import near_columns, telling_names

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

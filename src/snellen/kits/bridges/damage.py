"""What a file of predictions has lost or bent on its way: counted, told from a reply, or refused in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from ...core.errors import DataError
from ...core.text import plural

STARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "lmms-eval": ("[LMMS_EVAL_REQUEST_FAILED",),
    "flageval": ("Error code", "Can not answer because of", "Input data may contain inappropriate content"),
}
"""Harness -> how its failures begin."""
FILTERED: Final = frozenset(
    ("content_filter", "content-filter", "contentfilter", "safety", "prohibited_content", "recitation", "blocklist")
)
"""How servers say that a filter stopped a reply: OpenAI and Azure, Gemini."""
CONTAINED: Final[Mapping[str, tuple[str, ...]]] = {"vlmevalkit": ("Failed to obtain answer",)}
"""Harness -> what stands anywhere in them."""


def failure_in(harness: str, reply: str) -> str | None:
    """Return the failure a reply of this harness stands for, in its own words, or None for a reply."""
    if reply.lstrip().startswith(STARTS.get(harness, ("\0",))):
        return reply
    return reply if any(mark in reply for mark in CONTAINED.get(harness, ())) else None


def stopped_by_filter(finish: str | None, reply: str, read: object = None) -> str | None:
    """Return the failure of a call that a content filter stopped, by its finish reason; None if an answer was read."""
    if finish is None or finish.lower() not in FILTERED or read not in (None, ""):
        return None
    return f"refused by the content filter: {reply}" if reply else "refused by the content filter"


def failure_anywhere(reply: str) -> str | None:
    """Return the failure a reply of no known harness stands for, by the marks of all of them, or None."""
    starts = tuple(mark for marks in STARTS.values() for mark in marks)
    contained = [mark for marks in CONTAINED.values() for mark in marks]
    return reply if reply.lstrip().startswith(starts) or any(mark in reply for mark in contained) else None


EXCEL_CELL: Final = 32_767
"""So many characters a cell of a workbook takes; what is longer is cut by whoever wrote it."""
NAMED = 5
WITHOUT_ANSWER = ("no_gold", "odd_gold", "two_golds", "no_options")
"""Kinds that the benchmark's own rows can mend."""
KINDS: Final[Mapping[str, str]] = {
    "cut": "a reply as long as an Excel cell takes (32,767 characters): cut there, and read as cut",
    "typed": "a reply that the sheet keeps as a number or a truth value: what was written is lost (007, 1e5, TRUE)",
    "empty": "an empty reply (in a sheet an empty reply, None and a lost one look the same)",
    "lost": "a row without any reply: counted as failed",
    "lost_call": "a call of which the file has no row, in a run that ended: counted as failed",
    "repeated": "a row that repeats another word for word: counted once",
    "superseded": "a row that another of the same question replaces",
    "no_gold": "a row without a right answer: unscored",
    "odd_gold": "a row whose right answer is none of its options: unscored",
    "two_golds": "a right answer that can be an option's text or another's place: unscored (write its letter)",
    "no_options": "a choice whose options the file does not show: letter against letter (--data has the options)",
    "numbers": "a reply read as the label (1), (2), (3), …; --option-mark upper takes letters only",
    "two_marks": "a number in brackets that may be a label or an option's text: unscored; give --option-mark",
    "silent": "an item without a prediction: counted as wrong",
    "bad": "a row that could not be read: left out",
    "same_options": "a row with two options of one text",
    "shuffled": "a reply that the harness rewrote after shuffling: only its verdict counts, not its words",
    "other_question": "a question that reads otherwise in --data",
    "other_gold": "a right answer that is another one in --data; the file's counts",
    "other_options": "options that read otherwise in --data; those of --data count",
    "missing": "a row of the benchmark without a prediction: counted as not asked",
    "reference": "a picture that the export only names and does not hold: missing",
    "no_picture": "a picture that is not where the file says",
}
"""Kind -> what one of it is."""


class Damage:
    """Counts by kind, with the first few rows of each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.named: dict[str, list[str]] = {}
        self._unanswered: dict[str, str] = {}

    def add(self, kind: str, row: str, count: int = 1) -> None:
        """Count one row of a kind."""
        self.counts[kind] += count
        names = self.named.setdefault(kind, [])
        if len(names) < NAMED:
            names.append(row)
        if kind in WITHOUT_ANSWER:
            self._unanswered[row] = kind

    def mend(self, row: str) -> None:
        """Take back that a row has no right answer: it was found elsewhere."""
        kind = self._unanswered.pop(row, None)
        if kind is not None:
            self.counts[kind] -= 1
            if row in self.named[kind]:
                self.named[kind].remove(row)

    def described(self) -> dict[str, Any]:
        """Return kind -> count, meaning and first rows."""
        return {
            kind: {"count": count, "what": KINDS[kind], "first": self.named[kind]}
            for kind, count in self.counts.items()
            if count
        }

    def lines(self) -> list[str]:
        """Return one sentence a kind."""
        return damage_lines(self.described())


def damage_lines(described: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one sentence a kind of what `Damage.described` says."""
    return [
        f"{plural(entry['count'], 'time')}: {entry['what']} ({', '.join(entry['first'])}"
        f"{', …' if entry['count'] > len(entry['first']) else ''})"
        for entry in described.values()
    ]


MALFORMED: Final = (AttributeError, TypeError, ValueError, LookupError, RecursionError, OverflowError)
"""How a value of another kind than its place has shows itself: a list where an object belongs, a text for a number."""
LONGEST_REASON = 120
Item = TypeVar("Item")
Row = TypeVar("Row")


@contextmanager
def refuse_malformed(where: str) -> Iterator[None]:
    """Refuse what has another shape than its harness writes, and say where."""
    try:
        yield
    except MALFORMED as error:
        raise DataError(
            f"{where} is not as its harness writes it ({type(error).__name__}: {error}): is it whole?"
        ) from None


def each_well_formed(rows: Iterator[Item], name: str) -> Iterator[Item]:
    """Yield the rows of a reader; the one that has another shape is refused by its number."""
    number = 0
    while True:
        number += 1
        with refuse_malformed(f"{name}: row {number}"):
            row = next(rows, None)
        if row is None:
            return
        yield row


def each_readable(
    records: Iterator[tuple[int, Item]], read: Callable[[int, Item], Iterator[Row]], damage: Damage
) -> Iterator[Row]:
    """Yield the rows that `read` makes of every record; one that it cannot read is counted by its number."""
    for number, record in records:
        try:
            rows = list(read(number, record))
        except (DataError, *MALFORMED) as error:
            damage.add("bad", f"row {number}: {str(error)[:LONGEST_REASON]}")
        else:
            yield from rows

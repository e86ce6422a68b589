"""What a file of predictions has lost or bent on its way, counted and named, so that it can be said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from ...core.text import plural

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

"""A filter and an order over the columns of a task to the rows that match: the sample browser's engine."""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable
from itertools import accumulate

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..scoring.table import Costs, Mask, Outcome, TrialColumns
from ..store.reader import RunReader
from .patterns import matching_texts

Rows = NDArray[np.int64]
SEARCHED = 4_000
"""Characters of a reply that the text search looks at."""
KEPT_PATTERNS = 8
"""Patterns whose matches are kept."""
SORTS = ("plan", "value", "latency", "tokens", "sample")
OUTCOMES = ("all", "wrong", "partly", "right", "unparsed", "failed", "flipped", "pending")


class Query(Struct, frozen=True):
    """What to show. Unknown values match nothing instead of failing: a permalink may outlive its run."""

    outcome: str = "all"
    rule: str = ""
    key: str = ""
    group: str = ""
    text: str = ""
    sort: str = "plan"
    descending: bool = False
    also: tuple[tuple[str, str], ...] = ()
    """Further groups, as key and value; a trial must be in all of them."""
    flipped: bool = False
    slower: float | None = None
    """Seconds that a reply took at least."""
    longer: int | None = None
    """Tokens that a reply has at least."""
    is_pattern: bool = False
    """Whether the text is a regular expression."""
    marked: str = ""
    """A kind of mark that somebody gave the trial, or `any`."""


class _Reply(Struct):
    text: str | None = None


class TextSearch:
    """Questions and replies of a task as one lower-case text: a search is one pass of the fastest loop Python has."""

    def __init__(self, reader: RunReader, columns: TrialColumns) -> None:
        decode = msgspec.json.Decoder(_Reply).decode
        places = {row: place for place, row in enumerate(columns.row.tolist())}
        pieces = [""] * len(columns)
        for row, body in reader.rows("SELECT rowid, body FROM predictions WHERE +task = ?", (columns.task.name,)):
            if row in places:  # else it was stored after the columns were read
                pieces[places[row]] = (decode(body).text or "")[:SEARCHED].lower()
        self._questions = _Haystack([f"{sample.id}\n{sample.question}".lower() for sample in columns.facts])
        self._replies = _Haystack(pieces)
        self._sample = columns.sample
        self._matched: OrderedDict[str, Mask] = OrderedDict()

    def find(self, needle: str) -> Mask:
        """Return which trials have the text in their question, id or reply."""
        return self._replies.find(needle.lower()) | self._questions.find(needle.lower())[self._sample]

    def match(self, pattern: str) -> Mask:
        """Return which trials match a regular expression in question, id or reply. Raises PatternProblem.

        The last few are kept: who walks through what was filtered asks for the same again at every step.
        """
        if pattern not in self._matched:
            replies, questions = self._replies.match(pattern), self._questions.match(pattern)
            self._matched[pattern] = replies | questions[self._sample]
            while len(self._matched) > KEPT_PATTERNS:
                self._matched.popitem(last=False)
        return self._matched[pattern].copy()


class _Haystack:
    def __init__(self, pieces: list[str]) -> None:
        self._whole = "\x00".join(pieces)
        self._starts = [0, *accumulate(len(piece) + 1 for piece in pieces)][: len(pieces)]

    def match(self, pattern: str) -> Mask:
        return matching_texts(pattern, self._whole, self._starts)

    def find(self, needle: str) -> Mask:
        found = np.zeros(len(self._starts), np.bool_)
        at = self._whole.find(needle) if needle else -1
        while at >= 0:
            row = bisect.bisect_right(self._starts, at) - 1
            found[row] = True
            at = self._whole.find(needle, self._starts[row + 1]) if row + 1 < len(self._starts) else -1
        return found


def select(
    columns: TrialColumns,
    query: Query,
    *,
    search: Callable[[str], Mask] | None = None,
    costs: Callable[[], Costs] | None = None,
    marks: Callable[[str], Mask] | None = None,
) -> Rows:
    """Return the row numbers that match, in the order asked for; what is slow to read is read only where needed."""
    return sift(columns, query, search=search, costs=costs, marks=marks)[0]


def sift(
    columns: TrialColumns,
    query: Query,
    *,
    search: Callable[[str], Mask] | None = None,
    costs: Callable[[], Costs] | None = None,
    marks: Callable[[str], Mask] | None = None,
) -> tuple[Rows, dict[str, int]]:
    """Return the rows of `select`, and how many each outcome would show with all the other filters as they are."""
    rest = _but_outcome(columns, query, search, costs)
    if query.marked and marks is not None:
        rest &= marks(query.marked)
    asked = _by_outcome(columns, query.outcome)
    flipped = columns.flipped if query.flipped else np.ones(len(columns), np.bool_)
    counts = {name: int(np.count_nonzero(rest & flipped & _by_outcome(columns, name))) for name in OUTCOMES}
    counts["flipped"] = int(np.count_nonzero(rest & asked & columns.flipped))
    return _in_order(columns, np.flatnonzero(rest & flipped & asked), query, costs), counts


def _but_outcome(
    columns: TrialColumns, query: Query, search: Callable[[str], Mask] | None, costs: Callable[[], Costs] | None
) -> Mask:
    keep = np.ones(len(columns), np.bool_)
    if query.rule:
        keep &= columns.rows_with("rule", query.rule) | columns.rows_with("reason", query.rule)
    for key, value in ((query.key, query.group), *query.also):
        if key:
            keep &= _by_group(columns, key, value)
    if query.slower is not None and costs is not None:
        keep &= costs().latency_s >= query.slower  # what is not known is not slow
    if query.longer is not None and costs is not None:
        keep &= costs().tokens >= query.longer
    if query.text and search is not None:
        keep &= search(query.text)
    return keep


def _in_order(columns: TrialColumns, rows: Rows, query: Query, costs: Callable[[], Costs] | None) -> Rows:
    keys = _keys(columns, query.sort, costs)[rows]
    order = np.argsort(keys, kind="stable")
    order = order[::-1] if query.descending else order
    unknown = np.isnan(keys[order])  # what has no number stands last, whichever way one sorts
    return np.asarray(rows[np.concatenate([order[~unknown], order[unknown]])], dtype=np.int64)


def _by_outcome(columns: TrialColumns, name: str) -> Mask:
    if name == "flipped":
        return columns.flipped.copy()
    if name == "all":
        return np.ones(len(columns), np.bool_)
    if name == "wrong":
        return np.asarray((columns.outcome == Outcome.WRONG) | (columns.outcome == Outcome.PARTLY), dtype=np.bool_)
    kind = Outcome.UNSCORED if name == "unparsed" else Outcome.__members__.get(name.upper())
    return np.asarray(columns.outcome == (-1 if kind is None else kind.value), dtype=np.bool_)


def _by_group(columns: TrialColumns, key: str, value: str) -> Mask:
    if key == "variant":
        return columns.rows_with("variant", value)
    if key == "group":
        chosen = [sample.group == value for sample in columns.facts]
    else:
        chosen = [key in sample.tags and str(sample.tags[key]) == value for sample in columns.facts]
    return np.array(chosen, np.bool_)[columns.sample]


def group_values(columns: TrialColumns) -> dict[str, list[str]]:
    """Return the keys one can filter by (tags, group, variant) and their values, sorted; one value is no choice."""
    choices: dict[str, set[str]] = {}
    for sample in columns.facts:
        for key, value in sample.tags.items():
            choices.setdefault(key, set()).add(str(value))
        if sample.group is not None:
            choices.setdefault("group", set()).add(sample.group)
    choices["variant"] = set(columns.variants)
    return {key: sorted(values) for key, values in sorted(choices.items()) if len(values) > 1}


def _keys(columns: TrialColumns, sort: str, costs: Callable[[], Costs] | None) -> NDArray[np.float64]:
    if sort == "value":
        return np.where(columns.scored, columns.value, np.nan)
    if sort == "sample":  # codes are ranks of the names
        return columns.sample.astype(np.float64)
    if sort in ("latency", "tokens") and costs is not None:
        return costs().latency_s if sort == "latency" else costs().tokens.astype(np.float64)
    return np.arange(len(columns), dtype=np.float64)

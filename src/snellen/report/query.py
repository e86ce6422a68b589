"""A filter and an order over the columns of a task to the rows that match: the sample browser's engine."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.text import NO_TAG
from ..scoring.tables.table import Costs, Mask, Outcome, TrialColumns, code_of
from ..scoring.tables.table_builder import fewest_bytes
from ..store.reader import RunReader

Rows = NDArray[np.int64]
SEARCHED = 4_000
"""Characters of a reply that the text search looks at."""
BLOCK_TEXTS = 4_000
"""Texts that are packed together."""
KEPT_SEARCHES = 8
"""Searches whose matches are kept."""
TRIED_AT_ONCE = 32_000_000
"""Characters that a pattern is tried on by one process."""
KEPT_ROWS = 20_000_000
"""Rows of the last filters that are kept together: walking from trial to trial filters nothing again."""
SORTS = ("plan", "value", "latency", "tokens", "sample")
OUTCOMES = ("all", "wrong", "partly", "right", "unread", "failed", "flipped", "pending", "unjudged")


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
    why: str = ""
    """Why it is not right: a kind of `snellen.scoring.aggregates.error_groups`."""


class _Reply(Struct):
    text: str | None = None


class TextBlock(NamedTuple):
    """Some texts in lower case, one a row. Equal ones are held, and searched, once: short replies are often equal."""

    texts: bytes
    ends: NDArray[Any]
    """Where each of the different texts ends."""
    codes: NDArray[Any]
    """Which one a row has."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextBlock:
        """Pack texts that are in lower case already."""
        book: dict[str, int] = {}
        codes = [book.setdefault(text, len(book)) for text in texts]
        content = [text.encode("utf-8", "surrogatepass") for text in book]
        ends = np.cumsum([len(text) for text in content], dtype=np.int64)
        return cls(b"".join(content), fewest_bytes(ends), fewest_bytes(np.array(codes, np.int64)))

    def pieces(self) -> list[bytes]:
        """Return the different texts."""
        return [self.texts[start:end] for start, end in pairwise((0, *self.ends.tolist()))]

    def containing(self, needle: bytes) -> Mask:
        """Return which rows have a text in theirs."""
        if needle not in self.texts:
            return np.zeros(self.codes.size, np.bool_)
        found = np.array([needle in piece for piece in self.pieces()], np.bool_)
        return np.asarray(found[self.codes], np.bool_)


class TextSearch:
    """Searches questions and replies of a task, block by block.

    What the last few searches found is kept: who walks through it asks for the same again at every step.
    """

    def __init__(self, reader: RunReader, columns: TrialColumns) -> None:
        self._replies, self._questions = _read_texts(reader, columns)
        self._sample = columns.sample
        self._found: OrderedDict[tuple[str, str], NDArray[np.uint8]] = OrderedDict()

    def find(self, needle: str) -> Mask:
        """Return which trials have the text in their question, id or reply."""
        wanted = needle.lower().encode("utf-8", "surrogatepass")
        if not wanted:
            return np.zeros(self._sample.size, np.bool_)
        return self._once(("text", needle.lower()), lambda blocks: [block.containing(wanted) for block in blocks])

    def match(self, pattern: str) -> Mask:
        """Return which trials match a regular expression in question, id or reply. Raises PatternProblem."""
        return self._once(("pattern", pattern), lambda blocks: _matches(pattern, blocks))

    def _once(self, key: tuple[str, str], look: Callable[[Iterable[TextBlock]], Iterable[Mask]]) -> Mask:
        if key not in self._found:
            self._found[key] = np.packbits(self._look(look))
            while len(self._found) > KEPT_SEARCHES:
                self._found.popitem(last=False)
        return np.unpackbits(self._found[key], count=self._sample.size).view(np.bool_)

    def _look(self, look: Callable[[Iterable[TextBlock]], Iterable[Mask]]) -> Mask:
        replies, questions = _joined(look(self._replies)), _joined(look(self._questions))
        return np.asarray(replies | questions[self._sample])


def _joined(masks: Iterable[Mask]) -> Mask:
    return np.concatenate([np.zeros(0, np.bool_), *masks])


def _read_texts(reader: RunReader, columns: TrialColumns) -> tuple[list[TextBlock], list[TextBlock]]:
    """Return the replies in the order of the columns, and ids with questions in that of the samples."""
    decode = msgspec.json.Decoder(_Reply).decode
    places = {row: place for place, row in enumerate(columns.row.tolist())}
    replies = [""] * len(columns)
    for row, body in reader.rows("SELECT rowid, body FROM predictions WHERE +task = ?", (columns.task.name,)):
        if row in places:  # else it was stored after the columns were read
            replies[places[row]] = (decode(body).text or "")[:SEARCHED].lower()
    questions = [f"{sample.id}\n{sample.question}".lower() for sample in columns.facts]
    return _blocks(replies), _blocks(questions)


def _blocks(texts: Sequence[str]) -> list[TextBlock]:
    return [TextBlock.of(texts[first : first + BLOCK_TEXTS]) for first in range(0, len(texts), BLOCK_TEXTS)]


def _matches(pattern: str, blocks: Iterable[TextBlock]) -> Iterator[Mask]:
    """Yield the matches of blocks, of which a process is given so many that starting it costs little."""
    waiting: list[TextBlock] = []
    for block in blocks:
        waiting.append(block)
        if sum(len(one.texts) for one in waiting) >= TRIED_AT_ONCE:
            yield from _tried(pattern, waiting)
            waiting = []
    yield from _tried(pattern, waiting)


def _tried(pattern: str, blocks: list[TextBlock]) -> Iterator[Mask]:
    from .patterns import matching_texts

    texts = [piece.decode("utf-8", "surrogatepass") for block in blocks for piece in block.pieces()]
    starts = [0, *accumulate(len(text) + 1 for text in texts)][: len(texts)]
    found, first = matching_texts(pattern, "\x00".join(texts), starts), 0
    for block in blocks:
        yield found[first : first + block.ends.size][block.codes]
        first += block.ends.size


Sifted = tuple[Rows, dict[str, int]]


class LastSifted:
    """What the last filters found, as many as together have few enough rows; the last one always."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, Query], Sifted] = OrderedDict()

    def again(self, key: tuple[str, Query], make: Callable[[], Sifted]) -> Sifted:
        """Return what a filter finds under a metric, made if it is not at hand."""
        if key not in self._found:
            self._found[key] = make()
        self._found.move_to_end(key)
        while len(self._found) > 1 and sum(rows.size for rows, _ in self._found.values()) > KEPT_ROWS:
            self._found.popitem(last=False)
        return self._found[key]


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
    errors: Callable[[str], Mask] | None = None,
) -> tuple[Rows, dict[str, int]]:
    """Return the rows of `select`, and how many each outcome would show with all the other filters as they are."""
    rest = _but_outcome(columns, query, search, costs)
    if query.marked and marks is not None:
        rest &= marks(query.marked)
    if query.why and errors is not None:
        rest &= errors(query.why)
    asked = rows_of_outcome(columns, query.outcome)
    flipped = columns.flipped if query.flipped else np.ones(len(columns), np.bool_)
    counts = {name: int(np.count_nonzero(rest & flipped & rows_of_outcome(columns, name))) for name in OUTCOMES}
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
    if query.sort not in SORTS[1:]:
        return rows[::-1] if query.descending else rows
    keys = _keys(columns, query.sort, costs)[rows]
    order = np.argsort(keys, kind="stable")
    order = order[::-1] if query.descending else order
    unknown = np.isnan(keys[order])  # what has no number stands last, whichever way one sorts
    return np.asarray(rows[np.concatenate([order[~unknown], order[unknown]])], dtype=np.int64)


def rows_of_outcome(columns: TrialColumns, name: str) -> Mask:
    """Return which trials a choice of outcomes shows; what is partly right is not right."""
    if name == "flipped":
        return columns.flipped.copy()
    if name == "all":
        return np.ones(len(columns), np.bool_)
    if name == "wrong":
        return np.asarray((columns.outcome == Outcome.WRONG) | (columns.outcome == Outcome.PARTLY), dtype=np.bool_)
    kind = Outcome.__members__.get(name.upper())
    return np.asarray(columns.outcome == (-1 if kind is None else kind.value), dtype=np.bool_)


def _by_group(columns: TrialColumns, key: str, value: str) -> Mask:
    if key == "variant":
        return columns.rows_with("variant", value)
    if key in columns.filters and key not in columns.tags:
        return columns.filters[key].rows(columns, value)
    codes, texts = (columns.groups if key == "group" else columns.tags.get(key)) or (None, ())
    if codes is None:
        return np.zeros(len(columns), np.bool_)
    return np.asarray((codes == code_of(texts, value))[columns.sample], np.bool_)


def group_values(columns: TrialColumns) -> dict[str, list[str]]:
    """Return the keys one can filter by (tags, group, variant) and their values, sorted; one value is no choice."""
    choices = {key: set(texts) - {NO_TAG} for key, (_, texts) in columns.tags.items()}
    if columns.groups is not None:
        choices["group"] = set(columns.groups[1])
    choices["variant"] = set(columns.variants)
    for key, known in columns.filters.items():
        choices.setdefault(key, known.values(columns))
    return {key: sorted(values) for key, values in sorted(choices.items()) if len(values) > 1}


def _keys(columns: TrialColumns, sort: str, costs: Callable[[], Costs] | None) -> NDArray[np.float64]:
    if sort == "value":
        return np.where(columns.read, columns.value, np.nan)
    if sort == "sample":  # codes are ranks of the names
        return columns.sample.astype(np.float64)
    if sort in ("latency", "tokens") and costs is not None:
        return costs().latency_s if sort == "latency" else costs().tokens.astype(np.float64)
    return np.arange(len(columns), dtype=np.float64)

"""Rows of scored trials in, one `ScoreTable` a metric out.

Texts become codes by the sorted order of what was seen, rows are sorted by (sample, variant, repeat): so nothing
downstream can depend on the order in which trials finished or were read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..stats.intervals import Floats
from .table import Codes, Outcome, ScoreTable

ScoreRow = tuple[str, str, int, str, float | None, str | None, str | None, str | None]
"""sample, variant, repeat, metric, value, answer, rule, reason: the columns of table `scores`."""
TrialRow = tuple[str, str, int, str | None]
"""sample, variant, repeat, kind of failure (None: it has a reply): from table `predictions`."""
SampleRow = tuple[str, str | None, Mapping[str, Any]]
"""id, group, tags: from the bodies of table `samples`."""

NO_TAG = "(none)"
NOT_SCORED = "not_scored"
LARGEST_VALUE = 1e100
_CHUNK = 65_536


class _CodeBook(dict[Hashable, int]):
    """Gives every new text the next number; None is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def code(self, key: Hashable) -> int:
        """Return the number of one text."""
        return self.setdefault(key, len(self) - 1)

    def encode(self, column: Sequence[Hashable]) -> Codes:
        """Return the numbers of a column."""
        try:
            return np.fromiter(map(self.__getitem__, column), dtype=np.int32, count=len(column))
        except KeyError:
            self.update(
                zip([key for key in dict.fromkeys(column) if key not in self], count(len(self) - 1), strict=False)
            )
            return np.fromiter(map(self.__getitem__, column), dtype=np.int32, count=len(column))

    def sort(self) -> tuple[list[str], Codes]:
        """Return the texts in sorted order, and old code -> rank (the last entry maps -1 to itself)."""
        texts = [str(key) for key in self if key is not None]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        ranks = np.empty(len(texts) + 1, dtype=np.int32)
        ranks[order] = np.arange(len(texts), dtype=np.int32)
        ranks[-1] = -1
        return [texts[i] for i in order], ranks


def read_tables(
    scores: Iterable[ScoreRow],
    trials: Iterable[TrialRow] = (),
    samples: Iterable[SampleRow] = (),
    *,
    tag_keys: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
) -> dict[str, ScoreTable]:
    """Build one table a metric from the rows of one task.

    Every trial named in `trials` is in every table: a failed one as failed, one without a score as unscored. Only tags
    in `tag_keys` are kept (None: all that were seen). A metric in `metrics` gets a table even if no trial has it.
    Raises DataError for duplicates and for values that are no numbers.
    """
    builder = TableBuilder(tag_keys)
    for score_rows in _chunks(scores):
        builder.add_scores(score_rows)
    for trial_rows in _chunks(trials):
        builder.add_trials(trial_rows)
    builder.add_samples(samples)
    return builder.tables(metrics)


class _SampleBook:
    """Remembers the group and tags of each sample; equal tags are kept once."""

    def __init__(self, tag_keys: Sequence[str] | None) -> None:
        self.group: dict[str, str] = {}
        self.tags: dict[str, Mapping[str, str]] = {}
        self._keys = tag_keys
        self._shared: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def add(self, samples: Iterable[SampleRow]) -> None:
        """Take more samples."""
        for identifier, group, tags in samples:
            if group is not None:
                self.group[identifier] = group
            if tags:
                texts = tuple((key, tag_text(value)) for key, value in tags.items())
                self.tags[identifier] = self._shared.get(texts) or self._shared.setdefault(texts, dict(texts))

    def clusters(self, samples: Sequence[str]) -> Codes:
        """Return a cluster code for each sample; a group and a sample of the same name stay apart."""
        if not self.group:
            return np.arange(len(samples), dtype=np.int32)
        groups = map(self.group.get, samples)
        return _CodeBook().encode(
            [(group is None, name if group is None else group) for name, group in zip(samples, groups, strict=True)]
        )

    def columns(self, samples: Sequence[str]) -> dict[str, tuple[Codes, Sequence[str]]]:
        """Return each kept tag as a code column over `samples` with its sorted values."""
        return {
            key: _sorted_codes([self.tags.get(identifier, {}).get(key, NO_TAG) for identifier in samples])
            for key in self._tag_keys()
        }

    def _tag_keys(self) -> Sequence[str]:
        return sorted({key for texts in self._shared for key, _ in texts}) if self._keys is None else self._keys


def tag_text(value: Any) -> str:
    """Return a tag's value as it is shown in results: JSON's spelling, `(none)` for none."""
    if value is None:
        return NO_TAG
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sorted_codes(texts: Sequence[str]) -> tuple[Codes, Sequence[str]]:
    book = _CodeBook()
    codes = book.encode(texts)
    values, ranks = book.sort()
    return ranks[codes], values


class TableBuilder:
    """Takes rows in any order, some at a time, into code columns over all metrics at once: no row is kept."""

    def __init__(self, tag_keys: Sequence[str] | None = None) -> None:
        self.books = {name: _CodeBook() for name in ("sample", "variant", "metric", "answer", "rule", "reason")}
        self._samples = _SampleBook(tag_keys)
        self._scores: list[dict[str, NDArray[Any]]] = []
        self._trials: list[dict[str, NDArray[Any]]] = []

    def add_samples(self, rows: Iterable[SampleRow]) -> None:
        """Take what groups the samples."""
        self._samples.add(rows)

    def add_scores(self, rows: Sequence[ScoreRow]) -> None:
        """Take scores of any metrics."""
        if not rows:
            return
        sample, variant, repeat, metric, value, answer, rule, reason = zip(*rows, strict=True)
        columns = self._encode(sample=sample, variant=variant, metric=metric, answer=answer, rule=rule, reason=reason)
        columns["repeat"] = _repeats(repeat, rows)
        columns["value"], columns["outcome"] = _values(value, rows)
        self._scores.append(columns)

    def add_trials(self, rows: Sequence[TrialRow]) -> None:
        """Take trials, with or without a reply."""
        if rows:
            sample, variant, repeat, kind = zip(*rows, strict=True)
            self._trials.append(
                self._encode(sample=sample, variant=variant, reason=kind) | {"repeat": _repeats(repeat, rows)}
            )

    def _encode(self, **texts: Sequence[Hashable]) -> dict[str, NDArray[Any]]:
        return {name: self.books[name].encode(column) for name, column in texts.items()}

    def tables(self, expected: Sequence[str] = ()) -> dict[str, ScoreTable]:
        """Split by metric, add the trials without a score, and sort. The metrics `expected` are there even without a score."""
        scores, trials = (
            _join(self._scores, _SCORE_COLUMNS),
            _join(self._trials, ("sample", "variant", "repeat", "reason")),
        )
        self._scores, self._trials = [scores], [trials]
        not_scored = self.books["reason"].code(NOT_SCORED)
        names, ranks = zip(*(self.books[name].sort() for name in _TEXT_COLUMNS), strict=True)
        texts = dict(zip(_TEXT_COLUMNS, names, strict=True))
        rank = dict(zip(_TEXT_COLUMNS, ranks, strict=True))
        shared: dict[str, Any] = {f"{name}s": texts[name] for name in _TEXT_COLUMNS}
        shared |= {
            "cluster_of_sample": self._samples.clusters(texts["sample"]),
            "tags": self._samples.columns(texts["sample"]),
        }
        metrics = {str(name) for name in self.books["metric"] if name is not None} | set(expected)
        tables = {}
        for metric in sorted(metrics):
            columns = _rows_of(self.books["metric"].code(metric), scores)
            columns = _with_missing(columns, trials, len(self.books["variant"]), not_scored)
            columns |= {name: rank[name][columns[name]] for name in _TEXT_COLUMNS}
            tables[metric] = ScoreTable(**shared, metric=metric, **_sort_trials(columns, texts))
        return tables


def _rows_of(metric: int, scores: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    chosen = scores["metric"] == metric
    return {name: column[chosen] for name, column in scores.items() if name != "metric"}


def _with_missing(
    columns: dict[str, NDArray[Any]], trials: dict[str, NDArray[Any]], variants: int, not_scored: int
) -> dict[str, Any]:
    """Add the trials that have no score of this metric: as failed, or as not scored."""
    if not trials["sample"].size:
        return columns
    repeats = 1 + max(int(part["repeat"].max(initial=0)) for part in (trials, columns))
    missing = ~np.isin(_keys(trials, variants, repeats), _keys(columns, variants, repeats))
    failed = trials["reason"][missing] >= 0
    rows = failed.size
    extra = {name: trials[name][missing] for name in ("sample", "variant", "repeat")}
    extra["reason"] = np.where(failed, trials["reason"][missing], not_scored)
    extra["outcome"] = np.where(failed, Outcome.FAILED, Outcome.UNSCORED).astype(np.int8)
    extra |= {"value": np.zeros(rows), "answer": np.full(rows, -1, np.int32), "rule": np.full(rows, -1, np.int32)}
    return {name: np.concatenate([columns[name], extra[name]]) for name in columns}


_TEXT_COLUMNS = ("sample", "variant", "answer", "rule", "reason")
_SCORE_COLUMNS = ("sample", "variant", "metric", "answer", "rule", "reason", "repeat", "value", "outcome")
_DTYPES = {"value": np.float64, "outcome": np.int8}


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def _join(chunks: list[dict[str, NDArray[Any]]], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Join the chunks, column by column, and empty them: a million rows are not held twice."""
    empty = {name: np.empty(0, dtype=_DTYPES.get(name, np.int32)) for name in names}
    return {name: np.concatenate([empty[name], *(chunk.pop(name) for chunk in chunks)]) for name in names}


def _values(column: Sequence[float | None], chunk: Sequence[tuple[Any, ...]]) -> tuple[Floats, NDArray[np.int8]]:
    try:
        values = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"sample {_first_bad(chunk)}: a score must be a number or null") from None
    unscored = np.fromiter((value is None for value in column), dtype=bool, count=len(column))
    bad = ~unscored & ~(np.abs(values) <= LARGEST_VALUE)
    if bad.any():
        row = chunk[int(np.argmax(bad))]
        raise DataError(f"sample {row[0]!r} (variant {row[1]}, repeat {row[2]}): score {row[4]} is not a usable number")
    return np.where(unscored, 0.0, values), unscored.astype(np.int8)


def _first_bad(chunk: Sequence[tuple[Any, ...]]) -> str:
    return next((repr(row[0]) for row in chunk if not isinstance(row[4], (int, float, type(None)))), "?")


def _keys(columns: Mapping[str, NDArray[Any]], variants: int, repeats: int) -> NDArray[np.int64]:
    """Pack (sample, variant, repeat) into one integer."""
    packed: NDArray[np.int64] = (
        columns["sample"].astype(np.int64) * variants + columns["variant"]
    ) * repeats + columns["repeat"]
    return packed


def _repeats(column: Sequence[int], chunk: Sequence[tuple[Any, ...]]) -> Codes:
    try:
        repeats = np.array(column, dtype=np.int32)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"sample {chunk[0][0]!r} or one after it: a repeat must be a whole number") from None
    if repeats.min() < 0:
        raise DataError(f"sample {chunk[int(np.argmin(repeats))][0]!r}: repeat {repeats.min()} is negative")
    return repeats


def _sort_trials(columns: dict[str, NDArray[Any]], texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    order = np.lexsort((columns["repeat"], columns["variant"], columns["sample"]))
    columns = {name: column[order] for name, column in columns.items()}
    same = np.flatnonzero(
        (np.diff(columns["sample"]) == 0) & (np.diff(columns["variant"]) == 0) & (np.diff(columns["repeat"]) == 0)
    )
    if same.size:
        row = int(same[0])
        name, variant = texts["sample"][columns["sample"][row]], texts["variant"][columns["variant"][row]]
        raise DataError(
            f"sample {name!r}, variant {variant!r}, repeat {columns['repeat'][row]} was scored twice: remove one of the rows"
        )
    return columns

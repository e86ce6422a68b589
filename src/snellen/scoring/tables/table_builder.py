"""Rows of scored trials in, one `ScoreTable` a metric out.

Texts become codes by the sorted order of what was seen, rows are sorted by (sample, variant, repeat): so nothing
downstream can depend on the order in which trials finished or were read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.text import NO_TAG, tag_text
from ...stats.intervals import Floats
from .table import Codes, Outcome, ScoreTable, grade, is_unread, worst_value

Labels = tuple[tuple[str, str], ...]
"""The tags of a sample as texts."""
Block = NDArray[np.bytes_]
WIDEST = 64
"""Bytes: longer names are kept as texts, as a block is as wide as its longest."""
LISTED = 200_000
"""So many names are given as a list, which is quicker to read."""
AT_ONCE = 4_096


class CodeBook(dict[Hashable, int]):
    """Gives every new text the next number; None is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def code(self, key: Hashable) -> int:
        """Return the number of one text."""
        return self.setdefault(key, len(self) - 1)

    def learn(self, keys: Iterable[Hashable]) -> None:
        """Give numbers to those that have none yet, in their order."""
        new = [key for key in dict.fromkeys(keys) if key not in self]
        self.update(zip(new, count(len(self) - 1), strict=False))

    def encode(self, column: Sequence[Hashable]) -> Codes:
        """Return the numbers of a column."""
        try:
            return np.fromiter(map(self.__getitem__, column), dtype=np.int32, count=len(column))
        except KeyError:
            self.learn(column)
            return np.fromiter(map(self.__getitem__, column), dtype=np.int32, count=len(column))

    def texts(self) -> list[Any]:
        """Return what has a number, in the order of the numbers."""
        return list(self)[1:]

    def sort(self) -> tuple[Sequence[str], Codes]:
        """Return the texts in sorted order, and old code -> rank (the last entry maps -1 to itself)."""
        texts = [str(key) for key in self if key is not None]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        return [texts[i] for i in order], ranks_of(np.array(order, np.int64))


def ranks_of(order: NDArray[np.int64]) -> Codes:
    """Return old code -> rank; the last entry maps -1 to itself."""
    ranks = np.empty(order.size + 1, dtype=np.int32)
    ranks[order] = np.arange(order.size, dtype=np.int32)
    ranks[-1] = -1
    return ranks


def sorted_codes(texts: Sequence[str]) -> tuple[Codes, Sequence[str]]:
    """Return a code for each text, and the texts that were seen, sorted."""
    book = CodeBook()
    codes = book.encode(texts)
    values, ranks = book.sort()
    return ranks[codes], values


class PackedTexts(Sequence[str]):
    """Texts in one block of bytes, each of which is made when it is asked for."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __len__(self) -> int:
        return int(self.block.size)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return list(texts_in(self.block[place]))
        return bytes(self.block[place]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return texts_in(self.block)


def texts_in(block: Block) -> Iterator[str]:
    """Yield the texts of a block, some made at a time."""
    for start in range(0, block.size, AT_ONCE):
        yield from (text.decode("utf-8", "surrogatepass") for text in block[start : start + AT_ONCE].tolist())


class SamplePart(NamedTuple):
    """The samples of one part of a task, in the order of their codes."""

    names: Block | list[str]
    """A list where a block could not tell them apart (a NUL ends a name there), or would be wide."""
    groups: Codes
    """-1: none."""
    group_texts: list[str]
    labels: Codes
    label_sets: list[Labels]

    @classmethod
    def of(cls, names: Sequence[str], groups: Sequence[str | None], labels: Sequence[Labels]) -> SamplePart:
        """Pack the samples of a part."""
        group_book, label_book = CodeBook(), CodeBook()
        codes = group_book.encode(groups), label_book.encode(labels)
        return cls(pack_names(names), codes[0], group_book.texts(), codes[1], label_book.texts())


def pack_names(names: Sequence[str]) -> Block | list[str]:
    """Return names as a block whose order is theirs: that of UTF-8 is that of the characters."""
    content = [name.encode("utf-8", "surrogatepass") for name in names]
    width = max(map(len, content), default=1)
    if width > WIDEST or b"\0" in b"".join(content):
        return list(names)
    return np.array(content, dtype=f"S{max(1, width)}")


class PackedSamples:
    """All samples of a task that came in parts."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[SamplePart] = []
        self._groups, self._labels = CodeBook(), CodeBook()

    def add(self, part: SamplePart) -> int:
        """Take the samples of a part; return the code of its first."""
        groups = mapped(self._groups.encode(part.group_texts), part.groups)
        labels = mapped(self._labels.encode(part.label_sets), part.labels)
        self._parts.append(part._replace(groups=groups, labels=labels, group_texts=[], label_sets=[]))
        self.size += groups.size
        return self.size - groups.size

    def names(self) -> Iterator[str]:
        """Yield every name, in the order of the codes."""
        for part in self._parts:
            yield from part.names if isinstance(part.names, list) else texts_in(part.names)

    def sort(self) -> tuple[Sequence[str], NDArray[np.int64]]:
        """Return the names sorted, and the code of each; a name that two parts have is refused."""
        blocks = [part.names for part in self._parts if not isinstance(part.names, list)]
        texts: Sequence[str]
        if len(blocks) == len(self._parts):
            block = np.concatenate(blocks)
            order = np.argsort(block, kind="stable")
            block = block[order]
            twice = np.flatnonzero(block[1:] == block[:-1])
            texts = PackedTexts(block) if block.size > LISTED else list(texts_in(block))
        else:
            known = list(self.names())
            order = np.array(sorted(range(len(known)), key=known.__getitem__), np.int64)
            texts = [known[place] for place in order]
            twice = np.array([place for place in range(len(texts) - 1) if texts[place] == texts[place + 1]], np.int64)
        if twice.size:
            raise DataError(
                f"sample {texts[int(twice[0])]!r} is in two parts of the run: its rows are not what was written"
            )
        return texts, order

    def clusters(self, order: NDArray[np.int64]) -> Codes:
        """Return a cluster code for each sample: its group, or itself; numbered as they are met."""
        own = np.arange(order.size, dtype=np.int32)
        if len(self._groups) == 1:
            return own
        groups = np.concatenate([part.groups for part in self._parts])[order]
        keys = np.where(groups >= 0, groups.astype(np.int64), own.astype(np.int64) + len(self._groups))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return np.asarray(ranks_of(np.argsort(first, kind="stable"))[:-1][inverse], dtype=np.int32)

    def columns(
        self, order: NDArray[np.int64], keys: Sequence[str] | None = None
    ) -> dict[str, tuple[Codes, Sequence[str]]]:
        """Return each tag as a code column over the sorted samples with its sorted values."""
        sets: list[dict[str, str]] = [dict(labels) for labels in self._labels.texts()]
        codes = np.concatenate([part.labels for part in self._parts])[order]
        found: dict[str, tuple[Codes, Sequence[str]]] = {}
        for key in sorted({key for labels in sets for key in labels}) if keys is None else keys:
            own, values = sorted_codes([labels.get(key, NO_TAG) for labels in sets])
            found[key] = own[codes], values
        return found

    def grouped(self, order: NDArray[np.int64]) -> tuple[Codes, Sequence[str]] | None:
        """Return the group of each sorted sample as a code, with the sorted groups; None where none has one."""
        if len(self._groups) == 1:
            return None
        texts, ranks = self._groups.sort()
        return ranks[np.concatenate([part.groups for part in self._parts])[order]], texts


def fewest_bytes(codes: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in as few bytes as they need: ten million trials have a dozen columns."""
    low, high = (int(codes.min()), int(codes.max())) if codes.size else (0, 0)
    kinds = (np.int8, np.int16, np.int32, np.int64)
    kind = next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return codes.astype(kind, copy=False)


def mapped(table: Codes, codes: NDArray[Any]) -> Codes:
    """Return codes of one book as codes of another; -1 stays."""
    return np.asarray(np.append(table, np.int32(-1))[codes], dtype=np.int32)


def codes_in(book: Mapping[Hashable, int], texts: Sequence[str]) -> NDArray[np.int64]:
    """Return which code each text has in a book; -1 where it has none."""
    return np.fromiter((book.get(text, -1) for text in texts), np.int64, len(texts))


ScoreRow = tuple[str, str, int, str, float | None, str | None, str | None, str | None]
"""sample, variant, repeat, metric, value, answer, rule, reason: the columns of table `scores`."""
TrialRow = tuple[str, str, int, str | None] | tuple[str, str, int, str | None, int]
"""sample, variant, repeat, kind of failure (None: it has a reply), and its row in table `predictions` if it has one."""
SampleRow = tuple[str, str | None, Mapping[str, Any]]
"""id, group, tags: from the bodies of table `samples`."""
Keys = NDArray[np.int64]
"""(sample, variant, repeat) in one number each, so that sorting and joining trials is sorting and joining numbers."""

LARGEST_VALUE = 1e100
_CHUNK = 1_024
"""Rows read before they become codes: so many stay in the cache, sixty-four times as many are a sixth slower."""
_TEXT_COLUMNS = ("sample", "variant", "answer", "rule", "reason")
_SCORE_COLUMNS = ("sample", "variant", "metric", "answer", "rule", "reason", "repeat", "value")
_TRIAL_COLUMNS = ("sample", "variant", "repeat", "reason", "row")
_DTYPES = {"value": np.float64, "row": np.int64}


def read_tables(
    scores: Iterable[ScoreRow],
    trials: Iterable[TrialRow] = (),
    samples: Iterable[SampleRow] = (),
    *,
    tag_keys: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
) -> dict[str, ScoreTable]:
    """Build one table a metric from the rows of one task.

    Every trial named in `trials` is in every table: a failed one as failed, one without a score as pending. Only tags
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


class PartColumns(NamedTuple):
    """The rows of some samples, coded by books of their own: small enough to be sent, and joined with others."""

    texts: dict[str, list[str]]
    """The books, but that of samples."""
    samples: SamplePart
    scores: dict[str, NDArray[Any]]
    trials: dict[str, NDArray[Any]]


class TableBuilder:
    """Takes rows in any order, some at a time, into code columns over all metrics at once: no row is kept."""

    def __init__(self, tag_keys: Sequence[str] | None = None) -> None:
        self.books = {name: CodeBook() for name in (*_TEXT_COLUMNS, "metric")}
        self._tag_keys = tag_keys
        self._groups: dict[str, str] = {}
        self._labels: dict[str, Labels] = {}
        self._shared: dict[Labels, Labels] = {}
        """Equal tags are kept once."""
        self._packed = PackedSamples()
        self._scores: list[dict[str, NDArray[Any]]] = []
        self._trials: list[dict[str, NDArray[Any]]] = []

    def name_samples(self, names: Iterable[str]) -> None:
        """Number samples in the order in which they are named here, whichever row of theirs comes first."""
        self.books["sample"].learn(names)

    def add_samples(self, rows: Iterable[SampleRow]) -> None:
        """Take the group and the tags of samples."""
        for name, group, tags in rows:
            if group is not None:
                self._groups[name] = group
            if tags:
                texts = tuple((key, tag_text(value)) for key, value in tags.items())
                self._labels[name] = self._shared.setdefault(texts, texts)

    def add_scores(self, rows: Sequence[ScoreRow]) -> None:
        """Take scores of any metrics."""
        if rows:
            self._name_samples()
            sample, variant, repeat, metric, value, answer, rule, reason = zip(*rows, strict=True)
            texts = {"sample": sample, "variant": variant, "metric": metric}
            texts |= {"answer": answer, "rule": rule, "reason": reason}
            self._scores.append(self._encode(texts, repeat=_repeats(repeat, rows), value=_values(value, rows)))

    def add_trials(self, rows: Sequence[TrialRow]) -> None:
        """Take trials, with or without a reply; all of a task have a row in the store, or none."""
        if rows:
            sample, variant, repeat, kind, *stored = zip(*rows, strict=True)
            texts = {"sample": sample, "variant": variant, "reason": kind}
            row = np.array(stored[0] if stored else (), np.int64)
            self._trials.append(self._encode(texts, repeat=_repeats(repeat, rows), row=row))

    def _pack_named(self) -> None:
        """Put samples that came by name behind those of the parts: their codes are their places."""
        named = self.books["sample"].texts()
        if len(named) > self._packed.size or not self._packed.size:
            self._packed.add(self._part_of(named[self._packed.size :]))

    def _part_of(self, names: Sequence[str]) -> SamplePart:
        """Return some samples that came by name, packed."""
        groups, labels = [self._groups.get(name) for name in names], [self._labels.get(name, ()) for name in names]
        return SamplePart.of(names, groups, labels)

    def packed(self) -> PartColumns:
        """Return all that was taken as one part, for another builder."""
        samples = self._part_of(self.books["sample"].texts())
        texts = {name: book.texts() for name, book in self.books.items() if name != "sample"}
        joined = _join(self._scores, _SCORE_COLUMNS), _join(self._trials, _TRIAL_COLUMNS)
        self._scores, self._trials = [], []
        return PartColumns(texts, samples, *joined)

    def absorb(self, part: PartColumns) -> None:
        """Take a part; its samples are in no other."""
        self._pack_named()
        first = self._packed.add(part.samples)
        maps = {name: self.books[name].encode(texts) for name, texts in part.texts.items()}
        for columns, taken in ((part.scores, self._scores), (part.trials, self._trials)):
            coded = {name: mapped(maps[name], codes) if name in maps else codes for name, codes in columns.items()}
            coded["sample"] = columns["sample"] + np.int32(first)
            taken.append({name: codes if name == "value" else fewest_bytes(codes) for name, codes in coded.items()})

    def _name_samples(self) -> None:
        """Make samples that came in parts known by name: scores that come by name name them."""
        book = self.books["sample"]
        if self._packed.size > len(book) - 1:
            book.encode(list(self._packed.names()))

    def _sorted_samples(self) -> tuple[tuple[Sequence[str], Codes], dict[str, Any]]:
        """Return the samples in sorted order with the rank of each code, and what groups them."""
        packed = self._packed
        self._pack_named()
        texts, order = packed.sort()
        labels = {"cluster_of_sample": packed.clusters(order), "tags": packed.columns(order, self._tag_keys)}
        return (texts, ranks_of(order)), labels | {"groups": packed.grouped(order)}

    def _encode(self, texts: Mapping[str, Any], **numbers: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {name: self.books[name].encode(column) for name, column in texts.items()} | numbers

    def tables(self, expected: Sequence[str] = ()) -> dict[str, ScoreTable]:
        """Join scores and trials, one table a metric; the metrics `expected` are there even without a score."""
        scores, trials = _join(self._scores, _SCORE_COLUMNS), _join(self._trials, _TRIAL_COLUMNS)
        self._scores, self._trials = [scores], [trials]
        metrics = {str(name) for name in self.books["metric"] if name is not None} | set(expected)
        named, labels = self._sorted_samples()
        ranked = {name: self.books[name].sort() for name in _TEXT_COLUMNS if name != "sample"}
        join = _Join(ranked | {"sample": named}, scores, trials)
        shared: dict[str, Any] = labels | {f"{name}s": join.texts[name] for name in _TEXT_COLUMNS}
        codes = {metric: self.books["metric"].code(metric) for metric in sorted(metrics)}
        return {metric: ScoreTable(metric=metric, **shared, **join.columns(metric, codes[metric])) for metric in codes}


class _Rows(NamedTuple):
    """Trials in their canonical order: what they have without any score."""

    keys: Keys
    reason: Codes
    """The kind of failure; -1 where there is a reply."""
    row: NDArray[np.int64]


class _Join:
    """The scores of every metric laid beside the trials they belong to."""

    def __init__(
        self,
        ranked: Mapping[str, tuple[Sequence[str], Codes]],
        scores: Mapping[str, NDArray[Any]],
        trials: Mapping[str, NDArray[Any]],
    ) -> None:
        self.texts = {name: texts for name, (texts, _) in ranked.items()}
        self._ranks = {name: ranks for name, (_, ranks) in ranked.items()}
        self._variants = max(1, len(self.texts["variant"]))
        self._repeats = 1 + max(int(part["repeat"].max(initial=0)) for part in (trials, scores))
        self._scores, keys = scores, self._pack(trials)
        order = np.argsort(keys, kind="stable")
        row = trials["row"][order] if trials["row"].size else trials["row"]
        self._trials = _Rows(keys[order], self._ranks["reason"][trials["reason"]][order], row)
        self._refuse(self._trials.keys[1:][np.diff(self._trials.keys) == 0])
        self._unpacked = self._unpack(self._trials.keys)

    def _pack(self, columns: Mapping[str, NDArray[Any]]) -> Keys:
        packed: Keys = self._ranks["sample"][columns["sample"]].astype(np.int64)  # then in place: a million are 8 MB
        packed *= self._variants
        packed += self._ranks["variant"][columns["variant"]]
        packed *= self._repeats
        packed += columns["repeat"]
        return packed

    def _unpack(self, keys: Keys) -> dict[str, Codes]:
        repeat, prompt = (keys % self._repeats).astype(np.int32), keys // self._repeats
        variant = (prompt % self._variants).astype(np.int32)
        prompt //= self._variants
        return {"sample": prompt.astype(np.int32), "variant": variant, "repeat": repeat}

    def columns(self, metric: str, code: int) -> dict[str, Any]:
        """Return the columns of one metric: its scores, and every trial without one as failed or pending."""
        is_chosen = self._scores["metric"] == code
        chosen = slice(None) if is_chosen.all() else np.flatnonzero(is_chosen)  # one metric alone is not copied
        keys = self._pack({name: self._scores[name][chosen] for name in ("sample", "variant", "repeat")})
        trials, own, place = self._trials, self._unpacked, np.searchsorted(self._trials.keys, keys)
        if not (trials.keys.size and np.array_equal(trials.keys.take(place, mode="clip"), keys)):
            trials = self._with(keys)
            own, place = self._unpack(trials.keys), np.searchsorted(trials.keys, keys)
        del keys  # of a million scores: 8 MB
        self._refuse(trials.keys[np.flatnonzero(np.bincount(place) > 1)])
        kinds = np.where(trials.reason >= 0, np.int8(Outcome.FAILED), np.int8(Outcome.PENDING))
        columns = {"value": np.zeros(kinds.size), "outcome": kinds, "reason": trials.reason.copy()}
        columns |= {name: np.full(kinds.size, -1, np.int32) for name in ("answer", "rule")}
        values = self._scores["value"][chosen]
        columns["value"][place], columns["outcome"][place] = np.nan_to_num(values), grade(values, metric)
        for name in ("answer", "rule", "reason"):
            columns[name][place] = self._ranks[name][self._scores[name][chosen]]
        self._settle_unread(columns, metric)
        return own | columns | {"row": trials.row}

    def _settle_unread(self, columns: dict[str, NDArray[Any]], metric: str) -> None:
        """Give replies without a readable answer the worst value; those nobody can judge are outside."""
        unread = np.flatnonzero(columns["outcome"] == Outcome.UNREAD)
        of_reply = np.array([is_unread(reason) for reason in self.texts["reason"]] + [True])[columns["reason"][unread]]
        columns["outcome"][unread[~of_reply]] = Outcome.UNJUDGED
        columns["value"][unread[of_reply]] = worst_value(metric) or 0.0

    def _with(self, keys: Keys) -> _Rows:
        """Return the trials and those that only a score names."""
        trials, extra = self._trials, np.setdiff1d(keys, self._trials.keys)
        joined = np.concatenate([trials.keys, extra])
        order = np.argsort(joined, kind="stable")
        reason = np.concatenate([trials.reason, np.full(extra.size, -1, np.int32)])
        row = np.concatenate([trials.row, np.full(extra.size, -1)])[order] if trials.row.size else trials.row
        return _Rows(joined[order], reason[order], row)

    def _refuse(self, twice: Keys) -> None:
        """Raise for trials that were given twice."""
        if twice.size:
            row = {name: int(column[0]) for name, column in self._unpack(twice[:1]).items()}
            name, variant = self.texts["sample"][row["sample"]], self.texts["variant"][row["variant"]]
            raise DataError(
                f"sample {name!r}, variant {variant!r}, repeat {row['repeat']} was scored twice: remove one of the rows"
            )


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def _join(chunks: list[dict[str, NDArray[Any]]], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Join the chunks, column by column, and empty them: a million rows are not held twice."""
    if not chunks:
        return {name: np.empty(0, dtype=_DTYPES.get(name, np.int32)) for name in names}
    return {name: np.concatenate([chunk.pop(name) for chunk in chunks]) for name in names}


def _values(column: Sequence[float | None], chunk: Sequence[tuple[Any, ...]]) -> Floats:
    """Return the values of scores; NaN stands for none and for nothing else."""
    try:
        values = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"sample {_first_bad(chunk)}: a score must be a number or null") from None
    bad = [place for place in np.flatnonzero(~(np.abs(values) <= LARGEST_VALUE)).tolist() if column[place] is not None]
    if bad:
        row = chunk[bad[0]]
        raise DataError(f"sample {row[0]!r} (variant {row[1]}, repeat {row[2]}): score {row[4]} is not a usable number")
    return values


def _first_bad(chunk: Sequence[tuple[Any, ...]]) -> str:
    return next((repr(row[0]) for row in chunk if not isinstance(row[4], (int, float, type(None)))), "?")


def _repeats(column: Sequence[int], chunk: Sequence[tuple[Any, ...]]) -> Codes:
    try:
        repeats = np.array(column, dtype=np.int32)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"sample {chunk[0][0]!r} or one after it: a repeat must be a whole number") from None
    if repeats.min() < 0:
        raise DataError(f"sample {chunk[int(np.argmin(repeats))][0]!r}: repeat {repeats.min()} is negative")
    return repeats

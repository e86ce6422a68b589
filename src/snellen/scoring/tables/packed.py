"""The samples of large tasks without an object each: names as one block of bytes, groups and tags as codes.

Parts of a task come one after the other, each with samples that no other has; so a sample's code is its place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.text import NO_TAG
from .table import Codes

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
            return list(PackedTexts(self.block[place]))
        return bytes(self.block[place]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), AT_ONCE):
            yield from (text.decode("utf-8", "surrogatepass") for text in self.block[start : start + AT_ONCE].tolist())


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
            yield from part.names if isinstance(part.names, list) else PackedTexts(part.names)

    def sort(self) -> tuple[Sequence[str], NDArray[np.int64]]:
        """Return the names sorted, and the code of each; a name that two parts have is refused."""
        blocks = [part.names for part in self._parts if not isinstance(part.names, list)]
        texts: Sequence[str]
        if len(blocks) == len(self._parts):
            block = np.concatenate(blocks)
            order = np.argsort(block, kind="stable")
            block = block[order]
            twice = np.flatnonzero(block[1:] == block[:-1])
            packed = PackedTexts(block)
            texts = packed if len(packed) > LISTED else packed[:]
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

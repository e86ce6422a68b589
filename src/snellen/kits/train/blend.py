"""Several sources by weight to one prepared file: read once, checked, counted; rows are opened at their turn."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from os.path import isfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.errors import DataError, UsageError
from ...core.ids import derive_seed, sha256_hex
from ...core.text import plural
from .chains import Chain
from .rationale_facts import is_reasoned

CHAINS_FILE, ORDER_FILE, COUNTS_FILE = "chains.jsonl", "order.npy", "counts.json"
LISTED = 3
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Chain).decode


class SourceCount(Struct, frozen=True):
    """What one source brought."""

    path: str
    weight: float
    records: int
    rows: int
    """Rows of an epoch: the records, times the weight."""
    rationales: int
    sha256: str


class BlendCounts(Struct, frozen=True):
    """What the prepared data holds; `sha256` names the content of all chains and their order."""

    sources: tuple[SourceCount, ...]
    rows: int
    rationales: int
    pictures: int
    missing: int
    sha256: str


class Blended(Struct, frozen=True):
    """One source: where it came from, how often it is shown, and what reads it."""

    path: str
    weight: float
    read: Callable[[], Iterator[Chain]]


def prepare_chains(
    sources: Sequence[Blended], folder: Path, *, seed: int, allow_missing: bool = False, need_reply: bool = True
) -> BlendCounts:
    """Write all chains into `folder`, each once, and the order in which an epoch shows them; whole or not at all.

    A weight of 2 shows every record twice, 0.5 a half drawn by the seed: of each record alone, so nothing is held.
    """
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{CHAINS_FILE}.part"
    order: list[int] = []
    pictures = _Pictures()
    with part.open("wb") as stream:
        writer = _Writer(stream, pictures, order, need_reply)
        counted = [writer.take(source, seed) for source in sources]
    if pictures.missing and not allow_missing:
        named = "; ".join(pictures.named)
        part.unlink()
        raise DataError(f"{plural(pictures.missing, 'picture')} missing ({named}); add them, or --allow-missing-images")
    if not order:
        part.unlink()
        raise UsageError(f"nothing to train on: {', '.join(source.path for source in sources)} brought no row")
    part.replace(folder / CHAINS_FILE)
    places = np.asarray(order, dtype=np.int64)
    np.save(folder / ORDER_FILE, places)
    named = sha256_hex(b"".join(count.sha256.encode() for count in counted) + places.tobytes())
    rationales = sum(count.rationales for count in counted)
    counts = BlendCounts(tuple(counted), len(order), rationales, pictures.found, pictures.missing, named[:16])
    (folder / COUNTS_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(counts), indent=1) + b"\n")
    return counts


class _Pictures:
    """Which pictures are there; each path is looked at once."""

    def __init__(self) -> None:
        self._seen: dict[str, bool] = {}
        self.missing, self.named = 0, list[str]()

    @property
    def found(self) -> int:
        return len(self._seen) - self.missing

    def all_there(self, chain: Chain) -> bool:
        there = [self._is_there(image.ref, chain.id) for image in chain.pictures]  # all of them are counted
        return all(there)

    def _is_there(self, ref: str, where: str) -> bool:
        if ref.startswith("data:"):
            return True
        if ref not in self._seen:
            self._seen[ref] = isfile(ref)  # noqa: PTH113 - a Path a picture would cost more than the look
            if not self._seen[ref]:
                self.missing += 1
                if len(self.named) < LISTED:
                    self.named.append(f"{ref} of {where}")
        return self._seen[ref]


class _Writer:
    """Chains to lines, and each line's place in the order as often as its weight says."""

    def __init__(self, stream: io.BufferedWriter, pictures: _Pictures, order: list[int], need_reply: bool) -> None:
        self._stream, self._pictures, self._order, self._need_reply = stream, pictures, order, need_reply
        self._lines = 0

    def take(self, source: Blended, seed: int) -> SourceCount:
        if not source.weight > 0:
            raise UsageError(f"--data {source.path}: weight {source.weight} shows nothing; give a number above 0")
        digest, tally, before = hashlib.sha256(), Counter[str](), len(self._order)
        for chain in source.read():
            if self._need_reply and not chain.reply.strip():
                raise DataError(f"{chain.id}: the reply is empty; give it a text or take the record out")
            line = _encode(chain) + b"\n"
            digest.update(line)
            tally["records"] += 1
            if not self._pictures.all_there(chain):
                continue
            tally["rationales"] += is_reasoned(chain.reply)
            self._stream.write(line)
            self._order.extend([self._lines] * _times(source.weight, seed, chain.id))
            self._lines += 1
        rows = len(self._order) - before
        named = digest.hexdigest()[:16]
        return SourceCount(source.path, source.weight, tally["records"], rows, tally["rationales"], named)


def _times(weight: float, seed: int, name: str) -> int:
    whole, rest = int(weight), weight % 1.0
    return whole + (rest > 0 and derive_seed(seed, name, "weight") / 2**64 < rest)


class PreparedChains:
    """The prepared file, read line by line at its place; only the places of lines are held."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CHAINS_FILE
        self._stream: io.BufferedReader | None = None
        try:
            self.order: NDArray[np.int64] = np.load(folder / ORDER_FILE)
            with self._path.open("rb") as lines:
                lengths = np.fromiter(map(len, lines), dtype=np.int64)
        except OSError as error:
            raise DataError(f"{folder} holds no prepared chains: {error.strerror}") from None
        self._starts = np.fromiter(accumulate(lengths, initial=0), dtype=np.int64)[:-1]

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, place: int) -> Chain:
        if self._stream is None:
            self._stream = self._path.open("rb")
        self._stream.seek(int(self._starts[place]))
        return _decode(self._stream.readline())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker needs: the file is opened by each for itself."""
        return {**self.__dict__, "_stream": None}

    def close(self) -> None:
        """Close the file; it opens again when read."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class RowMaker:
    """Places of an epoch to rows of a trainer, pictures opened now and not before."""

    def __init__(self, chains: PreparedChains, make: Callable[[Chain], dict[str, Any]]) -> None:
        self._chains, self._make = chains, make

    def __call__(self, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        """Return the columns of some rows."""
        rows = [self._make(self._chains[place]) for place in batch["place"]]
        return {name: [row[name] for row in rows] for name in rows[0]}

"""Training chains and a benchmark's samples to what they share: the same file, a picture alike, a passage of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as joined
from typing import NamedTuple

import numpy as np
import PIL.Image
from msgspec import Struct
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.ids import sha256_hex
from ...core.types import Image, Sample
from ...data.images.decode import decode, read_bytes
from .chains import Chain
from .rationale_facts import words_of

MOST_BITS = 8
MOST_LEVELS = 10.0
"""Of 256: mean difference of the thumbnails."""
BLOCK = 512


class PictureMark(NamedTuple):
    """One picture's fingerprints."""

    name: str
    sha256: str
    signs: int
    thumbnail: NDArray[np.float32]


def mark_picture(name: str, image: Image) -> PictureMark:
    """Return the fingerprints of a picture as it lies on the disk, without its edits."""
    data = read_bytes(image)
    picture = decode(data, image.ref).convert("RGB")
    grey = np.asarray(picture.convert("L").resize((9, 8), PIL.Image.Resampling.BOX), dtype=np.int16)
    bits = (grey[:, 1:] > grey[:, :-1]).ravel()
    small = np.asarray(picture.resize((8, 8), PIL.Image.Resampling.BOX), dtype=np.float32).ravel()
    return PictureMark(name, sha256_hex(data), int(np.packbits(bits).view(">u8")[0]), small)


def near_pairs(taught: Sequence[PictureMark], tested: Sequence[PictureMark]) -> Iterator[tuple[int, int]]:
    """Yield the places (taught, tested) of pictures that look alike; equal files are not looked for here."""
    if not taught or not tested:
        return
    signs = np.asarray([mark.signs for mark in tested], dtype=np.uint64)
    thumbnails = np.stack([mark.thumbnail for mark in tested])
    for start in range(0, len(taught), BLOCK):
        block = taught[start : start + BLOCK]
        mine = np.asarray([mark.signs for mark in block], dtype=np.uint64)
        apart = np.bitwise_count(mine[:, None] ^ signs[None, :])
        for row, column in np.argwhere(apart <= MOST_BITS):
            levels = np.abs(block[row].thumbnail - thumbnails[column]).mean()
            if levels <= MOST_LEVELS:
                yield start + int(row), int(column)


PASSAGE = 13
"""Words in a row that two texts do not share by chance."""
LEAST_SHARE, LEAST_PASSAGES = 0.5, 5
"""Of a test item's own passages, how many stand in one training text: the half of few, or a row of seventeen words."""
COMMON_SHARE, COMMON_ITEMS = 0.02, 3
"""A passage in more of a benchmark's items than this is its wording, not its content."""


class Overlap(Struct, frozen=True):
    """One thing that training data and a benchmark share."""

    kind: str
    """`same picture`, `near picture` or `text`."""
    taught: str
    tested: str
    task: str


def picture_marks(named: Iterable[tuple[str, Image]]) -> tuple[list[PictureMark], list[str]]:
    """Return the fingerprints of all pictures, each file once, and what could not be read."""
    marks: list[PictureMark] = []
    unread: list[str] = []
    seen: set[str] = set()
    for name, image in named:
        if image.ref in seen:
            continue
        seen.add(image.ref)
        try:
            marks.append(mark_picture(name, image))
        except DataError as error:
            unread.append(str(error))
    return marks, unread


def shared_pictures(taught: Sequence[PictureMark], tested: Sequence[PictureMark], task: str) -> Iterator[Overlap]:
    """Yield equal files first, then pictures that look alike."""
    by_content = {mark.sha256: mark.name for mark in reversed(taught)}  # the first of equal ones is named
    equal: set[str] = set()
    for mark in tested:
        if mark.sha256 in by_content:
            equal.add(mark.name)
            yield Overlap("same picture", by_content[mark.sha256], mark.name, task)
    for mine, theirs in near_pairs(taught, tested):
        if tested[theirs].name not in equal:
            equal.add(tested[theirs].name)
            yield Overlap("near picture", taught[mine].name, tested[theirs].name, task)


def shared_texts(taught: Iterable[Chain], tested: Iterable[Sample], task: str) -> Iterator[Overlap]:
    """Yield test items whose own words stand in a row in a training text, or half of whose own passages do."""
    own = _own_passages({sample.id: _passages(_text_of(sample)) for sample in tested})
    holders: dict[int, list[str]] = {}
    for name, passages in own.items():
        for passage in passages:
            holders.setdefault(passage, []).append(name)
    said: set[str] = set()
    for chain in taught:
        hits = Counter(name for one in _passages(_taught_text(chain)) for name in holders.get(one, ()))
        for name, count in hits.items():
            if count >= min(LEAST_SHARE * len(own[name]), LEAST_PASSAGES) and name not in said:
                said.add(name)
                yield Overlap("text", chain.id, name, task)


def _own_passages(items: dict[str, set[int]]) -> dict[str, set[int]]:
    """Return of each item the passages that are not the wording of the whole benchmark."""
    found_in = Counter(joined.from_iterable(items.values()))
    most = max(COMMON_ITEMS, COMMON_SHARE * len(items))
    return {name: {one for one in passages if found_in[one] <= most} for name, passages in items.items()}


def _text_of(sample: Sample) -> str:
    return " ".join([sample.question, *sample.options, *(turn.text for turn in sample.turns)])


def _taught_text(chain: Chain) -> str:
    return " ".join([*(turn.text for turn in chain.turns), chain.reply])


def _passages(text: str) -> set[int]:
    words = words_of(text)
    return {hash(tuple(words[at : at + PASSAGE])) for at in range(len(words) - PASSAGE + 1)}

"""Training chains and a benchmark's samples to what they share: the same file, a picture alike, a passage of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as joined

from msgspec import Struct

from ..core.errors import DataError
from ..core.types import Image, Sample
from .chains import Chain
from .near_pictures import PictureMark, mark_picture, near_pairs
from .rationale_facts import words_of

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

"""The CURE annotation file to checked records: image, boxes, clue, six inferences, a chain of sub-questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError

LOOKED_AT_BYTES = 65_536
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CureImage(Struct, frozen=True):
    """Where the picture was and its size in px."""

    url: str
    width: int
    height: int


class CureBox(Struct, frozen=True):
    """A region in px of the original picture."""

    left: float
    top: float
    width: float
    height: float


class CureChoice(Struct, frozen=True):
    """Candidates and the place of the right one, from 0."""

    candidate: list[str]
    gt: int


class CureStep(CureChoice, frozen=True, kw_only=True):
    """One sub-question."""

    question: str


class CureChain(Struct, frozen=True):
    """The chain of sub-questions, from recognition to cognition."""

    chain: list[CureStep]
    total_step: int | None = None


class CureItem(Struct, frozen=True):
    """One item of the file. It has no id of its own: the place in the file is its name."""

    image: CureImage
    bboxes: list[CureBox]
    inference: CureChoice
    cot_inference: CureChain
    clue: str = ""


def is_cure_file(path: Path) -> bool:
    """Tell by its beginning whether a file holds items of this kind."""
    with path.open("rb") as stream:
        head = stream.read(LOOKED_AT_BYTES)
    return b'"cot_inference"' in head and b'"bboxes"' in head


def read_items(path: Path) -> Iterator[CureItem]:
    """Yield the items of a file that is one JSON array (also when its name says JSONL) or one object a line."""
    for number, value in enumerate(_read_values(path)):
        where = f"{path.name} item {number}"
        try:
            item = msgspec.convert(value, CureItem)
        except msgspec.ValidationError as error:
            raise DataError(f"{where}: {error}") from None
        _check(item, where)
        yield item


def _read_values(path: Path) -> list[Any]:
    try:
        data = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        fix = "give the annotation file with -p dataset.path=FILE"
        raise DataError(f"cannot read {path}: {error.strerror}; {fix}") from None
    try:
        if data.lstrip()[:1] == b"[":
            return msgspec.json.decode(data, type=list[Any])
        return [msgspec.json.decode(line) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} is neither a JSON array nor one JSON object a line: {error}") from None


def _check(item: CureItem, where: str) -> None:
    chain = item.cot_inference.chain
    if not chain:
        raise DataError(f"{where}: the chain is empty")
    if item.image.width <= 0 or item.image.height <= 0:
        raise DataError(f"{where}: the picture is {item.image.width}×{item.image.height} px")
    steps = ((f"step {place}", step) for place, step in enumerate(chain, 1))
    for name, choice in (("inference", item.inference), *steps):
        size = len(choice.candidate)
        if not 0 <= choice.gt < size:
            raise DataError(f"{where}: {name} has gt {choice.gt} and {size} candidates; gt counts from 0")

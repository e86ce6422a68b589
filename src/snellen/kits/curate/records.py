"""The records of the workshop: a coarse annotation, a drafted item, and what gates and people said about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...core.errors import DataError, UsageError
from ...core.ids import rng
from ...core.types import Image

CANDIDATES = 6
FEWEST_STEPS, MOST_STEPS = 2, 4
INFERENCE = "inference"

T = TypeVar("T")


class Source(Struct, frozen=True, omit_defaults=True):
    """One coarse annotation: a region of a picture, what is seen there, what it tells."""

    id: str
    image: str
    clue: str
    inference: str
    box: tuple[float, float, float, float] | None = None
    """Left, top, width and height in px."""
    width: int = 0
    height: int = 0
    url: str = ""
    """Where the picture came from, when that is not the file itself."""

    def picture(self) -> Image:
        """Return the picture with the region drawn on it."""
        if self.box is None or not self.width or not self.height:
            return Image(self.image)
        left, top, width, height = self.box
        edges = left / self.width, top / self.height, (left + width) / self.width, (top + height) / self.height
        return Image(self.image, edits=("box:" + ",".join(f"{min(max(edge, 0.0), 1.0):.6f}" for edge in edges),))


class Question(Struct, frozen=True):
    """A question with its candidates in the order shown; `right` is the place of the right one, from 0."""

    question: str
    candidates: tuple[str, ...]
    right: int

    @property
    def answer(self) -> str:
        """Return the text of the right candidate."""
        return self.candidates[self.right]

    @property
    def wrong(self) -> tuple[str, ...]:
        """Return the texts of the wrong candidates."""
        return self.candidates[: self.right] + self.candidates[self.right + 1 :]


class Draft(Struct, frozen=True, omit_defaults=True):
    """One item in the making. The last question is the inference, whose text is the workshop's own."""

    id: str
    source: Source
    steps: tuple[Question, ...]
    inference: Question
    provenance: dict[str, Any] = {}

    def questions(self) -> Iterator[tuple[str, Question]]:
        """Yield (name, question): step 1, step 2, …, inference."""
        for number, step in enumerate(self.steps, 1):
            yield f"step {number}", step
        yield INFERENCE, self.inference


class Finding(Struct, frozen=True, omit_defaults=True):
    """What one gate says about one item: `fail` sets it aside, `warn` goes to the reviewer, `repaired` changed it."""

    gate: str
    outcome: str
    reason: str


class Gated(Struct, frozen=True, omit_defaults=True):
    """An item that passed the gates, with what they noted."""

    draft: Draft
    findings: tuple[Finding, ...] = ()


class SetAside(Struct, frozen=True, omit_defaults=True):
    """An item that went no further: where, and why. Nothing is dropped silently."""

    id: str
    stage: str
    reason: str
    body: Any = None


def shuffled(question: str, answer: str, wrong: Iterable[str], *parts: str | int) -> Question:
    """Return a question whose candidates stand in an order drawn from `parts` alone."""
    order = [answer, *wrong]
    places = list(range(len(order)))
    rng(*parts, "candidates").shuffle(places)
    return Question(question, tuple(order[place] for place in places), places.index(0))


def read_lines(path: Path, kind: type[T], before: str) -> list[T]:
    """Read JSON Lines of one kind; `before` names the command that writes them."""
    if not path.is_file():
        raise UsageError(f"{path} is not there: run `snellen curate {before} {path.parent}` first")
    decoder = msgspec.json.Decoder(kind)
    records = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                records.append(decoder.decode(line))
            except msgspec.DecodeError as error:
                raise DataError(f"{path} line {number}: {error}") from None
    return records

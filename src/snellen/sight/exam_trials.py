"""What is asked and what came of it: a planned trial, its outcome, and answers in balanced blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, to_builtins

from ..core.ids import derive_seed, rng
from .plate import Reading

EASY, BLANK, SEARCH, CONFIRM, LATE = "easy", "blank", "search", "confirm", "late"
WORDINGS = 3


class Planned(Struct, frozen=True):
    """One trial before it is drawn: known from the seed and the outcomes of earlier rounds alone."""

    stage: str
    round: int
    index: int
    level: float
    answer: str
    wording: int


class Outcome(NamedTuple):
    """One trial after its reply; without a reading it failed and is left out."""

    planned: Planned
    level: float
    """As drawn."""
    reading: Reading | None
    truth: str = ""
    detail: Mapping[str, Any] = {}
    failure: str = ""
    tokens: int | None = None
    """What the request counted for, as the server says."""
    unread: str = ""
    """How a reply begins that holds no answer."""


class Counts(Struct, frozen=True):
    """How many of so many asked were right, wrong, without an answer and failed: whole numbers that add up."""

    asked: int
    right: int
    wrong: int
    no_answer: int
    failed: int


def count_trials(outcomes: Sequence[Outcome]) -> Counts:
    """Count trials; a row is right when it was read whole."""
    return _added([_judged(outcome, 1) for outcome in outcomes], len(outcomes))


def count_glyphs(outcomes: Sequence[Outcome], glyphs: int) -> Counts:
    """Count the glyphs of rows of so many; a `?` is no answer, and the credit of chance is nobody's glyph."""
    return _added([_judged(outcome, glyphs) for outcome in outcomes], glyphs * len(outcomes))


def counted(outcomes: Sequence[Outcome], glyphs: int) -> dict[str, Any]:
    """Return the counts of exam.json: of trials, and where rows were asked of their glyphs too."""
    own: dict[str, Any] = to_builtins(count_trials(outcomes))
    rows = {"glyphs": to_builtins(count_glyphs(outcomes, glyphs))} if glyphs > 1 else {}
    return {"trials": own.pop("asked"), **own, **rows}


def _judged(outcome: Outcome, glyphs: int) -> tuple[int, int, int]:
    """Return how many of the glyphs of a trial were right, without an answer, and failed."""
    reading = outcome.reading
    if reading is None:
        return 0, 0, glyphs
    if reading.answer is None:
        return 0, glyphs, 0
    if glyphs == 1:
        return int(reading.right >= reading.glyphs - 1e-9), 0, 0
    unseen = int(reading.detail.get("unseen", 0))
    right = round(reading.right - unseen * reading.guess)
    return max(0, min(glyphs - unseen, right)), unseen, 0


def _added(judged: Sequence[tuple[int, int, int]], asked: int) -> Counts:
    right, silent, failed = (sum(column) for column in zip(*judged, strict=True)) if judged else (0, 0, 0)
    return Counts(asked, right, asked - right - silent - failed, silent, failed)


def last_sitting(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the trials of the last time a test was sat: one whose re-test disagreed began anew with easy trials."""
    easy = max((outcome.planned.round for outcome in outcomes if outcome.planned.stage == EASY), default=0)
    confirmed = [o.planned.round for o in outcomes if o.planned.stage == CONFIRM and o.planned.round < easy]
    start = max(confirmed, default=-1) + 1
    own = [outcome for outcome in outcomes if outcome.planned.round >= start]
    return [o for o in own if o.planned.stage != LATE] if start else own  # late trials belong to the first sitting


def generator(*parts: str | int | float) -> np.random.Generator:
    """Return a generator of arrays that depends on its purpose alone."""
    return np.random.default_rng(derive_seed(*parts))


def balanced(answers: Sequence[str], count: int, *purpose: str | int) -> list[str]:
    """Return `count` answers: every block of all answers holds each once, in an order of its own."""
    draw, dealt = rng(*purpose, "answers"), list[str]()
    while len(dealt) < count:
        block = list(answers) or [""]
        draw.shuffle(block)
        dealt += block
    dealt = dealt[:count]
    draw.shuffle(dealt)  # so that the order of levels and the order of answers know nothing of each other
    return dealt


def wordings_of(count: int, allowed: Sequence[int], *purpose: str | int) -> list[int]:
    """Return a wording for each trial."""
    draw = rng(*purpose, "wordings")
    return [draw.choice(allowed) for _ in range(count)]

"""What is asked and what came of it: a planned trial, its outcome, and answers in balanced blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from ..core.ids import derive_seed, rng
from .plate import Reading

EASY, BLANK, SEARCH, CONFIRM = "easy", "blank", "search", "confirm"
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


class Counts(Struct, frozen=True):
    """How the trials of a test went; rows of glyphs count by their glyphs."""

    right: float
    wrong: float
    no_answer: int
    failed: int
    trials: int


def count_outcomes(outcomes: Sequence[Outcome]) -> Counts:
    """Count right, wrong, unanswered and failed trials."""
    kinds: Counter[str] = Counter()
    right = wrong = 0.0
    for outcome in outcomes:
        reading = outcome.reading
        if reading is None:
            kinds["failed"] += 1
        elif reading.answer is None:
            kinds["none"] += 1
        else:
            right += reading.right / reading.glyphs
            wrong += 1.0 - reading.right / reading.glyphs
    return Counts(round(right, 3), round(wrong, 3), kinds["none"], kinds["failed"], len(outcomes))


def last_sitting(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the trials of the last time a test was sat: one whose re-test disagreed began anew with easy trials."""
    easy = max((outcome.planned.round for outcome in outcomes if outcome.planned.stage == EASY), default=0)
    confirmed = [o.planned.round for o in outcomes if o.planned.stage == CONFIRM and o.planned.round < easy]
    start = max(confirmed, default=-1) + 1
    return [outcome for outcome in outcomes if outcome.planned.round >= start]


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

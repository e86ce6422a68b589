"""Tests of a fixed number of trials: places to be told, letters all over a large canvas, rows turned by quarters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.ids import rng
from .exam_trials import SEARCH, WORDINGS, Outcome, Planned, counted, wordings_of
from .plate import Bench, EyeTest
from .procedure import OPEN

FIELD_TRIALS = {"quick": 75, "standard": 150, "fine": 300}
ROUND = 25


class FixedTest:
    """So many trials over numbered places, every place as often as every other."""

    def __init__(self, name: str, test: EyeTest, seed: int, *, places: int, trials: int) -> None:
        self.name, self.test, self.seed = name, test, seed
        self.bench = Bench()
        self.outcomes: list[Outcome] = []
        self.reason = ""
        draw = rng(seed, name, "places")
        dealt: list[int] = []
        while len(dealt) < trials:
            block = list(range(places))
            draw.shuffle(block)
            dealt += block
        self._places = dealt[:trials]
        self._round = 0
        self._over = False

    def plan(self) -> list[Planned]:
        """Return the next places."""
        start = self._round * ROUND
        places = [] if self._over else self._places[start : start + ROUND]
        wordings = wordings_of(len(places), range(WORDINGS), self.seed, self.name, self._round)
        return [
            Planned(SEARCH, self._round, number, 1.0, str(place), wording)
            for number, (place, wording) in enumerate(zip(places, wordings, strict=True))
        ]

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Keep a round; one that failed whole ends the test."""
        self.outcomes += outcomes
        self._round += 1
        if outcomes and all(outcome.reading is None for outcome in outcomes):
            self._over = True
            self.reason = f"all {len(outcomes)} trials of a round failed: {outcomes[-1].failure}"


def fixed_head(running: FixedTest) -> dict[str, Any]:
    """Return what exam.json says of every test without a threshold: words, counts, what failed, and no figure yet."""
    card = running.test.card
    failed = [outcome.failure for outcome in running.outcomes if outcome.reading is None]
    refused = {"trials": len(failed), "why": failed[-1]} if failed else None
    head: dict[str, Any] = {"title": card.title, "unit": card.unit, "about": card.about, "verdict": OPEN, "value": None}
    head |= {"ci95": None, "reason": running.reason, "refused": refused, "levels": []}
    return head | counted(running.outcomes, card.glyphs)

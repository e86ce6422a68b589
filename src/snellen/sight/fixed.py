"""Tests of a fixed number of trials: places to be told, letters all over a large canvas, rows turned by quarters."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import PIL.Image

from ..core.ids import rng
from ..stats.intervals import ratio_moments, share_interval
from .board import Board, lay, row_ink
from .exam_trials import SEARCH, WORDINGS, Outcome, Planned, counted, wordings_of
from .plate import Bench, EyeTest, Reading, Stimulus
from .procedure import MEASURED, OPEN
from .reply_reading import read_row
from .row_plates import INK, LARGEST, RowTest, font_of, grey, legible, random_row, varied

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


TURNS = (90, 180, 270)
"""Degrees clockwise."""
TURN_TRIALS = {"quick": 24, "standard": 24, "fine": 48}
LEAST_ROWS = 4
"""Fewer rows of a turn than this tell nothing."""
HALF = 0.5
READ, NOT_READ = "read", "not read"
EXACT = {
    90: PIL.Image.Transpose.ROTATE_270,
    180: PIL.Image.Transpose.ROTATE_180,
    270: PIL.Image.Transpose.ROTATE_90,
}
"""Pillow counts the other way round."""


class TurnedRow(RowTest):
    """A well legible row that is turned as a whole; `answer` numbers the turn."""

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw the row turned exactly, anywhere on the canvas."""
        turn = TURNS[int(answer or 0) % len(TURNS)]
        text = random_row(self.script, self.card.glyphs, draw)
        height = varied(legible(bench), LARGEST, draw)
        ink = row_ink(text, height, script=self.script, font=font_of(self.script))
        width, tall = self.card.canvas
        board = Board(width, tall)
        turned = ink._replace(image=ink.image.transpose(EXACT[turn]))
        lay(board, turned, draw, grey(draw.randint(0, INK)), (0, 0, width, tall))
        detail = {"alphabet": self.alphabet, "height_px": round(height, 3), "turn": turn}
        return Stimulus((board.png(self.card.pad_bytes),), text, float(turn), detail)

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read the row by place, and say whether it was read from its end."""
        own, back = (read_row(reply, row, str(detail["alphabet"])) for row in (truth, truth[::-1]))
        backwards = back.right > max(own.right, self.card.glyphs / 2)
        return Reading(own.right, own.glyphs, own.guess, own.answer, {**own.detail, "backwards": backwards})


def turns_result(running: FixedTest) -> dict[str, Any]:
    """Return the share read of every turn with its interval and verdict; `value` is the lowest of them.

    Intervals go by rows: glyphs of a row are read or lost together, and must not be counted singly.
    """
    result = fixed_head(running)
    rows = {turn: [o for o in running.outcomes if o.reading is not None and o.level == turn] for turn in TURNS}
    few = [f"{turn}°" for turn, own in rows.items() if len(own) < LEAST_ROWS]
    if few:
        return result | {"reason": running.reason or f"fewer than {LEAST_ROWS} rows were answered at {', '.join(few)}"}
    turns = {str(turn): _one_turn(own) for turn, own in rows.items()}
    worst = min(turns.values(), key=lambda one: float(one["share"]))
    counts = {"turns_read": sum(one["verdict"] == READ for one in turns.values())}
    figures = {"verdict": MEASURED, "value": worst["share"], "ci95": worst["ci95"], "turns": turns}
    return result | figures | counts | {"reason": turn_words(turns)}


def _one_turn(rows: Sequence[Outcome]) -> dict[str, Any]:
    readings = [outcome.reading for outcome in rows if outcome.reading is not None]
    right = np.array([min(reading.right, reading.glyphs) for reading in readings], np.float64)
    moments = ratio_moments(right, np.array([reading.glyphs for reading in readings], np.float64))
    share, (low, high) = moments.value, share_interval(moments)
    verdict = READ if low > HALF else NOT_READ if high < HALF else OPEN
    backwards = sum(bool(reading.detail.get("backwards")) for reading in readings)
    ends = [round(low, 4), round(high, 4)]
    return {"share": round(share, 4), "ci95": ends, "rows": len(readings), "verdict": verdict, "backwards": backwards}


def turn_words(turns: Mapping[str, Mapping[str, Any]]) -> str:
    """Return which turns are read and which are not, in words."""
    parts = []
    for verdict in (READ, NOT_READ, OPEN):
        own = [f"{turn}°" for turn, one in turns.items() if one["verdict"] == verdict]
        parts += [f"{verdict} at {' and '.join(filter(None, (', '.join(own[:-1]), own[-1])))}"] if own else []
    return ", ".join(parts)

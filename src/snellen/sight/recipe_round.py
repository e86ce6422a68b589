"""The composed recipe drawn and asked, last of all: parts of a page of 10 pt type, of which a line is written down."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ..data.loaders.eyechart import ALPHABETS, font_for
from ..stats.intervals import Floats, Interval, ratio_moments, share_interval, wilson
from .board import padded
from .exam_trials import Planned, counted
from .fixed import FixedTest, fixed_head
from .plate import Bench, Reading, Stimulus, fill
from .procedure import MEASURED
from .recipe import CAP_PT, Recipe, part_pixels
from .row_plates import random_row
from .scenes import LINE, PITCH, Page, typeset

RECIPE_TRIALS = {"quick": 12, "standard": 24, "fine": 48}
LEAST_LINES = 6
"""Fewer lines than this tell no accuracy."""
SEALED = "1x1@100"
"""What is drawn where no recipe is given: a page as it comes."""


class RecipePage(Page):
    """A part of a page as the recipe cuts and draws it, full of lines; the letters are those of the letters test."""

    def chance(self, level: float) -> float:
        """Return one in the alphabet."""
        return 1.0 / len(ALPHABETS["letters"])

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw one part; `answer` is the code of the recipe: `2x3@150` is two columns, three rows, 150 dpi."""
        columns, rows, dpi = (int(part) for part in (answer if "@" in answer else SEALED).replace("@", "x").split("x"))
        size, capital = part_pixels(columns, rows, dpi), CAP_PT * dpi / 72
        letters, count = letters_in_line(size[0], capital), lines_on(size[1], capital)
        lines = [random_row("letters", letters, draw) for _ in range(count)]
        asked = draw.randrange(count)
        picture = padded(typeset(lines, capital, size, draw), self.card.pad_bytes)
        beside = [lines[place] for place in (asked - 1, asked + 1) if 0 <= place < count]
        detail = {"line": asked + 1, "beside": beside, "height_px": round(capital, 2), "lines": count, "size": size}
        return Stimulus((picture,), lines[asked], round(capital, 3), detail)

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for one line by its number."""
        words: dict[str, Any] = {"line": stimulus.detail["line"], "count": len(stimulus.truth)}
        words["alphabet"] = " ".join(ALPHABETS["letters"])
        return fill(self.card.wordings[wording], words)

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read the line by place, and say whether a neighbour was read instead."""
        return self.read_line(reply, truth, detail, ALPHABETS["letters"])


def letters_in_line(width: int, capital: float) -> int:
    """Return how many letters of the widest kind a line of the part has room for, besides its number."""
    over = 8  # a font has whole sizes: measured large, so that the widths are not of rounded letters
    widest = max(font_for("letters", capital * over, None).getlength(char) for char in ALPHABETS["letters"]) / over
    return max(4, min(LINE, int((width - 30 - 4.2 * capital) / widest)))


def lines_on(height: int, capital: float) -> int:
    """Return how many lines fit the part."""
    return max(2, int((height - 45) / (PITCH * capital)))


class RecipeTest(FixedTest):
    """So many parts as the recipe says, once it is known."""

    recipe: Recipe | None = None
    together = 0.0
    """How far the letters of a row fall together, as the letters test found."""

    def plan(self) -> list[Planned]:
        """Return the next parts; none without a recipe."""
        if self.recipe is None:
            return []
        code = f"{self.recipe.columns}x{self.recipe.rows}@{self.recipe.dpi}"
        return [msgspec.structs.replace(one, level=self.recipe.capital_px, answer=code) for one in super().plan()]


def recipe_result(running: RecipeTest) -> dict[str, Any]:
    """Return the share of letters that the recipe reached, its interval by lines, and whether it kept its promise.

    It broke it where the whole interval lies below; an interval around the promise is no proof of either.
    """
    result, recipe = fixed_head(running), running.recipe
    told = [(o, o.reading) for o in running.outcomes if o.reading is not None]
    if recipe is None:
        return result | {"reason": running.reason or "letters led to no recipe"}
    result |= {"recipe": recipe._asdict() | {"part_px": list(recipe.part_px)}, "promised": recipe.accuracy}
    if len(told) < LEAST_LINES:
        return result | {"reason": running.reason or f"{len(told)} lines were answered"}
    letters = len(told[0][0].truth)
    right = np.array([min(reading.right, reading.glyphs) for _, reading in told], np.float64)
    share, (low, high) = line_interval(right, np.full(right.shape, letters), running.together)
    slips = sum(bool(reading.detail.get("slip")) for _, reading in told)
    figures = {"value": round(share, 4), "ci95": [round(low, 4), round(high, 4)], "slips": slips}
    figures |= {"kept": high >= recipe.accuracy, "line_letters": letters, "verdict": MEASURED}
    return result | counted(running.outcomes, letters) | figures | {"reason": _slip_words(slips, len(told))}


def line_interval(right: Floats, letters: Floats, together: float) -> tuple[float, Interval]:
    """Return the share of letters right over lines, and its 95 % interval by lines: letters of one fall together.

    Lines that all went alike tell nothing of how far they do; then it is taken from the letters test (`together`).
    """
    moments = ratio_moments(right, letters)
    if float(np.ptp(right / letters)) > 0.0:
        return moments.value, share_interval(moments)
    alone = float(letters.sum()) / (1.0 + (float(letters.mean()) - 1.0) * together)
    return moments.value, wilson(moments.value, alone)


def _slip_words(slips: int, lines: int) -> str:
    return f"{slips} of {lines} replies are of a line beside" if slips else ""

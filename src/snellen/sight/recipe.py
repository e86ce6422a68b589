"""The height that letters need and how pictures are shrunk to one recipe for a page: parts, dpi, px. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..stats.intervals import Floats

Size = tuple[float, float]
Law = Sequence[tuple[str, float, float]]
"""How pictures may be shrunk: rule, limit in px (0 where the rule has none), probability."""

NONE, ONE_SIZE, LONG, SHORT, AREA = RULES = ("none", "fixed size", "long side", "short side", "area")
UNKNOWN: Law = ((NONE, 0.0, 0.5), (ONE_SIZE, 0.0, 0.5))
"""Where no shrinking was measured: what holds under these two holds under all rules between them."""
A4_PT: Size = (595.0, 842.0)
CAP_PT = 7.0
"""Height of capitals of 10 pt type in points."""
OVERLAP_PT = 14.0
"""Parts of a page overlap by a line, so that no line is cut in both."""
SURE = 0.95
"""A recipe must hold under so much of what is known of shrinking."""
MOST_PARTS = 60
DPI_STEP = 5
PROMISED = 0.95
"""The share of what can be right at the level that advice rests on."""


class Recipe(NamedTuple):
    """How to send a page of 10 pt type: cut into columns × rows parts, each drawn at so many dpi."""

    columns: int
    rows: int
    dpi: int
    part_px: tuple[int, int]
    capital_px: float
    """Height of capitals as sent."""
    accuracy: float
    """The share of letters that is promised right, lapses and lucky guesses included."""


def loss(rule: str, size: Size, limit: Any) -> Any:
    """Return ln of how much a picture is shrunk under a rule and one or several ln limits.

    Of one size for all only differences count: the size itself cannot be told from acuity.
    """
    if rule == NONE:
        return np.zeros_like(limit)
    if rule == ONE_SIZE:  # the longer side decides
        return np.full_like(limit, math.log(max(size) / 448.0))
    side = {LONG: max(size), SHORT: min(size), AREA: math.sqrt(size[0] * size[1])}[rule]
    return np.maximum(0.0, math.log(side) - limit)


class Shrinking(NamedTuple):
    """A law as columns, and the height that is safe on a canvas as sent: what every candidate is judged by."""

    law: Law
    safe_px: float
    canvas: Size
    longest_px: float
    """Nothing larger than this was measured."""

    def holds(self, part: Size, capital_px: float) -> float:
        """Return the probability that capitals of this height on such a picture are seen as large as is safe."""
        room = math.log(capital_px / self.safe_px) + 1e-9
        return sum(weight for rule, limit, weight in self.law if self._more(rule, limit, part) <= room)

    def _more(self, rule: str, limit: float, part: Size) -> float:
        logs: Floats = np.array(math.log(limit) if limit else 0.0)
        return float(loss(rule, part, logs) - loss(rule, self.canvas, logs))


def compose(shrinking: Shrinking, page_pt: Size = A4_PT) -> tuple[int, int, int] | None:
    """Return columns, rows and dpi with the fewest parts, then the fewest pixels, that hold; None where none do."""
    least = math.ceil(shrinking.safe_px * 72 / CAP_PT)
    for columns, rows in _grids(page_pt):
        part = _part(page_pt, columns, rows)
        most = math.floor(shrinking.longest_px * 72 / max(part))

        def holds(dpi: int, part: Size = part) -> bool:
            return shrinking.holds(_pixels(part, dpi), CAP_PT * dpi / 72) >= SURE

        steps = (least, *range(least + DPI_STEP - least % DPI_STEP, most + 1, DPI_STEP))
        if least <= most and holds(steps[-1]):  # more dpi never show less
            return columns, rows, steps[bisect_left(steps, True, key=holds)]
    return None


def _grids(page_pt: Size) -> Iterator[tuple[int, int]]:
    """Yield columns and rows: fewer parts first, and of as many those whose longer side is shorter."""
    every = [(columns, rows) for columns in range(1, 9) for rows in range(1, 12) if columns * rows <= MOST_PARTS]
    yield from sorted(every, key=lambda grid: (grid[0] * grid[1], max(_part(page_pt, *grid))))


def _part(page_pt: Size, columns: int, rows: int) -> Size:
    wide, tall = page_pt[0] / columns, page_pt[1] / rows
    return wide + OVERLAP_PT * (columns > 1), tall + OVERLAP_PT * (rows > 1)


def _pixels(part: Size, dpi: float) -> tuple[int, int]:
    return math.ceil(part[0] * dpi / 72), math.ceil(part[1] * dpi / 72)


def part_pixels(columns: int, rows: int, dpi: float) -> tuple[int, int]:
    """Return the size of one of so many parts of an A4 page."""
    return _pixels(_part(A4_PT, columns, rows), dpi)


def page_recipe(acuity: Mapping[str, Any], resolution: Mapping[str, Any] | None) -> Recipe | None:
    """Return the recipe for an A4 page from the letters test and the shrinking found; None where no parts would do."""
    safe = acuity.get("x95_upper90")
    if not safe:
        return None
    canvas = tuple(acuity.get("canvas") or (672, 672))
    law: Law = [(rule, limit, weight) for rule, limit, weight in resolution["law"]] if resolution else UNKNOWN
    longest = max(max(point[:2]) for point in resolution["points"]) if resolution else max(canvas)
    tall = math.ceil(safe - 1e-9)  # the whole px that the line on text asks for: the recipe must not ask for less
    found = compose(Shrinking(law, float(tall), (canvas[0], canvas[1]), float(longest)))
    if found is None:
        return None
    columns, rows, dpi = found
    chance, lapse = acuity.get("chance", 0.0), acuity["lapse"]
    accuracy = chance + (1 - chance - lapse) * PROMISED
    part = part_pixels(columns, rows, dpi)
    return Recipe(columns, rows, dpi, part, round(CAP_PT * dpi / 72, 1), math.floor(1000 * accuracy) / 1000)


def recipe_words(recipe: Recipe) -> str:
    """Return the recipe without what it reaches."""
    parts = recipe.columns * recipe.rows
    cut = f"cut into {recipe.columns} × {recipe.rows} parts that overlap by a line" if parts > 1 else "send whole"
    each = "each " if parts > 1 else ""
    width, height = recipe.part_px
    return (
        f"A4 at 10 pt: {cut}, at {recipe.dpi} dpi ({each}{width:,} × {height:,} px, "
        f"capitals {recipe.capital_px:g} px), black on white, upright, as PNG"
    )

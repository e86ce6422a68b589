"""Figures to be compared, found or followed: pairs, mirror images, hidden shapes, textures, tangled lines.

Where four panels are shown, what is asked is which of them: sums over the picture are the same for every answer.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .board import Board, Paper, Point
from .choice_plates import QUADRANTS, ChoiceTest, ink_of
from .plate import Bench, Stimulus, fill, rotated

CORNERS, RADIUS, LEAST_RADIUS = 7, 62.0, 0.45
"""Corners of a polygon of a pair, its largest radius in px, and its smallest as a share of that."""
LEAST_CORNER, MOST_CORNER = 8.0, 1.15 * RADIUS
"""Where a corner may be moved to: px from the middle."""
CHIRAL = {
    "F": ((1, 0), (2, 0), (0, 1), (1, 1), (1, 2)),
    "L": ((0, 0), (0, 1), (0, 2), (0, 3), (1, 3)),
    "N": ((1, 0), (1, 1), (0, 2), (1, 2), (0, 3)),
    "P": ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2)),
    "Y": ((1, 0), (0, 1), (1, 1), (1, 2), (1, 3)),
}
"""Figures of five squares that no turn makes their own mirror image."""
TURNED_PX = 84.0
"""The longer side of figures that are turned: large enough to be seen, and to turn within a panel."""
Shape = Sequence[Point]
Shown = tuple[bytes, float, dict[str, Any]]


class Pairs(ChoiceTest):
    """In each of four panels two figures; in all but one they are the same. What makes them differ is `by`."""

    def show(self, level: float, answer: str | None, draw: random.Random, bench: Bench) -> Shown:
        """Draw the panels; without an answer all pairs are the same."""
        actual = self.jittered(level, draw)
        width, height = self.card.canvas
        board, colour = Board(width, height), ink_of(draw)
        make = WAYS[str(self.card.options["by"])]
        for name, (column, row) in QUADRANTS.items():
            for place, shape in enumerate(make(actual, name == answer, draw)):
                x = width * (2 * column + place + 0.5) / 4 + draw.uniform(-6, 6)
                y = height * (2 * row + 1) / 4 + draw.uniform(-40, 40)
                paint_shape(board, shape, (x, y), colour)
        board.stroke((width / 2, 0), (width / 2, height), 1.0, (160.0, 160.0, 160.0))
        board.stroke((0, height / 2), (width, height / 2), 1.0, (160.0, 160.0, 160.0))
        return board.png(self.card.pad_bytes), actual, {}


Polygons = list[Shape]
"""Parts of one figure: each is filled, together they are it."""


def by_corner(level: float, odd: bool, draw: random.Random) -> tuple[Polygons, Polygons]:
    """A polygon twice; in the odd pair one corner is moved by so many px, outwards or inwards."""
    turn = draw.uniform(0, 2 * math.pi)
    angles = [turn + (number + draw.uniform(-0.25, 0.25)) * 2 * math.pi / CORNERS for number in range(CORNERS)]
    radii = [RADIUS * draw.uniform(LEAST_RADIUS, 1.0) for _ in angles]
    ways = [
        (corner, moved)
        for corner, radius in enumerate(radii)
        for moved in (radius + level, radius - level)
        if LEAST_CORNER <= moved <= MOST_CORNER
    ]
    if not ways:  # the level is how far a corner is moved: no less will do
        return by_corner(level, odd, draw)
    corner, moved = draw.choice(ways)
    other = [moved if odd and place == corner else radius for place, radius in enumerate(radii)]
    both = [[_polar(r, a) for r, a in zip(some, angles, strict=True)] for some in (radii, other)]
    draw.shuffle(both)
    return [both[0]], [both[1]]


def by_mirror(level: float, odd: bool, draw: random.Random) -> tuple[Polygons, Polygons]:
    """A figure of squares whose longer side has so many px, twice; in the odd pair one of them is mirrored."""
    return _squares_pair(level, 0.0, odd, draw)


def by_turn(level: float, odd: bool, draw: random.Random) -> tuple[Polygons, Polygons]:
    """A figure and the same turned by so many degrees; in the odd pair it is mirrored too."""
    return _squares_pair(TURNED_PX, level * draw.choice((-1, 1)), odd, draw)


def _squares_pair(size: float, degrees: float, odd: bool, draw: random.Random) -> tuple[Polygons, Polygons]:
    cells = CHIRAL[draw.choice(sorted(CHIRAL))]
    mirrored, start = draw.random() < 0.5, draw.uniform(0, 360) if degrees else 90.0 * draw.randrange(4)
    first = _squares(cells, size, start, mirrored=mirrored)
    return first, _squares(cells, size, start + degrees, mirrored=mirrored != odd)


def _squares(cells: Sequence[tuple[int, int]], size: float, degrees: float, *, mirrored: bool) -> Polygons:
    """Return the squares of a figure around its middle, turned as a whole."""
    wide, tall = (1 + max(cell[axis] for cell in cells) for axis in (0, 1))
    side, cos, sin = size / max(wide, tall), math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    shapes: Polygons = []
    for column, row in cells:
        # a hair larger, so that no seam shows between neighbours
        ends = ((column - 0.01, row - 0.01), (column + 1.01, row - 0.01), (column + 1.01, row + 1.01))
        corners = [(x - wide / 2, y - tall / 2) for x, y in (*ends, (column - 0.01, row + 1.01))]
        flipped = [(-x if mirrored else x, y) for x, y in corners]
        shapes.append([(side * (x * cos - y * sin), side * (x * sin + y * cos)) for x, y in flipped])
    return shapes


WAYS = {"corner": by_corner, "mirror": by_mirror, "turn": by_turn}


def _polar(radius: float, angle: float) -> Point:
    return radius * math.cos(angle), radius * math.sin(angle)


def paint_shape(board: Board, parts: Polygons, centre: Point, colour: tuple[float, float, float]) -> None:
    """Fill the parts of one figure at a place, as one piece of ink."""
    moved = [[(x + centre[0], y + centre[1]) for x, y in part] for part in parts]
    across, down = [x for part in moved for x, _ in part], [y for part in moved for _, y in part]

    def _fill(paper: Paper) -> None:
        for part in moved:
            paper.pen.polygon(paper.spots(*part), fill=255)

    board.paint((min(across), min(down), max(across), max(down)), colour, _fill)


def _star(points: int, inner: float) -> Shape:
    turns = [(1.0 if number % 2 == 0 else inner, number * math.pi / points) for number in range(2 * points)]
    return [_polar(radius, angle - math.pi / 2) for radius, angle in turns]


def _cross(half: float) -> Shape:
    arm = ((-half, -1.0), (half, -1.0), (half, -half))
    turns = ((1, 0, 0, 1), (0, -1, 1, 0), (-1, 0, 0, -1), (0, 1, -1, 0))
    return [(a * x + b * y, c * x + d * y) for a, b, c, d in turns for x, y in arm]


def _alike(corners: Shape) -> Shape:
    """Return a shape of area 2, so that its ink does not tell it."""
    area = 0.5 * abs(
        sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True))
    )
    return [(x * math.sqrt(2 / area), y * math.sqrt(2 / area)) for x, y in corners]


SHAPES: dict[str, Shape] = {
    "square": _alike(_star(2, 1.0)),
    "triangle": _alike([_polar(1.0, 2 * math.pi * number / 3 - math.pi / 2) for number in range(3)]),
    "star": _alike(_star(5, 0.45)),
    "cross": _alike(_cross(0.3)),
}
HIDDEN_RADIUS = 92.0
SPOTS = (150.0, 150.0, 160.0)
SPOT_PX = (8.0, 18.0)
"""Radii of spots."""
SPOTTED = 1.25 * HIDDEN_RADIUS + SPOT_PX[1]
"""Spots lie as far from the middle as any that could touch a shape: its tips are hidden as often as its middle."""


class Hidden(ChoiceTest):
    """Four shapes, one a panel, behind grey spots; where is the star? The level is the share that shows."""

    def show(self, level: float, answer: str | None, draw: random.Random, bench: Bench) -> Shown:
        """Draw the panels; without an answer there are spots alone."""
        width, height = self.card.canvas
        board, colour, asked = Board(width, height), ink_of(draw), draw.choice(sorted(SHAPES))
        others = draw.sample([name for name in SHAPES if name != asked], len(SHAPES) - 1)
        shares = []
        for name, (column, row) in QUADRANTS.items():
            shape = asked if name == answer else others.pop() if others else asked
            x, y = width * (2 * column + 1) / 4, height * (2 * row + 1) / 4
            centre = (x + draw.uniform(-14, 14), y + draw.uniform(-14, 14))
            ink = self._ink(shape, centre, draw)
            if answer is not None:
                board.stamp(ink, 0, 0, colour)
            shares.append(self._cover(board, ink, centre, level, draw))
        return board.png(self.card.pad_bytes), max(self.card.hardest, float(np.mean(shares))), {"shape": asked}

    def _ink(self, shape: str, centre: Point, draw: random.Random) -> Any:
        """Return one shape as coverage of the whole board, turned and as large as it happens to be."""
        blank, turn = Board(*self.card.canvas, paper=0), draw.uniform(0, 2 * math.pi)
        size = HIDDEN_RADIUS * draw.uniform(0.85, 1.0)
        cos, sin = size * math.cos(turn), size * math.sin(turn)
        corners = [(x * cos - y * sin, x * sin + y * cos) for x, y in SHAPES[shape]]
        paint_shape(blank, [corners], centre, (255.0, 255.0, 255.0))
        return blank.pixels[:, :, 0].astype(np.float32) / np.float32(255.0)

    @staticmethod
    def _cover(board: Board, ink: Any, centre: Point, level: float, draw: random.Random) -> float:
        """Lay spots over a panel until no more than the level shows of its shape; return what does."""
        whole = shown = float(ink.sum())
        left = ink.copy()
        while shown > level * whole:
            radius = draw.uniform(*SPOT_PX)
            x, y = (middle + draw.uniform(-1, 1) * SPOTTED for middle in centre)
            board.disc((x, y), radius, SPOTS)
            right, down = max(0, math.floor(x - radius)), max(0, math.floor(y - radius))
            part = left[down : math.ceil(y + radius) + 1, right : math.ceil(x + radius) + 1]
            across, along = np.arange(part.shape[1]) + right + 0.5 - x, np.arange(part.shape[0]) + down + 0.5 - y
            under = np.hypot(across, along[:, None]) <= radius
            shown -= float(part[under].sum())
            part[under] = 0.0
        return shown / whole

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask where the shape is."""
        words = {"shape": stimulus.detail["shape"], "answers": rotated(self.card.answers, draw)}
        return fill(self.card.wordings[wording], words)


STROKES, STROKE_LENGTH, STROKE_WIDTH = 28, 15.0, 2.4
PATCH = 8
"""Strokes along a side of the canvas, their size in px, and how many along a side of the figure."""


class Texture(ChoiceTest):
    """A field of short strokes; those of a square patch are turned against the rest. Nothing else tells it."""

    def show(self, level: float, answer: str | None, draw: random.Random, bench: Bench) -> Shown:
        """Draw the field; without an answer all strokes run alike. The level is the turn in degrees."""
        actual = self.jittered(level, draw)
        width, height = self.card.canvas
        board, colour = Board(width, height), ink_of(draw)
        ground, turn = draw.uniform(0, 180), actual * draw.choice((-1, 1)) if answer is not None else 0.0
        half = STROKES // 2
        left, top = (draw.randint(1, half - PATCH - 1) for _ in range(2))
        column, row = QUADRANTS.get(answer or "", (0, 0))
        inside = (column * half + left, row * half + top)
        for across, down in itertools.product(range(STROKES), repeat=2):
            within = 0 <= across - inside[0] < PATCH and 0 <= down - inside[1] < PATCH
            angle = math.radians(ground + draw.gauss(0, 4.0) + turn * within)
            x = (across + 0.5 + draw.uniform(-0.2, 0.2)) * width / STROKES
            y = (down + 0.5 + draw.uniform(-0.2, 0.2)) * height / STROKES
            rounded_stroke(board, (x, y), STROKE_LENGTH * draw.uniform(0.7, 1.3), angle, colour)
        return board.png(self.card.pad_bytes), actual, {}


def rounded_stroke(
    board: Board, centre: Point, length: float, angle: float, colour: tuple[float, float, float]
) -> None:
    """Draw a stroke by how far pixels are from its line: its ink is the same whichever way it runs."""
    (x, y), (cos, sin), reach = centre, _polar(1.0, angle), math.ceil(length / 2 + STROKE_WIDTH)
    left, top = math.floor(x) - reach, math.floor(y) - reach
    across = np.arange(2 * reach + 2) + left + 0.5 - x
    down = (np.arange(2 * reach + 2) + top + 0.5 - y)[:, None]
    along = np.clip(across * cos + down * sin, -length / 2, length / 2)
    away = np.hypot(across - along * cos, down - along * sin)
    ink = np.clip(STROKE_WIDTH / 2 + 0.5 - away, 0.0, 1.0)
    board.stamp(np.asarray(ink, np.float32), left, top, colour)


LANES, LINE_WIDTH, MARGIN = 4, 3.0, 46.0
MARK = (205.0, 40.0, 40.0)


class Paths(ChoiceTest):
    """Four lines that cross on their way from left to right; where does the one with the dot end?"""

    def show(self, level: float, answer: str | None, draw: random.Random, bench: Bench) -> Shown:
        """Draw the lines; without an answer none is marked. The level is the number of crossings."""
        crossings = max(LANES - 1, round(level))
        start = draw.randrange(LANES)
        end = self.card.answers.index(answer) if answer is not None else draw.randrange(LANES)
        swaps = swaps_between(start, end, crossings, draw)
        width, height = self.card.canvas
        board, colour = Board(width, height), ink_of(draw)
        gap, top = (height - 2 * MARGIN) / (LANES - 1), MARGIN
        lanes = list(range(LANES))
        ways: list[list[float]] = [[float(lane)] for lane in range(LANES)]
        for swap in swaps:
            lanes[swap], lanes[swap + 1] = lanes[swap + 1], lanes[swap]
            for lane, line in enumerate(lanes):
                ways[line].append(float(lane))
        step = (width - 2 * MARGIN) / crossings
        for way in ways:
            points = smooth([(MARGIN + place * step, top + lane * gap) for place, lane in enumerate(way)])
            for one, other in itertools.pairwise([(14.0, points[0][1]), *points, (width - 14.0, points[-1][1])]):
                board.stroke(one, other, LINE_WIDTH, colour)
        if answer is not None:
            board.disc((14.0, top + start * gap), 10.0, MARK)
        return board.png(self.card.pad_bytes), float(crossings), {"start": start + 1}


def swaps_between(start: int, end: int, crossings: int, draw: random.Random) -> list[int]:
    """Return crossings of neighbours that lead a line from start to end; never the same two twice in a row."""
    while True:
        swaps: list[int] = []
        while len(swaps) < crossings:
            swap = draw.randrange(LANES - 1)
            if not swaps or swap != swaps[-1]:
                swaps.append(swap)
        lane = start
        for swap in swaps:
            lane = swap + 1 if lane == swap else swap if lane == swap + 1 else lane
        if lane == end:
            return swaps


def smooth(points: Shape, steps: int = 12) -> list[Point]:
    """Return a curve through points that is level at each of them."""
    curve: list[Point] = [points[0]]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        for number in range(1, steps + 1):
            share = number / steps
            ease = share * share * (3 - 2 * share)
            curve.append((x0 + (x1 - x0) * share, y0 + (y1 - y0) * ease))
    return curve

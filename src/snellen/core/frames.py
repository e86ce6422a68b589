"""Frames of coordinates: the numbers of a point as a model writes them, and fractions of the picture, both ways.

A frame is spelt as its scale and, behind it, what is unlike the usual: `0-1000`, `0-1000 y-first`, `sent-pixels`,
`sent-pixels grid=28 area=12845056`. Cards of models and of tasks, `--coordinates` and the exam all spell it so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from .errors import ConfigError

Size = tuple[int, int]
"""Width and height in pixels."""
PIXELS, SENT_PIXELS = "pixels", "sent-pixels"
"""Pixels of the picture as its source has it, and of the picture as it left: it may have been made smaller."""
COMMON = ("0-1", "0-100", "0-999", "0-1000", "0-1024", PIXELS, SENT_PIXELS)
"""Scales that messages name; any other `0-N` is one too."""
OVERSHOOT = 0.05
"""How far a coordinate may lie outside the picture and still be meant in this frame."""
LEAST_CELLS = 4
"""A picture on a grid has at least so many cells (the least area of Qwen2-VL and Qwen2.5-VL)."""
CORNER, MIDDLE = "corner", "middle"
_SCALE = re.compile(r"0-(\d+(?:\.\d+)?)")
_FLAGS = {
    "y-first": ("y_first", True),
    "y-up": ("y_up", True),
    "padded": ("padded", CORNER),
    "padded-middle": ("padded", MIDDLE),
}
_LIMITS = ("grid", "side", "area")


class FrameProblem(ValueError):
    """Why numbers cannot be placed in the picture; a reason not to score."""


class Frame(Struct, frozen=True, omit_defaults=True):
    """What the numbers of a point count in. `size` is always that of the picture the frame counts in (`of_source`)."""

    edge: float | None = None
    """The number that stands for the right and the lower edge; None: pixels."""
    of_source: bool = False
    """Pixels of the source file, not of the picture as it was sent."""
    y_first: bool = False
    y_up: bool = False
    """y is counted from the lower edge."""
    padded: str = ""
    """The picture stands in a square of its longer side: in its upper left `corner`, or in its `middle`."""
    side: int | None = None
    """Pixels of the picture after it was made no longer than this."""
    area: int | None = None
    """Pixels of the picture after it was brought within this area."""
    grid: int | None = None
    """Pixels of the picture after its sides became multiples of this."""

    @property
    def name(self) -> str:
        """Return the frame as it is spelt."""
        scale = f"0-{self.edge:g}" if self.edge is not None else PIXELS if self.of_source else SENT_PIXELS
        flags = [word for word, (field, value) in _FLAGS.items() if getattr(self, field) == value]
        limits = [f"{name}={value}" for name in _LIMITS if (value := getattr(self, name)) is not None]
        return " ".join([scale, *flags, *limits])

    def extent(self, size: Size | None) -> tuple[float, float]:
        """Return the numbers that stand for the right and the lower edge: the largest x and y."""
        reach, shift = self._axes(size)
        return reach[0] + shift[0], reach[1] + shift[1]

    def place(self, values: Sequence[float], size: Size | None, *, anywhere: bool = False) -> list[float]:
        """Return numbers as written (x, y, x, y …, or y, x …) as fractions (x, y, x, y …) of the picture.

        What lies outside of it is a FrameProblem, and so are fractions where hundreds are meant; not with `anywhere`.
        """
        reach, shift = self._axes(size)
        if not anywhere:
            self._refuse_fractions(values)
        placed = []
        for first, second in zip(values[::2], values[1::2], strict=True):
            x, y = (second, first) if self.y_first else (first, second)
            down = (y - shift[1]) / reach[1]
            placed += [(x - shift[0]) / reach[0], 1.0 - down if self.y_up else down]
        if not anywhere and any(not -OVERSHOOT <= one <= 1.0 + OVERSHOOT for one in placed):
            raise FrameProblem(f"coordinates outside the picture: not in the frame {self.name}")
        return placed

    def write(self, point: tuple[float, float], size: Size | None) -> tuple[float, float]:
        """Return the two numbers, in the order of writing, of a point in fractions (x, y) of the picture."""
        reach, shift = self._axes(size)
        down = 1.0 - point[1] if self.y_up else point[1]
        x, y = point[0] * reach[0] + shift[0], down * reach[1] + shift[1]
        return (y, x) if self.y_first else (x, y)

    def _axes(self, size: Size | None) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return what the picture's width and height count in this frame, and where its upper left corner stands."""
        if self.edge is not None and not self.padded:
            return (self.edge, self.edge), (0.0, 0.0)
        if size is None:
            raise FrameProblem(f"the size of the picture is not known, and coordinates are in {self.name}")
        width, height = resized(size, side=self.side, area=self.area, grid=self.grid)
        longer = max(width, height)
        unit = 1.0 if self.edge is None else self.edge / longer
        margin = unit / 2.0 if self.padded == MIDDLE else 0.0
        return (width * unit, height * unit), ((longer - width) * margin, (longer - height) * margin)

    def _refuse_fractions(self, values: Sequence[float]) -> None:
        """Refuse what was plainly written in fractions where hundreds are meant: it would be a box in a corner.

        The whole picture is `[0, 0, 1, 1]` then, which is no smaller mistake for being in whole numbers.
        """
        if self.edge != 1.0 and all(0.0 <= value <= 1.0 for value in values) and any(values):
            raise FrameProblem(f"coordinates are fractions of the picture, not in the frame {self.name}")


def resized(
    size: Size, *, side: int | None = None, area: int | None = None, grid: int | None = None
) -> tuple[float, float]:
    """Return a size after a server's own rule: brought within a side and an area, or onto a grid within an area."""
    if grid is not None:
        return on_grid(size, grid, LEAST_CELLS * grid * grid, area)
    scale = min(1.0, side / max(size)) if side else 1.0
    if area:
        scale = min(scale, math.sqrt(area / (size[0] * size[1])))
    return size[0] * scale, size[1] * scale


def on_grid(size: Size, grid: int, least: int, most: int | None) -> Size:
    """Return Qwen's smart resize: sides to multiples of `grid`, the area within `least` and `most` pixels."""
    width, height = size
    columns, rows = max(1, round(width / grid)), max(1, round(height / grid))
    area = columns * rows * grid * grid
    if most is not None and area > most:
        scale = math.sqrt(width * height / most)
        columns, rows = (max(1, math.floor(one / scale / grid)) for one in size)
    elif area < least:
        scale = math.sqrt(least / (width * height))
        columns, rows = (math.ceil(one * scale / grid) for one in size)
    return columns * grid, rows * grid


@lru_cache(maxsize=256)
def read_frame(text: str) -> Frame:
    """Return the frame that is spelt so; another spelling is a ConfigError that names some."""
    scale, *words = text.split() or [""]
    told: dict[str, object] = {}
    number = _SCALE.fullmatch(scale)
    if number and float(number[1]) > 0:
        told["edge"] = float(number[1])
    elif scale in (PIXELS, SENT_PIXELS):
        told["of_source"] = scale == PIXELS
    else:
        raise ConfigError(f"{text!r} is no frame of coordinates: write {', '.join(COMMON)} or any other 0-N")
    for word in words:
        name, _, value = word.partition("=")
        if word in _FLAGS:
            field, flag = _FLAGS[word]
            told[field] = flag
        elif name in _LIMITS and value.isdecimal() and int(value) > 0 and number is None:
            told[name] = int(value)
        else:
            known = ", ".join((*_FLAGS, *(f"{name}=N (of pixels)" for name in _LIMITS)))
            raise ConfigError(f"{text!r} is no frame of coordinates: {word!r} is none of {known}")
    return Frame(**told)  # type: ignore[arg-type]

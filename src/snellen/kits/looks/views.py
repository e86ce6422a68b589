"""A box that a model names to the region of the source file, and to the picture of it: pure geometry.

A *view* is a picture that was shown. It knows which part of the source it shows, so a box on a crop is a box on the
source: nothing is ever cut out of a shrunk or cut copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.frames import Size, read_frame
from ...core.looks import Box
from ...core.types import Image

SHRINKING = ("fit:", "scale:")
"""Edits that only make a picture smaller: a closer look leaves them out."""
OUTSIDE = 0.05
"""By this share of a side a box may pass the picture; one that lies farther out is meant in another frame."""
Rectangle = tuple[float, float, float, float]


class CallError(ValueError):
    """Why a call cannot be done: its class, and what the model is told."""

    def __init__(self, problem: str, told: str) -> None:
        super().__init__(told)
        self.problem = problem


class View(NamedTuple):
    """A picture that was shown, and what it shows of its source."""

    base: Image
    """The source with its edits, but for those that only shrink it."""
    size: Size
    """Of the base."""
    offset: tuple[int, int]
    """Where the base begins in the upright source file: it may be a part of it."""
    region: Box
    """What is shown of the base."""
    turned: int = 0
    """Degrees clockwise by which it is turned."""
    enhanced: tuple[str, ...] = ()
    shown: Size = (0, 0)
    """Of the picture as it was made."""
    sent: Size | None = None
    """Of the picture as it was sent; None: not known yet."""
    image: Image | None = None
    first: bool = True
    """Whether it belongs to the question; else a tool made it."""

    def edges(self, frame: str) -> tuple[float, float]:
        """Return the numbers that stand for the right and the lower edge."""
        counted = read_frame(frame)
        return counted.extent(self.shown if counted.of_source else self.sent or self.shown)

    def source(self, region: Box) -> Box:
        """Return a region of the base in pixels of the source file."""
        left, top = self.offset
        return region[0] + left, region[1] + top, region[2] + left, region[3] + top

    def to_base(self, box: Rectangle) -> Rectangle:
        """Return a box in shares of the shown picture as a box in pixels of the base."""
        corners = [_turned_back(x, y, self.turned) for x, y in ((box[0], box[1]), (box[2], box[3]))]
        (x0, y0), (x1, y1) = corners
        left, top, right, bottom = self.region
        width, height = right - left, bottom - top
        xs, ys = sorted((x0, x1)), sorted((y0, y1))
        return left + xs[0] * width, top + ys[0] * height, left + xs[1] * width, top + ys[1] * height


def _turned_back(x: float, y: float, degrees: int) -> tuple[float, float]:
    """Return where a point of a picture that was turned clockwise lay before, in shares."""
    return {0: (x, y), 90: (y, 1 - x), 180: (1 - x, 1 - y), 270: (1 - y, x)}[degrees]


def first_view(image: Image, size: Size, shown: Size, offset: tuple[int, int] = (0, 0)) -> View:
    """Return the view of a question's own picture: all of its base, whatever size it is shown in."""
    edits = tuple(edit for edit in image.edits if not edit.startswith(SHRINKING))
    return View(replace(image, edits=edits), size, offset, (0, 0, *size), shown=shown, image=image)


class ZoomRules(Struct, frozen=True):
    """How a region is chosen and drawn. The defaults are ours; presets are those of other projects."""

    least: int = 32
    """A shorter side grows about its centre."""
    refuse_small: bool = False
    """Whether a side that is not longer than `least` is refused instead."""
    aspect: float = 100.0
    """The longest side over the shortest, at most."""
    rounding: str = "outward"
    """How a box becomes whole pixels: `outward`, `nearest` or `down`."""
    kernel: str = "lanczos"
    grid: int = 0
    """Sides are multiples of it; 0: any."""
    least_pixels: int = 0
    """With `grid`: the area is at least so large."""
    most_pixels: int = 12_845_056
    enlarge: float = 4.0
    """Without `grid`: by so much at most; 0: never."""
    to_original: bool = False
    """Whether the result is no larger than the picture it was cut from, instead of the model's longest side."""
    pad: float = 0.0
    """The box grows by this share of the picture on each side, by `most_pad` pixels at most."""
    most_pad: int = 600
    strict: bool = True
    """Whether a box outside the frame, or empty, is refused; else it is only cut."""


class Zoomed(NamedTuple):
    """What a zoom shows."""

    view: View
    enlargement: float
    notes: tuple[str, ...]


def read_box(values: object) -> Rectangle:
    """Return four finite numbers, or refuse them; numbers in quotes are numbers too."""
    if isinstance(values, str):
        values = [part for part in values.strip("[]() ").replace(",", " ").split() if part]
    if not isinstance(values, Sequence) or len(values) != 4:
        raise CallError("schema", "box must be four numbers: left, top, right, bottom")
    x0, y0, x1, y1 = map(read_number, values)
    return x0, y0, x1, y1


def read_number(value: object) -> float:
    """Return a finite number, also from a text."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise CallError("schema", f"{str(value)[:40]!r} is not a finite number")
    return number


def zoom(view: View, box: Rectangle, frame: str, rules: ZoomRules, longest: int) -> Zoomed:
    """Return the view of a region; what is wrong with a box is found in a fixed order."""
    notes: list[str] = []
    shares = _shares(view, box, frame, rules, notes)
    if rules.grid:
        return _zoom_on_grid(view, view.to_base(shares), rules, notes)
    region = _whole(view.to_base(shares), rules.rounding)
    region = _in_bounds(region, view.size)
    if region[2] <= region[0] or region[3] <= region[1]:
        raise CallError("empty", "the box has no area")
    grown = _grow(region, view, rules)
    notes += ["grown"] if grown != region else []
    width, height = grown[2] - grown[0], grown[3] - grown[1]
    if max(width, height) > rules.aspect * min(width, height):
        raise CallError("aspect", f"the box is {width} by {height} pixels: too long for its width")
    return draw(view._replace(region=grown), rules, longest, notes)


def _shares(view: View, box: Rectangle, frame: str, rules: ZoomRules, notes: list[str]) -> Rectangle:
    """Return the box in shares of the shown picture, its corners in order and within its edges."""
    across, down = view.edges(frame)
    x0, y0, x1, y1 = box[0] / across, box[1] / down, box[2] / across, box[3] / down
    if x0 > x1 or y0 > y1:
        notes.append("swapped")
        x0, x1, y0, y1 = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
    if rules.strict and (min(x0, y0) < -OUTSIDE or max(x1, y1) > 1 + OUTSIDE):
        raise CallError("frame", f"the box lies outside the picture, which goes from 0, 0 to {across:g}, {down:g}")
    if rules.pad:
        x0, y0, x1, y1 = _padded((x0, y0, x1, y1), view, rules)
    inside = (max(0.0, x0), max(0.0, y0), min(1.0, x1), min(1.0, y1))
    notes += ["clamped"] if inside != (x0, y0, x1, y1) and not rules.pad else []
    if inside[0] >= inside[2] or inside[1] >= inside[3]:
        raise CallError("empty", "the box has no area")
    return inside


def _padded(box: Rectangle, view: View, rules: ZoomRules) -> Rectangle:
    across, down = (min(rules.pad, rules.most_pad / side) for side in view.shown)
    return box[0] - across, box[1] - down, box[2] + across, box[3] + down


TINY = 1e-6
"""What a division leaves behind is no pixel more."""


def _whole(box: Rectangle, rounding: str) -> Box:
    if rounding == "nearest":
        left, top, right, bottom = map(round, box)
    elif rounding == "down":
        left, top, right, bottom = (int(value + TINY) for value in box)
    else:
        left, top = math.floor(box[0] + TINY), math.floor(box[1] + TINY)
        right, bottom = math.ceil(box[2] - TINY), math.ceil(box[3] - TINY)
    return left, top, right, bottom


def _in_bounds(box: Box, size: Size) -> Box:
    return max(0, box[0]), max(0, box[1]), min(size[0], box[2]), min(size[1], box[3])


def _grow(region: Box, view: View, rules: ZoomRules) -> Box:
    """Return the region with sides of the least length, about its centre and shifted inside the picture."""
    sides = region[2] - region[0], region[3] - region[1]
    if min(sides) > rules.least or (min(sides) == rules.least and not rules.refuse_small):
        return region
    if rules.refuse_small:
        raise CallError("empty", f"the region is {sides[0]} by {sides[1]} pixels: too small")
    left, right = _stretched(region[0], region[2], rules.least, view.size[0])
    top, bottom = _stretched(region[1], region[3], rules.least, view.size[1])
    return left, top, right, bottom


def _stretched(low: int, high: int, least: int, most: int) -> tuple[int, int]:
    if high - low >= least:
        return low, high
    length = min(least, most)
    start = min(max(0, (low + high - length) // 2), most - length)
    return start, start + length


def _zoom_on_grid(view: View, box: Rectangle, rules: ZoomRules, notes: list[str]) -> Zoomed:
    """Zoom as the projects of Qwen-VL do: in fractions of pixels to the end, then to the nearest ones."""
    grown = _grown_alike(box, view.size, rules.least)
    notes += ["grown"] if grown != box else []
    sides = grown[2] - grown[0], grown[3] - grown[1]
    if max(sides) > rules.aspect * min(sides):
        raise CallError("aspect", f"the box is {sides[0]:.0f} by {sides[1]:.0f} pixels: too long for its width")
    region = _in_bounds(_whole(grown, rules.rounding), view.size)
    if region[2] <= region[0] or region[3] <= region[1]:
        raise CallError("empty", "the box has no area")
    return _drawn(view._replace(region=region), grid_size(sides, rules), rules, notes)


def _grown_alike(box: Rectangle, size: Size, least: int) -> Rectangle:
    """Return a box whose sides grew by the same factor about its centre, where the shorter one is below the least."""
    width, height = box[2] - box[0], box[3] - box[1]
    if min(width, height) >= least:
        return box
    ratio, middle = least / min(width, height), ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    half = math.ceil(width * ratio * 0.5), math.ceil(height * ratio * 0.5)
    low = [max(0, math.floor(middle[axis] - half[axis])) for axis in (0, 1)]
    high = [min(size[axis], math.ceil(middle[axis] + half[axis])) for axis in (0, 1)]
    fits = high[0] - low[0] > least and high[1] - low[1] > least
    return (low[0], low[1], high[0], high[1]) if fits else box


def draw(view: View, rules: ZoomRules, longest: int, notes: Sequence[str] = ()) -> Zoomed:
    """Return a view with the picture of its region, in the size that the rules give it."""
    own = _own_size(view)
    return _drawn(view, grid_size(own, rules) if rules.grid else _drawn_size(own, view, rules, longest), rules, notes)


def _own_size(view: View) -> Size:
    left, top, right, bottom = view.region
    return (right - left, bottom - top) if view.turned % 180 == 0 else (bottom - top, right - left)


def _drawn(view: View, size: Size, rules: ZoomRules, notes: Sequence[str]) -> Zoomed:
    own = _own_size(view)
    edits = [*view.base.edits, "region:{},{},{},{}".format(*view.region)]
    edits += [f"turn:{view.turned}"] if view.turned else []
    edits += [f"enhance:{one}" for one in view.enhanced]
    edits += [f"resize:{size[0]}x{size[1]}:{rules.kernel}"] if size != own else []
    image = replace(view.base, edits=tuple(edits), width=None, height=None, sha256=None)
    drawn = view._replace(shown=size, sent=None, image=image, first=False)
    return Zoomed(drawn, round(max(size) / max(own), 4), tuple(notes))


def _drawn_size(own: Size, view: View, rules: ZoomRules, longest: int) -> Size:
    if not rules.enlarge:
        return own
    limit = max(view.size) if rules.to_original else longest
    target = max(*own, min(float(limit), rules.enlarge * max(own)))
    factor = target / max(own)
    return max(1, round(own[0] * factor)), max(1, round(own[1] * factor))


def grid_size(own: tuple[float, float], rules: ZoomRules) -> Size:
    """Return the nearest size whose sides are multiples of the grid and whose area is within the bounds."""
    grid, area = rules.grid, own[0] * own[1]
    width, height = (max(grid, round(side / grid) * grid) for side in own)
    if width * height > rules.most_pixels:
        beta = math.sqrt(area / rules.most_pixels)
        width, height = (math.floor(side / beta / grid) * grid for side in own)
    elif width * height < rules.least_pixels:
        beta = math.sqrt(rules.least_pixels / area)
        width, height = (math.ceil(side * beta / grid) * grid for side in own)
    return width, height


def overlap(first: Box, second: Box) -> float:
    """Return the area that two regions share over the area that they cover."""
    across = min(first[2], second[2]) - max(first[0], second[0])
    down = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(0, across) * max(0, down)
    return shared / (area_of(first) + area_of(second) - shared) if shared else 0.0


def area_of(box: Box) -> int:
    """Return how many pixels a region has."""
    return (box[2] - box[0]) * (box[3] - box[1])

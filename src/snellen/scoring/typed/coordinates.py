"""Coordinates in some frame to fractions of the picture: which numbers are its edges is declared, never guessed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...core.errors import ConfigError, not_among
from ...core.types import Prediction, Sample

EDGES = {"0-1": 1.0, "0-100": 100.0, "0-999": 999.0, "0-1000": 1000.0}
"""Frame -> the number that stands for the right and the lower edge."""
PIXELS, SENT_PIXELS = "pixels", "sent-pixels"
"""Pixels of the picture as its source has it, and of the picture as it left: it may have been made smaller."""
FRAMES = (*EDGES, PIXELS, SENT_PIXELS)
ORDERS = ("xyxy", "xywh", "yxyx")
"""How four numbers are a box: two corners, a corner and a size, two corners with y first."""
OVERSHOOT = 0.05
"""How far a coordinate may lie outside the picture and still be meant in this frame."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


class Coordinates(Struct, frozen=True, forbid_unknown_fields=True):
    """What a card says of boxes and points: in its data (`gold`) and in the replies its prompt asks for."""

    gold: str
    reply: str
    gold_order: str = "xyxy"
    reply_order: str = "xyxy"

    def __post_init__(self) -> None:
        for name in ("gold", "reply"):
            frame, order = getattr(self, name), getattr(self, f"{name}_order")
            if frame not in FRAMES:
                raise ConfigError(f"coordinates.{name} {not_among(frame, FRAMES, ' is no frame')}")
            if order not in ORDERS:
                raise ConfigError(f"coordinates.{name}_order {not_among(order, ORDERS, ' is no order')}")


class FrameProblem(ValueError):
    """Why numbers cannot be placed in the picture; a reason not to score."""


def fractions(
    values: Sequence[float], frame: str, size: tuple[int, int] | None, *, y_first: bool = False
) -> list[float]:
    """Return coordinates (x, y, x, y …) as fractions of the picture, or say why they cannot be."""
    if frame in EDGES:
        scale = (EDGES[frame], EDGES[frame])
        _refuse_fractions(values, frame)
    elif size is None:
        raise FrameProblem(f"the size of the picture is not known, and coordinates are in {frame}")
    else:
        scale = (float(size[0]), float(size[1]))
        _refuse_fractions(values, frame)
    sides = scale[::-1] if y_first else scale
    placed = [value / sides[place % 2] for place, value in enumerate(values)]
    if any(not -OVERSHOOT <= one <= 1.0 + OVERSHOOT for one in placed):
        raise FrameProblem(f"coordinates outside the picture: not in the frame {frame}")
    return placed


def _refuse_fractions(values: Sequence[float], frame: str) -> None:
    """Refuse what was plainly written in fractions where hundreds are meant: it would be a box in a corner.

    The whole picture is `[0, 0, 1, 1]` then, which is no smaller mistake for being in whole numbers.
    """
    if frame != "0-1" and all(0.0 <= value <= 1.0 for value in values) and any(values):
        raise FrameProblem(f"coordinates are fractions of the picture, not in the frame {frame}")


def place_box(values: Sequence[float], frame: str, order: str, size: tuple[int, int] | None) -> Box:
    """Return four numbers as (left, top, right, bottom) in fractions of the picture."""
    if len(values) != 4:
        raise FrameProblem(f"a box has four numbers, not {len(values)}")
    first, second, third, fourth = values
    if order == "xywh":
        third, fourth = first + third, second + fourth
    a, b, c, d = fractions((first, second, third, fourth), frame, size, y_first=order == "yxyx")
    return (b, a, d, c) if order == "yxyx" else (a, b, c, d)


def picture_size(frame: str, sample: Sample, prediction: Prediction) -> tuple[int, int] | None:
    """Return width and height that a frame counts in, of the first picture; None where nobody knows."""
    sent = prediction.images[0] if prediction.images else None
    if frame == SENT_PIXELS:
        return None if sent is None else (sent.width, sent.height)
    if sent is not None:
        return sent.original or (sent.width, sent.height)
    image = sample.images[0] if sample.images else None
    return None if image is None or not image.width or not image.height else (image.width, image.height)


def overlap(first: Box, second: Box) -> float:
    """Return the intersection over union of two boxes; 0 where either has no area."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    shared = width * height
    return shared / (_area(first) + _area(second) - shared)


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def has_area(box: Box) -> bool:
    """Tell whether a box is one: its right edge right of the left, its lower below the upper."""
    return box[0] < box[2] and box[1] < box[3]


def is_inside(point: Point, box: Box) -> bool:
    """Tell whether a point lies in a box; its edges belong to it."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]

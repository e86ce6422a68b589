"""What an arm shows instead of a crop: nothing but the picture differs between arms."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ...core.looks import ELSEWHERE, GOLD, GREY, NOTHING, WHOLE, Box
from ...core.types import Image, Sample
from .views import View, ZoomRules, area_of, draw, overlap

TRIES = 200


def stand_in(
    arm: str, view: View, gold: Box | None, other: Image | None, draw_by: random.Random, *, first: View | None = None
) -> Image | None:
    """Return the picture that an arm shows instead of a view's; None where it shows none.

    The gold box lies on the `first` picture of the question, whichever was looked at.
    """
    image = view.image
    if arm == NOTHING or image is None:
        return None
    if arm == GREY:
        return replace(image, edits=(*image.edits, "grey:mean"))
    if arm == WHOLE:
        return _whole(view)
    whole = first or view
    if arm == GOLD and gold is not None:
        return _of_region(whole._replace(shown=view.shown), _doubled(gold, whole.size))
    if arm == ELSEWHERE:
        return _elsewhere(view, gold if view.base == whole.base else None, other, draw_by)
    return image


def _whole(view: View) -> Image:
    """Return the whole picture at the pixel count of the crop."""
    factor = (view.shown[0] * view.shown[1] / (view.size[0] * view.size[1])) ** 0.5
    size = max(1, round(view.size[0] * factor)), max(1, round(view.size[1] * factor))
    edits = (*view.base.edits, "region:0,0,{},{}".format(*view.size), f"resize:{size[0]}x{size[1]}:lanczos")
    return replace(view.base, edits=edits, width=None, height=None, sha256=None)


def _of_region(view: View, region: Box) -> Image:
    """Return another region as a zoom shows it, no longer than this one's picture."""
    image = draw(view._replace(region=region, turned=0, enhanced=()), ZoomRules(), max(view.shown)).view.image
    return image or view.base


def _doubled(box: Box, size: tuple[int, int]) -> Box:
    """Return a box of twice the sides about the same centre, within the picture."""
    width, height = box[2] - box[0], box[3] - box[1]
    left, top = box[0] - width // 2, box[1] - height // 2
    return max(0, left), max(0, top), min(size[0], left + 2 * width), min(size[1], top + 2 * height)


def _elsewhere(view: View, gold: Box | None, other: Image | None, draw_by: random.Random) -> Image:
    """Return a region of the same size that shares nothing with what was asked for and with the gold box."""
    left, top, right, bottom = view.region
    width, height = right - left, bottom - top
    for _ in range(TRIES):
        x, y = draw_by.randint(0, view.size[0] - width), draw_by.randint(0, view.size[1] - height)
        place = (x, y, x + width, y + height)
        if not overlap(place, view.region) and not (gold is not None and overlap(place, gold)):
            moved = draw(view._replace(region=place), ZoomRules(enlarge=0), 0).view.image
            return _at_size(moved or view.base, view.shown)
    if other is None:
        return _at_size(replace(view.image or view.base, edits=(*view.base.edits, "grey:mean")), view.shown)
    return _at_size(other, view.shown)


def _at_size(image: Image, size: tuple[int, int]) -> Image:
    edits = (*image.edits, f"resize:{size[0]}x{size[1]}:lanczos")
    return replace(image, edits=edits, width=None, height=None, sha256=None)


def gold_box(sample: Sample, options: Mapping[str, Any], size: tuple[int, int]) -> Box | None:
    """Return the region that the data names, in pixels: `box` of its columns, or an answer in known coordinates."""
    told = next(
        (place[name] for place in (sample.meta, sample.tags) for name in ("box", "boxes") if name in place), None
    )
    values = _four(told)
    edge, order = 1.0 if values and max(values) <= 1 else 0.0, "xyxy"
    if values is None and isinstance(options.get("coordinates"), Mapping) and sample.answers:
        coordinates = options["coordinates"]
        values, order = _four(sample.answers[0]), str(coordinates.get("gold_order", "xyxy"))
        ends = {"0-1": 1.0, "0-100": 100.0, "0-999": 999.0, "0-1000": 1000.0}
        edge = ends.get(str(coordinates.get("gold")), 0.0)
    if values is None:
        return None
    x0, y0, x1, y1 = (values[1], values[0], values[3], values[2]) if order == "yxyx" else values
    x1, y1 = (x0 + x1, y0 + y1) if order == "xywh" else (x1, y1)
    across, down = (size[0] / edge, size[1] / edge) if edge else (1.0, 1.0)
    box = (int(x0 * across), int(y0 * down), round(x1 * across), round(y1 * down))
    fits = 0 <= box[0] < box[2] <= size[0] and 0 <= box[1] < box[3] <= size[1] and area_of(box) > 0
    return box if fits else None


def _four(value: Any) -> tuple[float, float, float, float] | None:
    if isinstance(value, str):
        text = value.strip()
        try:
            value = msgspec.json.decode(text if text.startswith(("[", "{")) else f"[{text}]")
        except msgspec.DecodeError:
            return None
    if isinstance(value, Sequence) and value and isinstance(value[0], Sequence | Mapping):
        value = value[0].get("box") if isinstance(value[0], Mapping) else value[0]
    if not isinstance(value, Sequence) or len(value) != 4:
        return None
    numbers = [float(one) for one in value if isinstance(one, int | float) and not isinstance(one, bool)]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None

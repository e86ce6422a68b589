"""The rules of OSWorld-G, ScreenSpot-Pro and RefSpatial as their authors publish them, on drawn targets and replies.

What is right is computed here from the published rules, on plain numbers; `place` gets the same as a card has it.
"""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import PIL.Image

from snellen.core.types import Form, Image, ImageSent, Prediction, Request, Sample, TrialKey
from snellen.data.catalog import Catalog
from snellen.data.images.decode import mask_runs
from snellen.scoring.scorers.grounding import score_place

KEY = TrialKey("t", "1")
SIZES = ((1920, 1080), (1280, 720), (800, 1200))
DRAWS = 3000


@cache
def options_of(card: str, protocol: str) -> dict[str, Any]:
    return Catalog().task(card, protocol=protocol).score_options


def by_place(card: str, protocol: str, reply: str, answer: str, size: tuple[int, int]) -> float:
    """Return the accuracy by the card's own options; what is not read is not right."""
    options = options_of(card, protocol)
    sample = Sample("1", "t", Form.OPEN, "?", (Image("/x.png"),), answers=(answer,))
    sent = ImageSent("0" * 64, "image/png", *size, 10)
    scores = score_place(sample, Request(KEY, ()), Prediction(KEY, text=reply, images=(sent,)), options)
    return next(score.value or 0.0 for score in scores if score.metric == "accuracy")


def inside_polygon(x: float, y: float, corners: Sequence[float]) -> bool:
    """The even-odd rule, side by side: each side takes its lower end and not its upper one."""
    inside = False
    points = list(zip(corners[::2], corners[1::2], strict=True))
    for (xi, yi), (xj, yj) in zip(points, points[-1:] + points[:-1], strict=True):
        if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
            inside = not inside
    return inside


def osworld_right(kind: str, target: Sequence[float], point: tuple[float, float], size: tuple[int, int]) -> bool:
    """All numbers from 0 to 1 are fractions, others pixels; a refusal is right if both are negative."""
    x, y = point
    if 0 <= x <= 1 and 0 <= y <= 1:
        x, y = x * size[0], y * size[1]
    if kind == "refusal":
        return x < 0 and y < 0
    if kind == "polygon":
        return inside_polygon(x, y, target)
    return target[0] <= x <= target[0] + target[2] and target[1] <= y <= target[1] + target[3]


def drawn_target(draw: random.Random, size: tuple[int, int]) -> tuple[str, list[float], str]:
    kind = draw.choice(("bbox", "bbox", "polygon", "refusal"))
    if kind == "refusal":
        return kind, [0, 0, 0, 0], "absent"
    if kind == "bbox":
        wide, high = draw.randint(5, 300), draw.randint(5, 200)
        target: list[float] = [draw.randint(0, size[0] - wide), draw.randint(0, size[1] - high), wide, high]
    else:
        middle, count = [draw.uniform(0.3, 0.7) * side for side in size], draw.randint(3, 7)
        reach = [draw.uniform(40, 200) for _ in range(count)]
        turns = [2 * np.pi * n / count for n in range(count)]
        corners = [(middle[0] + r * np.cos(t), middle[1] + r * np.sin(t)) for r, t in zip(reach, turns, strict=True)]
        target = [round(float(part), 2) for corner in corners for part in corner]
    return kind, target, str(target)


def test_osworld_g_is_right_where_the_authors_script_says_so() -> None:
    draw, right = random.Random(38), 0
    for _ in range(DRAWS):
        size = draw.choice(SIZES)
        kind, target, answer = drawn_target(draw, size)
        way = draw.random()
        near = target[:2] if kind == "polygon" else [target[0] + target[2] / 2, target[1] + target[3] / 2]
        point = (round(near[0] + draw.gauss(0, 60)), round(near[1] + draw.gauss(0, 60)))
        if way < 0.3:
            point = (round(near[0] / size[0], 3), round(near[1] / size[1], 3))  # type: ignore[assignment]
        elif way < 0.45:
            point = (-1, -1)
        elif way < 0.5 and kind == "bbox":
            point = (target[0], target[1])  # type: ignore[assignment] - an edge belongs to the box
        wanted = osworld_right(kind, target, point, size)
        reply = draw.choice(("[{0}, {1}]", "({0}, {1})", "click(x={0}, y={1})")).format(*point)
        assert by_place("osworld-g", "lmms-eval", reply, answer, size) == float(wanted), (kind, target, reply, size)
        right += wanted
    assert 0.2 * DRAWS < right < 0.8 * DRAWS


def test_screenspot_pro_is_right_on_its_edges_and_inside() -> None:
    draw, right = random.Random(39), 0
    for _ in range(DRAWS):
        size = draw.choice(SIZES)
        left, top = draw.randint(0, size[0] - 60), draw.randint(0, size[1] - 60)
        box = [left, top, left + draw.randint(8, 50), top + draw.randint(8, 50)]
        point = draw.choice(
            ((box[0], box[1]), (box[2], draw.randint(box[1], box[3])), (left + draw.randint(-30, 60), top))
        )
        wanted = box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]
        reply = f"({point[0]}, {point[1]})"
        if min(point) <= 1:
            continue  # (1, 1) and (0, 1) are pixels and fractions alike: `place` reads neither
        assert by_place("screenspot-pro", "pixels", reply, str(box), size) == float(wanted), (box, point, size)
        right += wanted
    assert right > DRAWS / 2


def test_refspatial_is_the_share_of_points_in_the_mask() -> None:
    draw = random.Random(40)
    for _ in range(200):
        wide, high = draw.randint(20, 90), draw.randint(20, 90)
        mask = np.zeros((high, wide), np.uint8)
        x0, y0 = draw.randint(0, wide - 5), draw.randint(0, high - 5)
        mask[y0 : y0 + draw.randint(3, 40), x0 : x0 + draw.randint(3, 40)] = 255
        out = io.BytesIO()
        PIL.Image.fromarray(mask).save(out, "PNG")
        points = [
            (round(draw.uniform(-0.1, 1.1), 3), round(draw.uniform(-0.1, 1.1), 3)) for _ in range(draw.randint(1, 6))
        ]
        pixels = [(int(x * wide), int(y * high)) for x, y in points]
        hits = [0 <= x < wide and 0 <= y < high and mask[y, x] > 0 for x, y in pixels]
        reply = "[" + ", ".join(f"({x}, {y})" for x, y in points) + "]"
        answer = mask_runs(out.getvalue(), "made")
        value = by_place("refspatial-location", "official", reply, answer, (wide, high))
        assert value == sum(hits) / len(hits), (reply, hits)

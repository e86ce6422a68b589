"""`sight.figure_plates`, `sight.reading_plates`: what is drawn is what is asked, and no sum over a panel tells it."""

from __future__ import annotations

import io
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from exam_observer import USUAL, Observer, sit
from snellen.sight.advice import prescribe
from snellen.sight.cards import eye_test
from snellen.sight.choice_plates import QUADRANTS
from snellen.sight.figure_plates import CHIRAL, LANES, SHAPES, by_mirror, by_turn, smooth, swaps_between
from snellen.sight.plate import Bench

FIGURES = ("pairs", "mirror", "mental-rotation", "occlusion", "figure-ground", "path")
NEW = (*FIGURES, "scene-text", "lookup-picture", "lookup-text")


def pixels(name: str, level: float, answer: str, number: int) -> Any:
    stimulus = eye_test(name).draw(level, answer, random.Random(number), Bench())
    return np.asarray(PIL.Image.open(io.BytesIO(stimulus.pictures[0])).convert("L"), float)


def cells(name: str) -> set[tuple[int, int]]:
    return set(CHIRAL[name])


def turned(some: set[tuple[int, int]], *, mirrored: bool) -> set[frozenset[tuple[int, int]]]:
    """All ways a figure can lie on the grid, at the origin."""
    ways = set()
    for _ in range(4):
        some = {(-y, x) for x, y in some}
        other = {(-x, y) for x, y in some} if mirrored else some
        left, top = min(x for x, _ in other), min(y for _, y in other)
        ways.add(frozenset((x - left, y - top) for x, y in other))
    return ways


@pytest.mark.parametrize("name", sorted(CHIRAL))
def test_no_turn_makes_a_figure_its_own_mirror_image(name: str) -> None:
    assert not turned(cells(name), mirrored=False) & turned(cells(name), mirrored=True)


def orientation(shape: Any) -> float:
    """The sign of the turn from the first corner of a square to the next: mirrored squares run the other way."""
    (x0, y0), (x1, y1), (x2, y2) = shape[0][:3]
    return math.copysign(1.0, (x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1))


@pytest.mark.parametrize("make", [by_mirror, by_turn])
def test_the_odd_pair_alone_is_mirrored(make: Any) -> None:
    for number in range(40):
        for odd in (False, True):
            first, second = make(50.0, odd, random.Random(number))
            assert (orientation(first) != orientation(second)) == odd


def test_a_line_ends_where_its_crossings_lead_and_its_start_tells_nothing() -> None:
    draw, same = random.Random(1), 0
    for number in range(400):
        start, end = draw.randrange(LANES), number % LANES
        swaps = swaps_between(start, end, 3 + number % 20, draw)
        order = list(range(LANES))
        for swap in swaps:
            order[swap], order[swap + 1] = order[swap + 1], order[swap]
        assert order.index(start) == end and len(swaps) == 3 + number % 20
        same += start == end
    assert abs(same / 400 - 0.25) < 3 * math.sqrt(0.25 * 0.75 / 400)
    assert smooth([(0, 0), (10, 5)])[-1] == (10, 5)


def test_hidden_shapes_have_the_same_ink_and_show_as_much_as_the_level_says() -> None:
    areas = []
    for shape in SHAPES.values():
        x, y = np.array(shape).T
        areas.append(0.5 * abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))))
    assert areas == pytest.approx([2.0] * 4)
    test = eye_test("occlusion")
    for level in (0.06, 0.3, 0.9):
        stimulus = test.draw(level, "top left", random.Random(3), Bench())
        assert 0.75 * level <= stimulus.level <= level or stimulus.level == test.card.hardest
        assert stimulus.detail["shape"] in test.ask(stimulus, 0, random.Random(1))


@pytest.mark.parametrize("name", ["occlusion", "pairs", "mirror", "mental-rotation", "figure-ground"])
def test_the_panel_with_most_or_least_ink_is_no_answer(name: str) -> None:
    card, hits, count = eye_test(name).card, [0, 0], 32
    level = card.axis.level((card.axis.x(card.hardest) + card.axis.x(card.easiest)) / 2)
    for number in range(count):
        answer = card.answers[number % 4]
        dark = 255 - pixels(name, level, answer, number)
        half = dark.shape[0] // 2
        sums = {
            place: dark[row * half : (row + 1) * half, column * half : (column + 1) * half].sum()
            for place, (column, row) in QUADRANTS.items()
        }
        order = sorted(sums, key=lambda place: sums[place])
        hits = [hits[0] + (answer == order[0]), hits[1] + (answer == order[-1])]
    assert max(hits) / count < 0.25 + 3 * math.sqrt(0.25 * 0.75 / count)


def test_a_list_is_the_same_as_a_picture_and_as_text() -> None:
    drawn, written = (
        eye_test(name).draw(30, "", random.Random(4), Bench()) for name in ("lookup-picture", "lookup-text")
    )
    assert drawn.truth == written.truth and drawn.detail["codes"] == written.detail["codes"]
    question = eye_test("lookup-text").ask(written, 0, random.Random(1))
    assert f"{written.detail['number']} {written.truth}" in question and not written.pictures
    assert drawn.truth not in eye_test("lookup-picture").ask(drawn, 0, random.Random(1))


@pytest.mark.parametrize("names", [("mirror", "lookup-text"), pytest.param(NEW, marks=pytest.mark.nightly)])
def test_the_new_tests_measure_observers_whose_thresholds_are_known(tmp_path: Path, names: tuple[str, ...]) -> None:
    result = sit(tmp_path / "run", Observer(), mode="quick", tests=names)
    for name in names:
        found = result.exam["tests"][name]
        assert found["verdict"] == "measured", (name, found["verdict"], found["reason"])
        low, high = found["ci95"]
        assert low * 0.85 <= USUAL[name] <= high * 1.15, (name, found["ci95"])


def test_blind_replies_get_no_threshold_of_them(tmp_path: Path) -> None:
    result = sit(tmp_path / "run", Observer(random=True), mode="quick", tests=NEW)
    assert all(result.exam["tests"][name]["value"] is None for name in NEW)


def listed(value: float | None, ci95: list[float] | None, verdict: str = "measured", **more: Any) -> dict[str, Any]:
    base = {"value": value, "ci95": ci95, "verdict": verdict, "axis": [400.0, 4.0], "trials": 80, "unit": "entries"}
    return (
        base
        | {"x95": 20.0, "x95_upper90": 15.0, "bound": None, "title": "List", "right": 40, "wrong": 40, "reason": ""}
        | more
    )


def test_text_as_a_picture_is_compared_with_plain_text_beyond_noise() -> None:
    drawn = listed(40.0, [30.0, 50.0])
    for written, told in (
        (listed(150.0, [100.0, 220.0]), "2 times"),
        (listed(None, None, "at ceiling", bound=350.0), "7 times"),
        (listed(60.0, [45.0, 90.0]), ""),
        (listed(None, None, "not measurable"), ""),
    ):
        lines = {one.id: one.sentence for one in prescribe({"lookup-picture": drawn, "lookup-text": written}, None)}
        assert ("picture-text" in lines) == bool(told) and told in lines.get("picture-text", "")

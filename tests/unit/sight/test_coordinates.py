"""The plate and the result of coordinates: places on four canvases, parts beside them, and what is said of answers."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import PIL.Image
import pytest

from snellen.core.frames import read_frame
from snellen.sight.cards import eye_test
from snellen.sight.coordinates import CANVASES, Locating, coordinates_result, frame_words
from snellen.sight.exam_trials import Outcome
from snellen.sight.fixed import FixedTest
from snellen.sight.plate import Bench


def plate(name: str = "coordinates") -> Locating:
    test = eye_test(name)
    assert isinstance(test, Locating)
    return test


def sat(frame: str, *, noise: float = 4.0, name: str = "coordinates", speaks_of: str = "", tongue: str = "") -> Any:
    """Return the result of an answerer in a frame; `tongue` is said instead of anything."""
    test, draw = plate(name), random.Random(3)
    running = FixedTest(name, test, 5, places=test.places, trials=test.places)
    while planned := running.plan():
        outcomes = []
        for one in planned:
            detail = test.draw(1.0, one.answer, draw, Bench()).detail
            x, y, size = detail["x"], detail["y"], (detail["width"], detail["height"])
            if "part" in detail and speaks_of == "part":
                x, y, *size = detail["part"]
            share = ((x + draw.gauss(0, noise)) / size[0], (y + draw.gauss(0, noise)) / size[1])
            said = read_frame(frame).write(share, tuple(size))
            reading = test.read(tongue or f"({said[0]:.4g}, {said[1]:.4g})", "", detail)
            outcomes.append(Outcome(one, 1.0, reading, detail=detail))
        running.take(outcomes)
    return coordinates_result(running)


def test_every_canvas_has_its_places_and_parts_hold_the_disc() -> None:
    test, seen = plate(), []
    for place in range(test.places):
        stimulus = test.draw(1.0, str(place), random.Random(place), Bench())
        seen.append((stimulus.detail["width"], stimulus.detail["height"]))
        if len(stimulus.pictures) == 2:
            part = np.asarray(PIL.Image.open(io.BytesIO(stimulus.pictures[1])).convert("RGB"), int)
            rows, columns = np.nonzero(np.ptp(part, axis=2) > 60)
            x, y, width, height = stimulus.detail["part"]
            assert part.shape[:2] == (height, width)
            assert (columns.mean(), rows.mean()) == pytest.approx((x - 0.5, y - 0.5), abs=1.0)
            assert "second picture" in test.ask(stimulus, 0, random.Random(0))
    assert [seen[:32].count(canvas) for canvas in CANVASES] == [8, 8, 8, 8] and len(seen) == 40


def test_a_measured_frame_comes_with_its_figures() -> None:
    found = sat("sent-pixels area=1150000")
    assert found["verdict"] == "measured" and found["frame_probability"] > 0.9
    assert read_frame(found["card"]).area == pytest.approx(1_150_000, rel=0.02)
    assert abs(found["offset_px"][0]) < 3 and abs(found["offset_px"][1]) < 3
    assert found["ci95"][0] < found["value"] < found["ci95"][1] < found["q95_px"] < found["least_target_px"]
    assert (found["right"], found["wrong"]) == (40, 0)
    assert found["parts"] == found["parts"] | {"trials": 8, "speaks_of": "the whole picture"}
    assert all(one["apart_px"] >= 0 for one in found["not_told_apart"])


def test_a_shift_is_an_offset_and_not_hidden_in_the_frame() -> None:
    test = plate()
    running = FixedTest("coordinates", test, 5, places=test.places, trials=test.places)
    draw = random.Random(4)
    for planned in iter(running.plan, []):
        details = [test.draw(1.0, one.answer, draw, Bench()).detail for one in planned]
        replies = [f"({d['x'] + 12 + draw.gauss(0, 2):.0f}, {d['y'] - 7 + draw.gauss(0, 2):.0f})" for d in details]
        both = zip(planned, details, replies, strict=True)
        running.take([Outcome(one, 1.0, test.read(reply, "", d), detail=d) for one, d, reply in both])
    found = coordinates_result(running)
    assert found["card"] is not None and found["card"].startswith("sent-pixels")
    assert found["offset_px"] == pytest.approx([12, -7], abs=4)


def test_who_says_the_middle_or_nothing_has_no_frame() -> None:
    assert sat("0-1000", tongue="(500, 500)")["verdict"] == "not measurable"
    silent = sat("0-1000", tongue="I cannot see a disc.")
    assert silent["verdict"] == "not measurable" and "0 replies" in silent["reason"]


def test_who_speaks_of_the_part_is_said_and_locate_shows_none() -> None:
    assert sat("0-1000", speaks_of="part")["parts"]["speaks_of"] == "the part"
    asked = sat("sent-pixels", name="locate")
    assert asked["parts"] is None and asked["as_asked_px"] > 100 > asked["value"]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("0-1000 y-first", "0 to 1000 of width and height, y first"),
        ("sent-pixels", "pixels of the picture"),
        (
            "sent-pixels side=1568 area=1150000",
            "pixels of the picture after it was brought within a side of 1,568 px and within an area of 1,150,000 px",
        ),
        ("0-1000 padded-middle", "0 to 1000 of width and height, of a square around it (middle)"),
    ],
)
def test_a_frame_is_told_to_people(frame: str, words: str) -> None:
    assert frame_words(read_frame(frame)) == words

"""Places in replies of chat: the pair, or the middle of the box, that a person would read; or none."""

from __future__ import annotations

import time

import pytest

from snellen.extract.places import read_box, read_place, read_points


def pair_of(reply: str) -> tuple[float, float] | None:
    values = read_place(reply).values
    if len(values) == 4:
        return (values[0] + values[2]) / 2, (values[1] + values[3]) / 2
    return (values[0], values[1]) if values else None


def test_a_pair_is_read() -> None:
    assert pair_of("512, 300") == (512, 300)
    assert pair_of("(0.5, 0.25)") == (0.5, 0.25)
    assert pair_of("[10, 20, 30, 40]") == (20, 30)
    assert pair_of("somewhere") is None


@pytest.mark.parametrize(
    ("reply", "pair"),
    [
        ("x=512, y=300 (of 1000)", (512, 300)),
        ('[{"point_2d": [512, 300], "label": "disc"}]', (512, 300)),
        ('{"bbox_2d": [10, 20, 30, 40]}', (20, 30)),
        ("It is in the 2 by 2 grid's corner.\n512, 300", (512, 300)),
        ("512 and 300 on a canvas of 1344 x 1008", None),
        ("x=512, y=300, or x=10, y=20", None),
    ],
)
def test_a_pair_is_told_from_other_numbers(reply: str, pair: tuple[float, float] | None) -> None:
    assert pair_of(reply) == pair


def test_white_space_and_brackets_without_end_cost_no_time() -> None:
    began = time.process_time()
    for text in ("[1, 2" + " " * 100_000, "[1, 2" + "\n" * 100_000, "zoom " * 20_000, "[" * 20_000, "x1=1," * 20_000):
        read_place(text)
        read_box(text)
    assert time.process_time() - began < 4.0


@pytest.mark.parametrize(
    ("reply", "points"),
    [
        ("[(0.1, 0.2), (0.3, 0.4)]", [(0.1, 0.2), (0.3, 0.4)]),
        ('<points x1="10" y1="20" x2="30" y2="40" alt="cups">cups</points>', [(10, 20), (30, 40)]),
        ('[{"point": [10, 20]}, {"point": [30, 40]}]', [(10, 20), (30, 40)]),
        ("none", []),
        ("<think>(0.1, 0.2)", None),
    ],
)
def test_all_points_of_a_reply_are_read(reply: str, points: list[tuple[float, float]] | None) -> None:
    assert read_points(reply) == points


@pytest.mark.parametrize(
    ("reply", "values", "frame"),
    [
        ("<loc0100><loc0200><loc0300><loc0400> cat", (100, 200, 300, 400), "0-1024 y-first"),
        ("cat<loc_100><loc_200><loc_300><loc_400>", (100, 200, 300, 400), "0-1000"),
        ("<loc0100><loc0200>", (), ""),
    ],
)
def test_a_box_of_tokens_names_its_frame(reply: str, values: tuple[float, ...], frame: str) -> None:
    found = read_box(reply)
    assert (found.values, found.frame) == (values, frame)

"""Frames of coordinates: spelt and read back, placed and written back, on sizes that a generator draws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError
from snellen.core.frames import FrameProblem, on_grid, read_frame, resized

NAMES = (
    *("0-1", "0-100", "0-999", "0-1000", "0-1024", "0-896", "pixels", "sent-pixels", "0-1000 y-first", "0-1000 y-up"),
    *("0-1024 y-first y-up", "0-1000 padded", "0-672 padded-middle", "sent-pixels padded", "pixels y-first"),
    *("sent-pixels side=1568", "sent-pixels side=1568 area=1150000", "sent-pixels grid=28 area=1003520"),
)
sides = st.integers(64, 4000)
shares = st.floats(0.02, 0.98)


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_is_spelt_as_it_is_read(name: str) -> None:
    assert read_frame(name).name == name


@pytest.mark.parametrize(
    "name", ["", "1000", "0-0", "0-1000 x-first", "pixel", "0-1000 side=3", "sent-pixels grid=0", "sent-pixels grid"]
)
def test_another_spelling_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="frame"):
        read_frame(name)


@given(st.sampled_from(NAMES), sides, sides, shares, shares)
def test_what_is_written_in_a_frame_is_placed_where_it_was(
    name: str, width: int, height: int, x: float, y: float
) -> None:
    frame, size = read_frame(name), (width, height)
    written = frame.write((x, y), size)
    assert frame.place(written, size, anywhere=True) == pytest.approx([x, y])
    largest = frame.extent(size)
    across, down = written[::-1] if frame.y_first else written
    assert 0.0 <= across <= largest[0] and 0.0 <= down <= largest[1]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        # The point at 1/4 of the width and 1/5 of the height of 1600 by 800, by hand.
        ("0-1000", (250, 200)),
        ("0-1000 y-first", (200, 250)),
        ("0-1000 y-up", (250, 800)),
        ("0-1000 padded", (250, 100)),
        ("0-1000 padded-middle", (250, 350)),
        ("pixels", (400, 160)),
        ("sent-pixels side=800", (200, 80)),
        ("sent-pixels area=320000", (200, 80)),
        ("sent-pixels grid=28", (399, 162.4)),
    ],
)
def test_a_point_by_hand(name: str, written: tuple[float, float]) -> None:
    assert read_frame(name).write((0.25, 0.2), (1600, 800)) == pytest.approx(written)


def test_numbers_of_another_frame_are_refused_and_so_is_an_unknown_size() -> None:
    with pytest.raises(FrameProblem, match="outside"):
        read_frame("0-1000").place((250, 2000), None)
    with pytest.raises(FrameProblem, match="fractions"):
        read_frame("0-1000").place((0.25, 0.5), None)
    with pytest.raises(FrameProblem, match="size"):
        read_frame("sent-pixels").place((250, 500), None)
    with pytest.raises(FrameProblem, match="size"):
        read_frame("0-1000 padded").extent(None)
    assert read_frame("0-1000").place((1040, 0), None) == [1.04, 0.0]


# Sizes that transformers' smart_resize (factor 28, 3,136 to `most` pixels) gives; computed by its published rule.
@pytest.mark.parametrize(
    ("size", "most", "wanted"),
    [
        ((1344, 1008), 12_845_056, (1344, 1008)),
        ((1920, 1080), 12_845_056, (1932, 1092)),
        ((1920, 1080), 1_003_520, (1316, 728)),
        ((1344, 1008), 1_003_520, (1148, 840)),
        ((480, 360), 1_003_520, (476, 364)),
        ((30, 20), 1_003_520, (84, 56)),
    ],
)
def test_a_grid_is_that_of_smart_resize(size: tuple[int, int], most: int, wanted: tuple[int, int]) -> None:
    assert on_grid(size, 28, 3136, most) == wanted


@given(sides, sides, st.integers(200, 3000))
def test_a_resize_keeps_the_shape_and_the_limit(width: int, height: int, side: int) -> None:
    across, down = resized((width, height), side=side)
    assert (math.isclose(across / down, width / height) and max(across, down) <= max(side, 0) + 1e-6) or max(
        width, height
    ) <= side

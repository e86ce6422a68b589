"""The average precision of boxes: by hand, and as pycocotools 2.0 computes it for the same boxes (recorded)."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.stats.average_precision import Picture, average_precision, hits, mean_average_precision

RECORDED = {
    3: (0.1097266339, 0.200318301, 0.0908566681),
    4: (0.0615399655, 0.1276524096, 0.0649794979),
    5: (0.0739210622, 0.1815535511, 0.0453787707),
}
"""Seed -> mAP, mAP50 and mAP75 of COCOeval."""


def boxes(*rows: tuple[float, float, float, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(rows, np.float64).reshape(-1, 4)


def drawn(seed: int) -> list[list[Picture]]:
    """Three classes in twelve pictures; boxes that were found lie near some that are there, or anywhere."""
    rng = np.random.default_rng(seed)
    classes: list[list[Picture]] = [[], [], []]
    for _ in range(12):
        for one in classes:
            corners = np.sort(rng.integers(0, 100, (rng.integers(0, 5), 2, 2)), axis=1).astype(np.float64)
            corners[:, 1] += 2
            there = corners.reshape(-1, 4)
            found = [
                there[rng.integers(len(there))] + rng.integers(-4, 5, 4)
                if len(there) and rng.random() < 0.7
                else np.sort(rng.integers(0, 100, (2, 2)), axis=0).reshape(4) + np.array((0, 0, 1, 1))
                for _ in range(rng.integers(0, 7))
            ]
            kept = [box for box in found if box[2] > box[0] and box[3] > box[1]]
            one.append(Picture(there, np.array(kept, np.float64).reshape(-1, 4)))
    return classes


@pytest.mark.parametrize("seed", RECORDED)
def test_drawn_boxes_have_the_figures_of_pycocotools(seed: int) -> None:
    classes = drawn(seed)
    found = [mean_average_precision(classes, at) for at in (None, (0.5,), (0.75,))]
    assert found == pytest.approx(RECORDED[seed], abs=1e-8)


def test_a_box_takes_one_that_is_there_and_a_second_takes_none() -> None:
    same = boxes((0, 0, 10, 10))
    assert hits(Picture(same, np.repeat(same, 2, axis=0)), 0.5).tolist() == [True, False]


def test_a_wrong_box_before_the_right_one_halves_the_precision() -> None:
    picture = Picture(boxes((0, 0, 10, 10)), boxes((50, 50, 60, 60), (0, 0, 10, 10)))
    assert average_precision([picture], 0.5) == pytest.approx(0.5)


def test_a_class_that_is_nowhere_has_none_and_one_that_is_not_found_has_nothing() -> None:
    assert average_precision([Picture(boxes(), boxes((0, 0, 1, 1)))], 0.5) is None
    assert average_precision([Picture(boxes((0, 0, 1, 1)), boxes())], 0.5) == 0.0
    assert mean_average_precision([]) is None

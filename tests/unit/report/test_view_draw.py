"""Drawings: places on the paper, ticks, and words for those who cannot see them."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.report.pages.draw import Axis, Point, Series, bars, heat, interval, logo, plot, stack
from snellen.report.pages.figures import _logistic


@given(st.floats(0.001, 1e4), st.floats(1.01, 1e4), st.booleans())
def test_ticks_lie_in_the_range_and_rise(low: float, factor: float, log: bool) -> None:
    axis = Axis("x", low, low * factor, log=log)
    ticks = axis.ticks()
    assert all(low * 0.998 <= tick <= low * factor * 1.002 + 1e-9 for tick in ticks)
    assert all(first < second for first, second in pairwise(ticks))
    assert len(ticks) <= 14


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_places_keep_their_order(first: float, second: float) -> None:
    axis = Axis("x", 0, 1)
    left, right = axis.at(first, 10, 110), axis.at(second, 10, 110)
    assert 10 <= left <= 110
    if first < second:
        assert left <= right


def test_log_axis_puts_ten_in_the_middle_of_one_and_a_hundred() -> None:
    assert Axis("x", 1, 100, log=True).at(10, 0, 200) == 100


def test_plot_draws_points_band_line_and_mark() -> None:
    series = Series("read", [Point(1, 0.1, 0.0, 0.2), Point(10, 0.9, 0.8, 1.0)])
    drawn = plot([series], Axis("px", 1, 10, log=True), Axis("read", 0, 1, percent=True), label="a curve", mark=3.0)
    assert drawn.count("<circle") == 2
    assert drawn.count("<polygon") == 1
    assert 'aria-label="a curve"' in drawn
    assert "half is read at 3" in drawn
    assert "100%" in drawn
    assert "NaN" not in drawn


def test_a_mark_outside_the_range_is_not_drawn() -> None:
    series = Series("read", [Point(1, 0.1), Point(10, 0.9)])
    assert "half is read" not in plot([series], Axis("px", 1, 10), Axis("read", 0, 1), label="x", mark=30.0)


def test_interval_draws_nothing_for_nothing() -> None:
    assert "circle" not in interval(None, None, 0, 1)
    assert interval(0.5, (0.4, 0.6), 0, 1).count("<line") == 2


def test_stack_fills_the_width() -> None:
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', stack([("a", 0.25), ("b", 0.75)], label="x"))]
    assert widths == pytest.approx([148.5, 448.5])


def test_heat_says_value_and_count_of_every_cell() -> None:
    drawn = heat([("1", "top", 0.5, 7), ("2", "top", None, 0)], x_name="page", y_name="row", label="map")
    assert "50%" in drawn
    assert "n 7" in drawn
    assert "–" in drawn


def test_bars_are_as_high_as_their_counts() -> None:
    drawn = bars([(0, 1, 10), (1, 2, 5)], Axis("s", 0, 2), label="x")
    heights = [float(height) for height in re.findall(r'height="([\d.]+)" rx', drawn)]
    assert heights[0] == pytest.approx(2 * heights[1])


@pytest.mark.parametrize(("threshold", "slope"), [(4.0, 6.0), (1e-3, 200.0), (1e3, 0.1)])
def test_the_fitted_line_is_finite_and_rises(threshold: float, slope: float) -> None:
    values = np.array([y for _, y in _logistic((threshold, slope), 1e-4, 1e4)])
    assert np.isfinite(values).all()
    assert (np.diff(values) >= -1e-12).all()
    assert math.isclose(_logistic((2.0, 5.0), 2.0, 4.0)[0][1], 0.5)


def test_logo_is_no_word_for_a_screen_reader() -> None:
    assert 'aria-hidden="true"' in logo()


@pytest.mark.parametrize("high", [3e-4, 1e-6, 7e-10, 1e-11, 3.3e-15])
def test_ticks_of_a_small_range_stay_in_it(high: float) -> None:
    ticks = Axis("learning rate", 0.0, high).ticks()
    assert 4 <= len(ticks) <= 7 and ticks[-1] <= high * 1.001
    assert all(first < second for first, second in pairwise(ticks))

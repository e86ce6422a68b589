"""Charts: deterministic bytes, glyphs of the promised height, conditions that do what they say."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.errors import EnvironmentProblem
from snellen.data.images.decode import encode_png
from snellen.data.loaders.eyechart import Chart, Line, draw, has_glyphs, height_ratio


def ink_rows(chart: Chart) -> np.ndarray:
    return np.flatnonzero((np.asarray(draw(chart)) < 192).any(axis=1))


def test_the_same_chart_has_the_same_bytes() -> None:
    chart = Chart((Line("HKNZ", 30.0), Line("CDORSV", 9.5)), clutter=0.5, rotation_deg=7.0, blur_px=0.7, seed=3)
    first, second = (hashlib.sha256(encode_png(draw(chart))).hexdigest() for _ in range(2))
    assert first == second


@settings(max_examples=40, deadline=None)
@given(height=st.floats(3.0, 80.0), script=st.sampled_from(["letters", "digits"]))
def test_glyph_height_on_the_page_is_the_promised_one(height: float, script: str) -> None:
    text = "HNZ" if script == "letters" else "777"
    rows = ink_rows(Chart((Line(text, height),), script))
    assert abs((rows[-1] - rows[0] + 1) - height) <= 1.0


@settings(max_examples=20, deadline=None)
@given(height=st.floats(4.0, 60.0))
def test_ink_grows_with_the_square_of_height(height: float) -> None:
    def ink(px: float) -> float:
        return float((255 - np.asarray(draw(Chart((Line("HKN", px),))), dtype=float)).sum())

    assert ink(height * 1.1) / ink(height) == pytest.approx(1.21, rel=0.12)


@pytest.mark.parametrize("contrast", [1.0, 0.5, 0.1, 0.02])
def test_contrast_is_the_share_of_black(contrast: float) -> None:
    darkest = int(np.asarray(draw(Chart((Line("HHH", 60.0, contrast),)))).min())
    assert darkest == pytest.approx(255 * (1 - contrast), abs=1.01)


def test_no_line_is_cut_at_the_edges_of_the_block() -> None:
    lines = tuple(Line("HNHN", px) for px in (40.0, 20.0, 10.0, 5.0))
    rows = ink_rows(Chart(lines))
    groups = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    assert [len(group) for group in groups] == [pytest.approx(line.height_px, abs=1.0) for line in lines]


def test_position_moves_the_block_and_crowding_narrows_it() -> None:
    def columns(**changes: object) -> np.ndarray:
        return np.flatnonzero((np.asarray(draw(Chart((Line("HNHN", 20.0),), **changes))) < 128).any(axis=0))  # type: ignore[arg-type]

    assert columns(position="top-left").max() < 320 < columns(position="bottom-right").min()
    assert np.ptp(columns(spacing=0.0)) < np.ptp(columns(spacing=0.1)) < np.ptp(columns())


def test_clutter_lies_behind_and_blur_softens() -> None:
    plain, hard = (np.asarray(draw(Chart((Line("HN", 40.0),), clutter=c, seed=1))) for c in (0.0, 1.0))
    assert (hard <= plain).all()
    assert (hard < 250).sum() > 5 * (plain < 250).sum()
    assert np.asarray(draw(Chart((Line("HN", 40.0),), blur_px=2.0))).min() > plain.min()


def test_a_chart_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="does not fit a canvas"):
        draw(Chart((Line("HHHHHHHHHH", 80.0),)))


def test_fonts() -> None:
    assert 0.6 < height_ratio("letters", None) < 0.8
    with pytest.raises(EnvironmentProblem, match="cannot be opened"):
        height_ratio("letters", "/no/such/font.ttf")


def test_a_font_without_chinese_is_recognised() -> None:
    from pathlib import Path

    candidates = list(Path("/usr/share/fonts").rglob("DejaVuSans.ttf"))
    if not candidates:
        pytest.skip("DejaVu Sans is not installed")
    assert has_glyphs(str(candidates[0]), "HKN")
    assert not has_glyphs(str(candidates[0]), "日月")

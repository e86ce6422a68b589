"""The terminal plot: size, labels, where points land."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snellen.report.curves import plot_acuity, plot_curve

POINTS = [(2.0, 0.0), (8.0, 0.5), (32.0, 1.0)]


def test_points_axes_and_threshold() -> None:
    lines = plot_curve(POINTS, threshold=8.0, slope=3.0, width=41, height=9)
    assert lines[0].strip() == "read"
    assert lines[1].startswith(" 100% ┤")
    assert lines[1].index("●") - 7 == 40
    assert lines[5].startswith("  50% ┤")
    assert lines[5].index("●") - 7 == 20
    assert lines[9].index("●") - 7 == 0
    assert any(0x2800 < ord(char) <= 0x28FF for line in lines for char in line)
    assert lines[-1].endswith("glyph height, px · half is read at 8")
    assert " 10 " in lines[-2]


def test_nothing_to_plot() -> None:
    assert plot_curve([]) == ["(no points to plot: glyph height, px)"]
    assert plot_acuity([]) == []


@given(
    st.lists(st.tuples(st.floats(0.001, 1e4), st.floats(-0.5, 1.5)), min_size=1, max_size=30),
    st.floats(0.01, 1e3),
    st.floats(0.01, 500),
)
def test_every_plot_has_its_shape(points: list[tuple[float, float]], threshold: float, slope: float) -> None:
    lines = plot_curve(points, threshold=threshold, slope=slope, width=40, height=8)
    assert len(lines) == 12
    assert all(len(line) <= 7 + 48 for line in lines[:-1])
    assert any("●" in line for line in lines)

"""The lines of a training to its curves: loss, rewards, learning rate, drawn as the figures of a report are."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ...core.markup import Html
from ..pages.draw import Axis, Point, Series, plot
from ..pages.figures import Figure
from .metric_lines import STEP, Line, plain_number

MOST_POINTS = 400
"""Points of a curve beyond which several steps are drawn as their mean: a screen has no more."""
DOTTED = 30
"""Points up to which each is drawn as a dot."""
Curve = list[tuple[float, float]]


class Charted(NamedTuple):
    """One figure of a training: its title and the columns it draws."""

    name: str
    title: str
    columns: tuple[str, ...]
    percent: bool = False


CHARTS = (
    Charted("loss", "Loss", ("loss",)),
    Charted("reward", "Reward", ("reward",)),
    Charted("rewards", "Rewards of both replies", ("rewards/chosen", "rewards/rejected")),
    Charted("preferred", "Preferences judged right", ("rewards/accuracies",), percent=True),
    Charted("tokens", "Tokens foretold", ("mean_token_accuracy",), percent=True),
    Charted("learning-rate", "Learning rate", ("learning_rate",)),
    Charted("gradient", "Norm of the gradient", ("grad_norm",)),
)


def training_figures(lines: Sequence[Line]) -> list[Figure]:
    """Return the figures whose columns the lines of steps have."""
    return [figure for chart in CHARTS if (figure := _figure(chart, lines)) is not None]


def column_of(lines: Sequence[Line], name: str) -> Curve:
    """Return a column by step; what is no number is left out, and told elsewhere."""
    found = ((float(line[STEP]), plain_number(line.get(name))) for line in lines)
    return [(step, value) for step, value in found if value is not None]


def thinned(curve: Curve, most: int = MOST_POINTS) -> tuple[Curve, int]:
    """Return at most so many points, each the mean of as many steps as are told, at the middle of them."""
    of = -(-len(curve) // most) if len(curve) > most else 1
    parts = [curve[start : start + of] for start in range(0, len(curve), of)] if of > 1 else []
    means = [(fmean(step for step, _ in part), fmean(value for _, value in part)) for part in parts]
    return means or curve, of


def _figure(chart: Charted, lines: Sequence[Line]) -> Figure | None:
    columns = {name: column_of(lines, name) for name in chart.columns}
    whole = {name: curve for name, curve in columns.items() if curve}
    if not whole:
        return None
    drawn = {name: thinned(curve) for name, curve in whole.items()}
    caption = _caption(whole, max(of for _, of in drawn.values()))
    drawing = _drawing(chart, {name: curve for name, (curve, _) in drawn.items()}, caption)
    rows = [{"step": step, "series": name, "value": value} for name, curve in whole.items() for step, value in curve]
    return Figure(chart.name, chart.title, caption, drawing, {}, rows, tuple(whole))


def _drawing(chart: Charted, curves: dict[str, Curve], caption: str) -> Html:
    points = [point for curve in curves.values() for point in curve]
    across = Axis("step", min(points)[0], max(points)[0])
    series = [_series(name, curve) for name, curve in curves.items()]
    return plot(series, across, _upwards(points, chart), label=f"{chart.title} by step. {caption}")


def _upwards(points: Curve, chart: Charted) -> Axis:
    """Return the axis of values: it holds nothing, so that a curve falls as far as it seems to."""
    values = [value for _, value in points]
    high = 1.0 if chart.percent else max(0.0, *values)
    low = min(0.0, *values)
    return Axis(chart.title, low, high if high > low else low + 1.0, percent=chart.percent)


def _series(name: str, curve: Curve) -> Series:
    dots = [Point(*point) for point in curve] if len(curve) <= DOTTED else []
    return Series(name, dots, curve)


def _caption(whole: dict[str, Curve], of: int) -> str:
    ends = (
        f"{'' if len(whole) == 1 else f'{name}: '}{curve[0][1]:.4g} at step {curve[0][0]:,.0f}, "
        f"{curve[-1][1]:.4g} at step {curve[-1][0]:,.0f}"
        for name, curve in whole.items()
    )
    told = "; ".join(ends)
    return f"{told}." if of == 1 else f"{told}. Each point is the mean of {of:,} lines."

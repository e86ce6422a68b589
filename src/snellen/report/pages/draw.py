"""Numbers to small SVG drawings in the colours of the page: no dependency, no script, sharp on paper and in dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.markup import Attribute, Html, join, tag

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 18, 14, 46
COLOURS = 6


class Point(NamedTuple):
    """One measured point; `low` and `high` bound it where known."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Series(NamedTuple):
    """A named set of points, and the smooth line behind them where one was fitted."""

    name: str
    points: Sequence[Point]
    line: Sequence[tuple[float, float]] = ()


class Axis(NamedTuple):
    """One axis: its name, range, and how its numbers are written."""

    name: str
    low: float
    high: float
    log: bool = False
    percent: bool = False

    def at(self, value: float, start: float, end: float) -> float:
        """Return where a value stands between two places on the paper."""
        places = (self.low, self.high, value)
        low, high, value = (math.log(max(v, 1e-12)) for v in places) if self.log else places
        share = (value - low) / ((high - low) or 1.0)
        return round(start + (end - start) * min(1.0, max(0.0, share)), 2)

    def ticks(self) -> list[float]:
        """Return a handful of round values inside the range."""
        if self.log:
            return _log_ticks(self.low, self.high)
        step = _nice_step((self.high - self.low) / 5 or 1.0)
        first = math.ceil(self.low / step - 1e-9)
        values = ((first + i) * step for i in range(12))
        return [float(f"{value:.10g}") for value in values if value <= self.high + 1e-9 * step]

    def write(self, value: float) -> str:
        """Return a tick's text."""
        return f"{value:.0%}" if self.percent else f"{value:g}"


def plot(series: Sequence[Series], x: Axis, y: Axis, *, label: str, mark: float | None = None) -> Html:
    """Draw lines and points; `mark` is a value of x to point out. `label` says for a screen reader what is seen."""
    across = _scale(x, LEFT, WIDTH - RIGHT)
    up = _scale(y, HEIGHT - BOTTOM, TOP)
    shapes = [*_frame(x, y, across, up), *(_mark(mark, across, x) if mark is not None else ())]
    for number, one in enumerate(series):
        shapes += _series(one, number % COLOURS + 1, across, up)
    return _canvas(shapes, label)


def _canvas(shapes: Sequence[Html], label: str, width: float = WIDTH, height: float = HEIGHT) -> Html:
    size = f"0 0 {width} {height}"
    return tag("svg", tag("title", label), *shapes, viewBox=size, class_="plot", role="img", aria_label=label)


def bars(counts: Sequence[tuple[float, float, int]], x: Axis, *, label: str) -> Html:
    """Draw a histogram of (from, to, count)."""
    most = max((count for *_, count in counts), default=1)
    y = Axis("trials", 0, most or 1)
    across, up = _scale(x, LEFT, WIDTH - RIGHT), _scale(y, HEIGHT - BOTTOM, TOP)
    shapes = list(_frame(x, y, across, up))
    for low, high, count in counts:
        left, right, top = across(low), across(high), up(count)
        width, height = max(1.0, round(right - left - 2, 2)), max(0.0, round(up(0) - top, 2))
        shapes.append(tag("rect", class_="f1", x=left + 1, y=top, width=width, height=height, rx=2))
    return _canvas(shapes, label)


def heat(cells: Sequence[tuple[str, str, float | None, int]], *, x_name: str, y_name: str, label: str) -> Html:
    """Draw a map of (column, row, value 0–1, n); a cell says its value in words, so colour is never alone."""
    columns, rows = list(dict.fromkeys(cell[0] for cell in cells)), list(dict.fromkeys(cell[1] for cell in cells))
    wide, high, left, top = max(44, min(90, 520 // max(1, len(columns)))), 38, 110, 30
    shapes = [tag("text", x_name, x=left, y=12, font_size=12), tag("text", y_name, x=0, y=top + 4, font_size=12)]
    shapes += [
        tag("text", name, x=left + i * wide + wide / 2, y=top - 4, font_size=11, text_anchor="middle")
        for i, name in enumerate(columns)
    ]
    shapes += [
        tag("text", name[:16], x=left - 8, y=top + i * high + 24, font_size=11, text_anchor="end")
        for i, name in enumerate(rows)
    ]
    for column, row, value, n in cells:
        spot = (left + columns.index(column) * wide, top + rows.index(row) * high)
        shapes.append(_cell(spot, (wide, high), value, n))
    return _canvas(shapes, label, left + wide * len(columns) + 4, top + high * len(rows) + 4)


def interval_rows(rows: Sequence[tuple[str, float | None, float | None, float | None, int]], *, label: str) -> Html:
    """Draw (name, share, low, high, n) one below the other on one scale; the numbers stand beside the lines."""
    left, wide, high, top = _name_width([row[0] for row in rows]), 640, 26, 8
    right = wide - 110
    axis, floor = Axis("", 0.0, 1.0, percent=True), top + high * len(rows)
    shapes = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = axis.at(tick, left, right)
        shapes.append(tag("line", x1=at, x2=at, y1=top, y2=floor, class_="axis"))
        shapes.append(tag("text", axis.write(tick), x=at, y=floor + 16, font_size=12, text_anchor="middle"))
    for number, (name, value, low, upper, n) in enumerate(rows):
        y = top + number * high + high / 2
        shapes.append(_name(name, left - 8, y + 4))
        if low is not None and upper is not None:
            ends = {"x1": axis.at(low, left, right), "x2": axis.at(upper, left, right)}
            shapes.append(tag("line", **ends, y1=y, y2=y, class_="span"))
        words = "–" if value is None else f"{value:.1%} · n {n:,}"
        if value is not None:
            shapes.append(tag("circle", cx=axis.at(value, left, right), cy=y, r=4.5, class_="dot halo"))
        shapes.append(tag("text", words, x=right + 10, y=y + 4, font_size=11))
    return _canvas(shapes, label, wide, floor + 24)


def confusion_grid(cells: Sequence[tuple[str, str, int, float]], *, label: str) -> Html:
    """Draw (column, row, count, share of the row); a cell says its count and share, so colour is never alone."""
    columns, rows = list(dict.fromkeys(cell[0] for cell in cells)), list(dict.fromkeys(cell[1] for cell in cells))
    left, high = _name_width(rows), 36
    wide = max(46, (636 - left) // max(1, len(columns)))
    top = 30 if max(map(len, columns)) * 6.5 <= wide else 84
    shapes = [_name(name, left - 8, top + i * high + 22) for i, name in enumerate(rows)]
    for i, name in enumerate(columns):
        x, y = left + i * wide + wide / 2, top - 8
        turn = {"transform": f"rotate(-38 {x} {y})", "text_anchor": "start"} if top > 30 else {"text_anchor": "middle"}
        shapes.append(tag("text", _short(name, 22), x=x, y=y, font_size=11, **turn))
    for column, row, count, share in cells:
        x, y = left + columns.index(column) * wide, top + rows.index(row) * high
        size = {"x": x, "y": y, "width": wide - 2, "height": high - 2, "rx": 4}
        shapes.append(tag("rect", **size, class_="f1", fill_opacity=round(0.04 + 0.5 * share, 3)))
        if count:
            middle: dict[str, Attribute] = {"x": x + wide / 2, "text_anchor": "middle"}
            shapes.append(tag("text", f"{count:,}", y=y + 16, font_size=12, class_="ink", **middle))
            shapes.append(tag("text", f"{share:.0%}", y=y + 29, font_size=9.5, class_="ink", **middle))
    return _canvas(shapes, label, left + wide * len(columns) + 40, top + high * len(rows) + 4)


def paired_bars(pairs: Sequence[tuple[str, float, float]], *, label: str) -> Html:
    """Draw two shares beside each other for every name."""
    top = max((*(share for _, *shares in pairs for share in shares), 0.01))
    y = Axis("share", 0.0, min(1.0, top * 1.15), percent=True)
    x = Axis("position", 0.0, float(len(pairs)))
    across, up = _scale(x, LEFT, WIDTH - RIGHT), _scale(y, HEIGHT - BOTTOM, TOP)
    floor, each = HEIGHT - BOTTOM, (WIDTH - LEFT - RIGHT) / max(1, len(pairs))
    shapes = [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(v), y2=up(v), class_="axis") for v in y.ticks()]
    shapes += [tag("text", y.write(v), x=LEFT - 8, y=up(v) + 4, font_size=12, text_anchor="end") for v in y.ticks()]
    for number, (name, *shares) in enumerate(pairs):
        start, width = across(number) + each * 0.12, each * 0.36
        for place, share in enumerate(shares):
            at, height = round(start + place * width, 2), round(floor - up(share), 2)
            bar = {"x": at, "y": up(share), "width": round(width - 2, 2), "height": max(0.0, height), "rx": 2}
            shapes.append(tag("rect", tag("title", f"{name}: {share:.1%}"), **bar, class_=f"f{place + 1}"))
        middle: dict[str, Attribute] = {"x": across(number + 0.5), "y": floor + 19, "text_anchor": "middle"}
        shapes.append(tag("text", _short(name, 12), font_size=12, **middle))
    return _canvas(shapes, label)


def _name_width(names: Sequence[str]) -> float:
    return 24 + 6.6 * max((min(30, len(name)) for name in names), default=4)


def _name(name: str, x: float, y: float) -> Html:
    whole = tag("title", name) if len(name) > 30 else None
    return tag("text", whole, _short(name, 30), x=x, y=y, font_size=11.5, text_anchor="end")


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _cell(spot: tuple[float, float], size: tuple[float, float], value: float | None, n: int) -> Html:
    x, y, wide, high = *spot, *size
    depth, words = round(0.06 + 0.5 * (value or 0), 3), "–" if value is None else f"{value:.0%}"
    shade = tag("rect", x=x, y=y, width=wide - 2, height=high - 2, rx=4, class_="f1", fill_opacity=depth)
    shown = tag("text", words, x=x + wide / 2, y=y + 18, font_size=13, text_anchor="middle", class_="ink")
    return join((shade, shown, tag("text", f"n {n}", x=x + wide / 2, y=y + 31, font_size=9, text_anchor="middle")))


def interval(value: float | None, bounds: Sequence[float] | None, low: float, high: float) -> Html:
    """Draw one value and its interval on a line from `low` to `high`; the numbers stand beside it in the table."""
    axis = Axis("", low, high)
    shapes = [tag("line", x1=0, x2=200, y1=9, y2=9, class_="axis")]
    if bounds is not None:
        left, right = (axis.at(bound, 4, 196) for bound in bounds)
        shapes.append(tag("line", x1=left, x2=right, y1=9, y2=9, class_="span"))
    if value is not None:
        shapes.append(tag("circle", cx=axis.at(value, 4, 196), cy=9, r=4.5, class_="dot halo"))
    return tag("svg", *shapes, viewBox="0 0 200 18", class_="range", aria_hidden="true")


def stack(parts: Sequence[tuple[str, float]], *, label: str) -> Html:
    """Draw shares as one bar; `parts` are (class, share)."""
    shapes, at = [], 0.0
    for name, share in parts:
        width = max(0.0, round(share * 600 - 1.5, 2))
        shapes.append(tag("rect", class_=name, x=round(at * 600, 2), y=0, width=width, height=14, rx=3))
        at += share
    frame = {"viewBox": "0 0 600 14", "class_": "stack", "preserveAspectRatio": "none"}
    return tag("svg", tag("title", label), *shapes, **frame, role="img", aria_label=label)


def logo() -> Html:
    """Draw the sign: three lines of an eye chart."""
    rows = ((("E",), 26, 25), (("F", "P"), 17, 47), (("T", "O", "Z"), 11, 64))
    letters = []
    for line, size, y in rows:
        for i, letter in enumerate(line):
            x = 30 + (i - (len(line) - 1) / 2) * size * 1.25
            letters.append(
                tag("text", letter, x=x, y=y, font_size=size, text_anchor="middle", font_weight=700, class_="ink")
            )
    ground = tag("rect", x=10, y=71, width=40, height=3, class_="f2")
    return tag("svg", *letters, ground, viewBox="0 0 60 76", class_="logo", aria_hidden="true")


def swatch(number: int) -> Html:
    """Draw the key of the n-th series."""
    dot = tag("circle", cx=7, cy=7, r=5, class_=f"f{number % COLOURS + 1}")
    return tag("svg", dot, viewBox="0 0 14 14", aria_hidden="true")


Scale = Callable[[float], float]


def _scale(axis: Axis, start: float, end: float) -> Scale:
    return lambda value: axis.at(value, start, end)


def _frame(x: Axis, y: Axis, across: Scale, up: Scale) -> list[Html]:
    floor = HEIGHT - BOTTOM
    shapes = [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(v), y2=up(v), class_="axis") for v in y.ticks()]
    shapes += [tag("text", y.write(v), x=LEFT - 8, y=up(v) + 4, font_size=12, text_anchor="end") for v in y.ticks()]
    shapes.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=floor, y2=floor, class_="strongaxis"))
    for value in x.ticks():
        shapes.append(tag("line", x1=across(value), x2=across(value), y1=floor, y2=floor + 5, class_="strongaxis"))
        shapes.append(tag("text", x.write(value), x=across(value), y=floor + 19, font_size=12, text_anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*shapes, tag("text", x.name, x=middle, y=HEIGHT - 6, font_size=12.5, text_anchor="middle", class_="ink")]


def _mark(value: float, across: Scale, axis: Axis) -> list[Html]:
    if not axis.low <= value <= axis.high:
        return []
    at, floor = across(value), HEIGHT - BOTTOM
    shift, anchor = (8, "start") if at < WIDTH * 0.62 else (-8, "end")
    words = f"half is read at {value:.3g}"
    return [
        tag("line", x1=at, x2=at, y1=TOP, y2=floor, class_="half"),
        tag("text", words, x=at + shift, y=floor - 12, font_size=12.5, text_anchor=anchor, class_="ink"),
    ]


def _series(one: Series, colour: int, across: Scale, up: Scale) -> list[Html]:
    shapes = _band(one, colour, across, up)
    line = one.line or [(point.x, point.y) for point in one.points]
    shapes.append(tag("polyline", points=_path([(across(x), up(y)) for x, y in line]), class_=f"line s{colour}"))
    for point in one.points:
        words = tag("title", f"{one.name}: {point.x:.4g} → {point.y:.3f}")
        shapes.append(tag("circle", words, cx=across(point.x), cy=up(point.y), r=4.5, class_=f"f{colour} halo"))
    return shapes


def _band(one: Series, colour: int, across: Scale, up: Scale) -> list[Html]:
    bounds = [
        (point.x, point.low, point.high) for point in one.points if point.low is not None and point.high is not None
    ]
    if len(bounds) < 2:
        return []
    edge = [(across(x), up(high)) for x, _, high in bounds] + [(across(x), up(low)) for x, low, _ in reversed(bounds)]
    return [tag("polygon", points=_path(edge), class_=f"band f{colour}")]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _nice_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= raw * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    dense = (1, 2, 3, 5, 7) if high / low <= 40 else (1, 2, 5) if high / low <= 400 else (1,)
    values = (digit * 10.0**power for power in range(first, last + 1) for digit in dense)
    return [value for value in values if low * 0.999 <= value <= high * 1.001]


BINS = 8


def binned(levels: Sequence[Sequence[Any]]) -> list[tuple[float, float, float]]:
    """Return (level, share right, trials) in bins of about equal width in the logarithm."""
    if not levels:
        return []
    low, high = (math.log(pick(row[0] for row in levels)) for pick in (min, max))
    bins: dict[int, list[Sequence[Any]]] = {}
    for row in levels:
        place = 0 if high == low else min(BINS - 1, int((math.log(row[0]) - low) / (high - low) * BINS))
        bins.setdefault(place, []).append(row)
    points = []
    for rows in bins.values():
        glyphs = sum(row[2] for row in rows)
        mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
        points.append((mean, sum(row[1] for row in rows) / glyphs, float(glyphs)))
    return sorted(points)

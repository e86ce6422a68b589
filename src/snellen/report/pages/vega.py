"""Rows of plain data into Vega-Lite specifications, and those into files: SVG, PNG, CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from ...core.text import quoted_line, safe_cell
from ...core.vega import Row, Spec, category, chart, quantity, render_png, render_svg

_CONFIG: Spec = {
    "font": "DejaVu Sans, Verdana, Helvetica, sans-serif",
    "view": {"stroke": None},
    "background": "white",
    "title": {"fontSize": 14, "anchor": "start"},
}
_SCHEME = "viridis"
"""Even in lightness and safe for the colour-blind."""


def heat_map(rows: Sequence[Row], x: str, y: str, *, title: str = "", labels: Mapping[str, str] | None = None) -> Spec:
    """Return a map of `value` (0–1) over two categories: a cell says its value in percent and how many trials, `n`.

    Cells that nobody measured stay hatched grey; categories keep the order in which they first appear.
    """
    names = labels or {}
    orders = {name: list(dict.fromkeys(row[name] for row in rows)) for name in (x, y)}
    known = {(row[x], row[y]): row for row in rows}
    cells = product(orders[x], orders[y])
    every = [{x: across, y: down, "value": None, "n": 0, **known.get((across, down), {})} for across, down in cells]
    axis = {"labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    encoding = {
        channel: category(name, "ordinal", sort=orders[name], title=names.get(name, name), axis=axis)
        for channel, name in (("x", x), ("y", y))
    }
    size = {"width": {"step": 62}, "height": {"step": 36}}
    return chart(title, _CONFIG, data={"values": every}, encoding=encoding, layer=_heat_layers(), **size)


def _heat_layers() -> list[Spec]:
    measured, empty = {"filter": "isValid(datum['value'])"}, {"filter": "!isValid(datum['value'])"}
    legend = {"format": ".0%", "title": None}
    colour = quantity("value", scale={"scheme": _SCHEME, "domain": [0, 1]}, legend=legend)
    contrast = {"condition": {"test": "datum['value'] > 0.6", "value": "black"}, "value": "white"}

    def words(formula: str, name: str, dy: int, size: int) -> Spec:
        return {
            "transform": [measured, {"calculate": formula, "as": name}],
            "mark": {"type": "text", "dy": dy, "fontSize": size},
            "encoding": {"text": {"field": name}, "color": contrast},
        }

    hatch = {"type": "text", "text": "╱╱", "color": "#b0b0b0", "fontSize": 16}
    return [
        {"transform": [measured], "mark": {"type": "rect", "stroke": "white"}, "encoding": {"color": colour}},
        {"transform": [empty], "mark": hatch},
        words("format(datum['value'], '.0%')", "shown", -6, 12),
        words("'n=' + datum['n']", "counted", 8, 9),
    ]


def curves(
    rows: Sequence[Row], x: str, *, title: str = "", labels: Mapping[str, str] | None = None, log_x: bool = False
) -> Spec:
    """Return one line a `series` over a numeric `x`, with a band from `low` to `high` and a point at each `value`."""
    names = dict(labels or {})
    order = list(dict.fromkeys(row["series"] for row in rows))
    colour = category("series", sort=order, scale={"scheme": "tableau10"})
    colour |= {"title": names.get("series"), "legend": {"symbolOpacity": 1}}
    scale: Spec = {"type": "log"} if log_x else {"zero": False, "nice": False, "padding": 12}
    steps = sorted({row[x] for row in rows})
    axis: Spec = {"values": steps, "format": "~g"} if len(steps) <= 12 else {}
    encoding = {"x": quantity(x, scale=scale, axis=axis, title=names.get(x, x)), "color": colour}
    name = names.get("value", "value")
    percent = quantity("value", scale={"domain": [0, 1]}, axis={"format": ".0%"}, title=name)
    band = {"y": quantity("low", title=name), "y2": {"field": "high"}}
    layers: list[Spec] = [
        {"mark": {"type": "area", "opacity": 0.15}, "encoding": band},
        {"mark": {"type": "line", "point": True, "clip": False}, "encoding": {"y": percent}},
    ]
    size = {"width": 420, "height": 260}
    return chart(title, _CONFIG, data={"values": list(rows)}, encoding=encoding, layer=layers, **size)


def interval_bars(rows: Sequence[Row], column: str, *, title: str = "", axis_title: str = "") -> Spec:
    """Return one dot a category with its interval as a rule, in the order given; for variants side by side."""
    order = list(dict.fromkeys(row[column] for row in rows))
    y = category(column, sort=order, title=None, axis={"labelLimit": 260})
    x = quantity("low", axis={"format": ".0%"}, title=axis_title or "value")
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": x, "x2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 70}, "encoding": {"x": quantity("value")}},
    ]
    size = {"width": 420, "height": {"step": 24}}
    return chart(title, _CONFIG, data={"values": list(rows)}, encoding={"y": y}, layer=layers, **size)


def group_points(rows: Sequence[Row], metric: str, key: str) -> Spec:
    """Return one dot a `group` with its interval as a rule."""
    y = category("group", title=key)
    layers = [
        {"mark": "rule", "encoding": {"x": quantity("low", title=metric), "x2": {"field": "high"}, "y": y}},
        {"mark": "point", "encoding": {"x": quantity("value", title=metric), "y": y}},
    ]
    return {"data": {"values": rows}, "layer": layers}


def confusion(rows: Sequence[Row]) -> Spec:
    """Return a square for each answer that was expected and read, coloured by its share of those expected."""
    encoding = {"x": category("read"), "y": category("expected"), "color": quantity("share")}
    return {"data": {"values": rows}, "mark": "rect", "encoding": encoding}


def bars_of_series(rows: Sequence[Row], x: str) -> Spec:
    """Return the `share` of each series side by side over a category."""
    encoding = {"x": category(x), "xOffset": {"field": "series"}, "y": quantity("share"), "color": {"field": "series"}}
    return {"data": {"values": rows}, "mark": "bar", "encoding": encoding}


def seconds(rows: Sequence[Row]) -> Spec:
    """Return a histogram of trials by seconds."""
    encoding = {"x": quantity("from_s", title="seconds"), "x2": {"field": "to_s"}, "y": quantity("trials")}
    return {"data": {"values": rows}, "mark": "bar", "encoding": encoding}


def to_csv(rows: Sequence[Row]) -> str:
    """Write the rows behind a plot as CSV, columns in the order they first appear; formulas are defused."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    rows_of_cells: list[list[Any]] = [columns, *([row.get(name) for name in columns] for row in rows)]
    return "".join(quoted_line([safe_cell(cell) for cell in cells]) for cells in rows_of_cells)


def save_plot(spec: Spec, rows: Sequence[Row], stem: Path) -> list[Path]:
    """Write `stem.csv`, `.vl.json`, `.svg` and `.png`; the first two need no extra."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_name(stem.name + suffix) for suffix in (".csv", ".vl.json", ".svg", ".png")]
    files[0].write_text(to_csv(rows), encoding="utf-8")
    files[1].write_bytes(msgspec.json.format(msgspec.json.encode(spec), indent=1))
    files[2].write_text(render_svg(spec), encoding="utf-8")
    files[3].write_bytes(render_png(spec))
    return files

"""Rows of plain data into Vega-Lite specifications, and those into SVG, PNG and CSV without a display."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import MissingExtra

Row = Mapping[str, Any]
Spec = dict[str, Any]
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_FONT = "DejaVu Sans, Verdana, Helvetica, sans-serif"
_SCHEME = "viridis"
"""Even in lightness and safe for the colour-blind."""


def heat_map(
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    value: str = "value",
    count: str = "n",
    title: str = "",
    labels: Mapping[str, str] | None = None,
) -> Spec:
    """Return a map of `value` (0–1) over two categories: each cell shows its value in percent and how many trials it rests on.

    Cells that nobody measured stay hatched grey; categories keep the order in which they first appear.
    """
    names = dict(labels or {})
    order_x, order_y = list(dict.fromkeys(row[x] for row in rows)), list(dict.fromkeys(row[y] for row in rows))
    known = {(row[x], row[y]): row for row in rows}
    every = [
        {x: across, y: down, value: None, count: 0} | dict(known.get((across, down), {}))
        for across in order_x
        for down in order_y
    ]
    axis = {"labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    encoding = {
        "x": {"field": x, "type": "ordinal", "sort": order_x, "title": names.get(x, x), "axis": axis},
        "y": {"field": y, "type": "ordinal", "sort": order_y, "title": names.get(y, y), "axis": axis},
    }
    colour = {
        "field": value,
        "type": "quantitative",
        "scale": {"scheme": _SCHEME, "domain": [0, 1]},
        "legend": {"format": ".0%", "title": None},
    }
    measured, empty = f"isValid(datum['{value}'])", f"!isValid(datum['{value}'])"
    contrast = {"condition": {"test": f"datum['{value}'] > 0.6", "value": "black"}, "value": "white"}
    layers: list[Spec] = [
        {
            "transform": [{"filter": measured}],
            "mark": {"type": "rect", "stroke": "white"},
            "encoding": {"color": colour},
        },
        {"transform": [{"filter": empty}], "mark": {"type": "text", "text": "╱╱", "color": "#b0b0b0", "fontSize": 16}},
        {
            "transform": [{"filter": measured}, {"calculate": f"format(datum['{value}'], '.0%')", "as": "shown"}],
            "mark": {"type": "text", "dy": -6, "fontSize": 12},
            "encoding": {"text": {"field": "shown"}, "color": contrast},
        },
        {
            "transform": [{"filter": measured}, {"calculate": f"'n=' + datum['{count}']", "as": "counted"}],
            "mark": {"type": "text", "dy": 8, "fontSize": 9},
            "encoding": {"text": {"field": "counted"}, "color": contrast},
        },
    ]
    return _framed(
        {
            "data": {"values": every},
            "encoding": encoding,
            "layer": layers,
            "width": {"step": 62},
            "height": {"step": 36},
        },
        title,
    )


def curves(
    rows: Sequence[Row],
    x: str,
    *,
    series: str = "series",
    value: str = "value",
    low: str = "low",
    high: str = "high",
    title: str = "",
    labels: Mapping[str, str] | None = None,
    log_x: bool = False,
) -> Spec:
    """Return one line a series over a numeric `x`, with a band from `low` to `high` and a point at each measurement."""
    names = dict(labels or {})
    order = list(dict.fromkeys(row[series] for row in rows))
    colour: Spec = {"field": series, "type": "nominal", "sort": order, "scale": {"scheme": "tableau10"}}
    colour |= {"title": names.get(series), "legend": {"symbolOpacity": 1}}
    scale: Spec = {"type": "log"} if log_x else {"zero": False, "nice": False, "padding": 12}
    steps = sorted({row[x] for row in rows})
    axis: Spec = {"values": steps, "format": "~g"} if len(steps) <= 12 else {}
    encoding = {
        "x": {"field": x, "type": "quantitative", "scale": scale, "axis": axis, "title": names.get(x, x)},
        "color": colour,
    }
    percent = {
        "field": value,
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%"},
        "title": names.get(value, value),
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.15},
            "encoding": {
                "y": {"field": low, "type": "quantitative", "title": names.get(value, value)},
                "y2": {"field": high},
            },
        },
        {"mark": {"type": "line", "point": True, "clip": False}, "encoding": {"y": percent}},
    ]
    return _framed(
        {"data": {"values": list(rows)}, "encoding": encoding, "layer": layers, "width": 420, "height": 260}, title
    )


def interval_bars(
    rows: Sequence[Row],
    category: str,
    *,
    value: str = "value",
    low: str = "low",
    high: str = "high",
    title: str = "",
    axis_title: str = "",
) -> Spec:
    """Return one dot a category with its interval as a rule, in the order given; for variants side by side."""
    order = list(dict.fromkeys(row[category] for row in rows))
    y = {"field": category, "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 260}}
    x = {"field": low, "type": "quantitative", "axis": {"format": ".0%"}, "title": axis_title or value}
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": x, "x2": {"field": high}}},
        {
            "mark": {"type": "point", "filled": True, "size": 70},
            "encoding": {"x": {"field": value, "type": "quantitative"}},
        },
    ]
    return _framed(
        {"data": {"values": list(rows)}, "encoding": {"y": y}, "layer": layers, "width": 420, "height": {"step": 24}},
        title,
    )


def render_svg(spec: Spec) -> str:
    """Draw a specification as SVG (extra `plots`)."""
    drawn: str = _converter().vegalite_to_svg(spec)
    return drawn


def render_png(spec: Spec, scale: float = 2.0) -> bytes:
    """Draw a specification as PNG (extra `plots`)."""
    drawn: bytes = _converter().vegalite_to_png(spec, scale=scale)
    return drawn


def to_csv(rows: Sequence[Row]) -> str:
    """Write the rows behind a plot as CSV, columns in the order they first appear."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def save_plot(spec: Spec, rows: Sequence[Row], stem: Path) -> list[Path]:
    """Write `stem.csv`, `.vl.json`, `.svg` and `.png`; the first two need no extra."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_name(stem.name + suffix) for suffix in (".csv", ".vl.json", ".svg", ".png")]
    files[0].write_text(to_csv(rows), encoding="utf-8")
    files[1].write_bytes(msgspec.json.format(msgspec.json.encode(spec), indent=1))
    files[2].write_text(render_svg(spec), encoding="utf-8")
    files[3].write_bytes(render_png(spec))
    return files


def _framed(spec: Spec, title: str) -> Spec:
    config = {
        "font": _FONT,
        "view": {"stroke": None},
        "background": "white",
        "title": {"fontSize": 14, "anchor": "start"},
    }
    return {"$schema": _SCHEMA, "title": title or None, "config": config, **spec}


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("plots", "drawing a plot") from None
    return vl_convert

"""Layers and rows to a Vega-Lite specification, and that to SVG or PNG: no display, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import MissingExtra

Row = Mapping[str, Any]
Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def chart(title: str, config: Spec, **parts: Any) -> Spec:
    """Return a whole specification: `parts` are its data, encoding, layers and size."""
    return {"$schema": SCHEMA, "title": title or None, "config": config, **parts}


def quantity(field: str, **more: Any) -> Spec:
    """Return the encoding of a field that is a number."""
    return {"field": field, "type": "quantitative", **more}


def category(field: str, kind: str = "nominal", **more: Any) -> Spec:
    """Return the encoding of a field that names something; `ordinal` where the names have an order."""
    return {"field": field, "type": kind, **more}


def layer(rows: Sequence[Row], mark: Spec, **encoding: Spec) -> Spec:
    """Return one layer with rows of its own."""
    return {"data": {"values": [dict(row) for row in rows]}, "mark": mark, "encoding": encoding}


def render_svg(spec: Spec, *, purpose: str = "drawing a plot", version: str | None = None) -> str:
    """Draw a specification as SVG (extra `plots`), by a version of Vega-Lite where one is named."""
    return str(_converter(purpose).vegalite_to_svg(spec, vl_version=version))


def render_png(spec: Spec, scale: float = 2.0) -> bytes:
    """Draw a specification as PNG (extra `plots`)."""
    return bytes(_converter("drawing a plot").vegalite_to_png(spec, scale=scale))


def _converter(purpose: str) -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("plots", purpose) from None
    return vl_convert

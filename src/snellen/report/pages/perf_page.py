"""The report of a load in, perf.html out: in the design of report.html, with a figure that needs no extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pybase64

from ...core.markup import Child, Html, join, tag
from ...perf.metrics import COMMON, DEFINITIONS, STEADY_RULE
from ...perf.stored import headline_of_value
from ..written import written
from . import draw
from .draw import Axis, Point, Series
from .parts import captioned, document, head, numbers, row, scrolled

SHOWN = ("Average", "Median", "P90", "P99", "P99.9", "N")
PERCENTILES = {"Median": 50.0, "P90": 90.0, "P99": 99.0, "P99.9": 99.9}
MOST_SERIES = draw.COLOURS


def render_page(title: str, levels: Sequence[Mapping[str, Any]], drawn: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page; `drawn` holds the SVGs of each level by name."""
    parts: list[Child] = [_masthead(title, len(levels))]
    parts += [_overview(levels)] if len(levels) > 1 else []
    for level in levels:
        parts += _level(level, drawn.get(level["level"], {}))
    parts += [tag("h2", "What the words mean"), tag("div", _definitions(), class_="card"), tag("p", STEADY_RULE)]
    return str(document(title, parts)) + "\n"


def _masthead(title: str, levels: int) -> Html:
    words = "Snellen load" if levels == 1 else f"Snellen load, {levels} levels"
    return tag("header", draw.logo(), tag("div", tag("p", words, class_="kicker"), tag("h1", title)), class_="masthead")


def _overview(levels: Sequence[Mapping[str, Any]]) -> Html:
    """Return every level with what its load came to, to be seen before all the rest."""
    stages = [level.get("steady") or level.get("total") for level in levels]
    names = list(dict.fromkeys(name for stage in stages if stage for name in stage["common"]))
    rows = [
        row(str(level["level"]), *numbers(_cell(stage["common"].get(name)) if stage else "–" for name in names))
        for level, stage in zip(levels, stages, strict=True)
    ]
    caption = "All levels: the steady state, or the whole run where there is none"
    table = captioned(caption, head("level", *((name, "n") for name in names)), rows)
    return join((tag("h2", "Summary"), tag("div", table, class_="card")))


def _level(level: Mapping[str, Any], drawn: Mapping[str, str]) -> Iterator[Html]:
    yield tag("h2", str(level["level"]))
    for note in level.get("notes", ()):
        yield tag("p", str(note), class_="notice")
    if level.get("value"):
        rows = [
            row(name, *numbers([value_words(name, value) or _cell(value)])) for name, value in level["value"].items()
        ]
        yield _table("Accuracy and cost", head("accuracy and cost", ("", "n")), rows)
    for stage, words in (("total", "Whole run"), ("steady", "Steady state")):
        if level.get(stage):
            yield tag("h3", words)
            yield from _figure(level[stage], f"{level['level']}, {words.lower()}")
            yield _summary(level[stage])
    yield from (_picture(name, svg) for name, svg in drawn.items())


def value_words(name: str, value: Any) -> str:
    """Return a headline as every other page says it; nothing where a figure of a load is none."""
    metric = headline_of_value(name)
    return written(metric, {"value": value}) if metric else ""


def _figure(summary: Mapping[str, Any], words: str) -> Iterator[Html]:
    """Yield the percentiles of everything that is measured in seconds, as lines."""
    times = {name: figures for name, figures in summary["metrics"].items() if summary["units"].get(name) == "s"}
    series = [Series(name, _percentiles(figures)) for name, figures in list(times.items())[:MOST_SERIES]]
    series = [one for one in series if len(one.points) > 1]
    top = max((point.y for one in series for point in one.points), default=0.0)
    if top <= 0:
        return
    label = f"Percentiles of {', '.join(one.name for one in series)}: {words}"
    drawing = draw.plot(series, Axis("percentile", 50.0, 100.0), Axis("seconds", 0.0, top * 1.05), label=label)
    key = tag("ul", *(tag("li", draw.swatch(i), one.name) for i, one in enumerate(series)), class_="key")
    left = len(times) - len(series)
    more = f" {left} more are in the table." if left > 0 else ""
    caption = tag("figcaption", f"Seconds at the median, 90th, 99th and 99.9th percentile.{more}")
    yield tag("figure", tag("h3", "How long requests take"), key, drawing, caption, class_="card")


def _percentiles(figures: Mapping[str, Any]) -> list[Point]:
    return [Point(place, figures[stat]) for stat, place in PERCENTILES.items() if figures.get(stat) is not None]


def _picture(name: str, svg: str) -> Html:
    """Return a picture as a picture: what another program drew brings a style of its own, which a page may not run."""
    source = f"data:image/svg+xml;base64,{pybase64.b64encode(svg.encode('utf-8')).decode()}"
    return tag("figure", tag("img", src=source, alt=name.removesuffix(".svg")), class_="card")


def _summary(summary: Mapping[str, Any]) -> Html:
    units, rows = summary["units"], []
    for name, figures in summary["metrics"].items():
        scale, unit = (1000, "ms") if units.get(name) == "s" else (1, units.get(name, ""))
        cells = (_cell(figures[stat] * (1 if stat == "N" else scale)) for stat in SHOWN)
        rows.append(row(f"{name}, {unit}", *numbers(cells)))
    common = [row(name, *numbers([_cell(value), units.get(name, "")])) for name, value in summary["common"].items()]
    tables = (
        _table("Metrics", head("metric", *((stat, "n") for stat in SHOWN)), rows),
        _table("Load", head("load", ("", "n"), ("unit", "n")), common),
    )
    return join(tables)


def _definitions() -> Html:
    told = [(metric.name, metric.meaning) for metric in DEFINITIONS]
    told += [(name, meaning) for name, _, meaning in COMMON]
    rows = [row(name, tag("td", meaning, class_="text")) for name, meaning in told]
    return scrolled("What the words mean", head("metric", "meaning"), tag("tbody", *rows))


def _table(label: str, names: Html, rows: Sequence[Html]) -> Html:
    return tag("div", scrolled(label, names, tag("tbody", *rows)), class_="card")


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 10_000 else f"{value:,.4g}"

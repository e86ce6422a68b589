"""The report of a load in, one HTML page out: tables and pictures inline, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.markup import Child, Html, join, tag
from .definitions import COMMON, DEFINITIONS, STEADY_RULE

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b3a4b}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.2rem .7rem;border-bottom:1px solid #dde5e9;text-align:right}"
    "td:first-child,th:first-child{text-align:left}"
    "svg{max-width:100%;height:auto}.note{color:#a33b22}.words td{text-align:left}"
)
SHOWN = ("Average", "Median", "P90", "P99", "P99.9", "N")


def render_page(title: str, levels: Sequence[Mapping[str, Any]], drawn: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page; `drawn` holds the SVGs of each level by name."""
    head = (tag("meta", charset="utf-8"), tag("title", title), Html(f"<style>{STYLE}</style>"), tag("h1", title))
    body = [part for level in levels for part in _level(level, drawn.get(level["level"], {}))]
    words = (tag("h2", "What the words mean"), _definitions(), tag("p", STEADY_RULE))
    return f"<!DOCTYPE html>{tag('html', head, body, words, lang='en')}\n"


def _level(level: Mapping[str, Any], drawn: Mapping[str, str]) -> Iterator[Html]:
    yield tag("h2", str(level["level"]))
    for note in level.get("notes", ()):
        yield tag("p", str(note), class_="note")
    if level.get("value"):
        yield _table(["accuracy and cost", ""], [[name, _cell(value)] for name, value in level["value"].items()])
    for stage, words in (("total", "Whole run"), ("steady", "Steady state")):
        if level.get(stage):
            yield tag("h3", words)
            yield _summary(level[stage])
    yield from map(Html, drawn.values())


def _summary(summary: Mapping[str, Any]) -> Html:
    units = summary["units"]
    rows = []
    for name, row in summary["metrics"].items():
        scale, unit = (1000, "ms") if units.get(name) == "s" else (1, units.get(name, ""))
        rows.append([f"{name}, {unit}", *(_cell(row[stat] * (1 if stat == "N" else scale)) for stat in SHOWN)])
    figures = [[name, _cell(value), units.get(name, "")] for name, value in summary["common"].items()]
    return join((_table(["metric", *SHOWN], rows), _table(["load", "", "unit"], figures)))


def _definitions() -> Html:
    rows = [[metric.name, metric.meaning] for metric in DEFINITIONS]
    rows += [[name, meaning] for name, _, meaning in COMMON]
    return tag("div", _table(["metric", "meaning"], rows), class_="words")


def _table(headings: Sequence[str], rows: Sequence[Sequence[Child]]) -> Html:
    head = tag("tr", *(tag("th", heading) for heading in headings))
    return tag("table", head, *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 10_000 else f"{value:,.4g}"

"""The report of a load in, one HTML page out: tables and pictures inline, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .definitions import COMMON, DEFINITIONS, STEADY_RULE

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b3a4b}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #dde5e9;text-align:right}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}.note{color:#a33b22}.words td{text-align:left}"
)
SHOWN = ("Average", "Median", "P90", "P99", "P99.9", "N")


def render_page(title: str, levels: Sequence[Mapping[str, Any]], drawn: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page; `drawn` holds the SVGs of each level by name."""
    body = "".join(part for level in levels for part in _level(level, drawn.get(level["level"], {})))
    head = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f"{head}<h1>{escape(title)}</h1>{body}<h2>What the words mean</h2>{_definitions()}<p>{escape(STEADY_RULE)}</p></html>\n"


def _level(level: Mapping[str, Any], drawn: Mapping[str, str]) -> Iterator[str]:
    yield f"<h2>{escape(str(level['level']))}</h2>"
    for note in level.get("notes", ()):
        yield f'<p class="note">{escape(str(note))}</p>'
    if level.get("value"):
        yield _table(["accuracy and cost", ""], [[name, _cell(value)] for name, value in level["value"].items()])
    for stage in ("total", "steady"):
        if level.get(stage):
            yield f"<h3>{'Whole run' if stage == 'total' else 'Steady state'}</h3>"
            yield _summary(level[stage])
    yield from drawn.values()


def _summary(summary: Mapping[str, Any]) -> str:
    units = summary["units"]
    rows = []
    for name, row in summary["metrics"].items():
        scale, unit = (1000, "ms") if units.get(name) == "s" else (1, units.get(name, ""))
        rows.append([f"{name}, {unit}", *(_cell(row[stat] * (1 if stat == "N" else scale)) for stat in SHOWN)])
    figures = [[name, _cell(value), units.get(name, "")] for name, value in summary["common"].items()]
    return _table(["metric", *SHOWN], rows) + _table(["load", "", "unit"], figures)


def _definitions() -> str:
    rows = [[each.name, each.meaning] for each in DEFINITIONS] + [[name, meaning] for name, _, meaning in COMMON]
    return f'<div class="words">{_table(["metric", "meaning"], rows)}</div>'


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 10_000 else f"{value:,.4g}"

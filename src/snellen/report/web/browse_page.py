"""A query over one task to the sample browser: filters, table, pages, each with its own address."""

from __future__ import annotations

import math

import msgspec

from ...core.markup import Html, shorten, tag
from ...core.types import Failure, Timing, Usage
from ...scoring.table import TrialColumns
from ..pages.parts import outcome_tag
from ..pages.tables import scrolled
from ..query import SEARCHED, Query, Rows
from .filters import filter_form, outcome_buttons
from .shelf import OpenRun
from .shell import address, link, pager, progress_bar, shell
from .walk import PAGE, Walk, walk_through

COLUMNS = dict.fromkeys(
    ("outcome", "trial", "question", "expected", "read as", "rule", "reply", "seconds", "tokens"), ""
)
COLUMNS |= {"outcome": "value", "trial": "sample", "seconds": "latency", "tokens": "tokens"}
"""The columns by their head, and what each sorts by."""


def browse_page(run: OpenRun, walk: Walk, wanted: str = "1") -> Html:
    """Return one page of the trials that match."""
    columns, rows, counts = walk_through(run, walk)
    pages = max(1, math.ceil(rows.size / PAGE))
    page = min(max(1, int(wanted)), pages) if wanted.isdecimal() and len(wanted) < 9 else 1
    shown = [int(row) for row in rows[(page - 1) * PAGE : page * PAGE]]
    body = tag("tbody", *(_row(run, columns, row, walk) for row in shown))
    table = scrolled("Trials", _caption(columns, rows, walk.query), _head(run, walk), body, class_="scroll card")
    everything = link("Show all", address(f"/run/{run.key}/trials", task=walk.task))
    pages_of = _pager(run, walk, page, pages)
    progress = run.progress()
    parts = [
        tag("h1", f"Trials of {walk.task}"),
        progress_bar(progress),
        outcome_buttons(run, walk, counts),
        filter_form(run, columns, walk, counts),
        pages_of,
        table if shown else tag("p", "No trial matches. ", everything),
        pages_of,
    ]
    live = None if progress.complete else address("/state", run=run.key)
    crumbs = [link("Runs", "/"), link(run.name, address(f"/run/{run.key}", task=walk.task)), "trials"]
    return shell(f"Trials of {run.name}", parts, crumbs=crumbs, live=live)


def _caption(columns: TrialColumns, rows: Rows, query: Query) -> Html:
    told = f"{rows.size:,} of {len(columns):,} trials"
    searched = f"; the text was looked for in ids, questions and the first {SEARCHED:,} characters of each reply"
    return tag("caption", told + (searched if query.text else ""))


class _Body(msgspec.Struct):
    text: str | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    timing: Timing | None = None

    def cells(self) -> tuple[str, str, str]:
        """Return the reply (or why there is none), the seconds and the tokens it took."""
        text = self.text if self.text is not None else self.failure.message if self.failure else ""
        seconds = f"{self.timing.done - self.timing.sent:.2f}" if self.timing else ""
        return text, seconds, f"{self.usage.output_tokens:,}" if self.usage and self.usage.output_tokens else ""


def _body(run: OpenRun, columns: TrialColumns, row: int) -> _Body:
    found = next(run.reader.rows("SELECT body FROM predictions WHERE rowid = ?", (int(columns.row[row]),)), None)
    return msgspec.json.decode(found[0], type=_Body) if found else _Body()


def _row(run: OpenRun, columns: TrialColumns, row: int, walk: Walk) -> Html:
    key, sample = columns.key(row), columns.facts[int(columns.sample[row])]
    text, *numbers = _body(run, columns, row).cells()
    name = link(key.sample, walk.trial(run, key), class_="mono")
    more = " ".join(
        [key.variant if key.variant != "base" else "", f"#{key.repeat + 1}" if columns.task.repeats > 1 else ""]
    ).strip()
    read = columns.text("answer", row) or columns.text("reason", row) or ""
    cells = [
        shorten(sample.question, 120),
        shorten(", ".join(sample.answers), 60),
        shorten(read, 60),
        columns.text("rule", row) or "",
        shorten(text, 140),
    ]
    shown = tag("th", name, tag("div", more, class_="muted small") if more else None, scope="row")
    outcome = tag("td", outcome_tag(int(columns.outcome[row]), float(columns.value[row])))
    told = [tag("td", cell, class_="text") for cell in cells] + [tag("td", number, class_="n") for number in numbers]
    return tag("tr", outcome, shown, *told, class_="row")


def _head(run: OpenRun, walk: Walk) -> Html:
    query, cells = walk.query, []
    for words, sort in COLUMNS.items():
        kind = "n" if sort in ("latency", "tokens") else None
        if not sort:
            cells.append(tag("th", words, scope="col"))
            continue
        down = query.sort == sort and not query.descending
        arrow = (" ↓" if query.descending else " ↑") if query.sort == sort else ""
        order = ("descending" if query.descending else "ascending") if query.sort == sort else None
        to = walk.to(run, sort=sort, order="down" if down else "")
        cells.append(tag("th", link(words + arrow, to), scope="col", class_=kind, aria_sort=order))
    return tag("thead", tag("tr", *cells))


def _pager(run: OpenRun, walk: Walk, page: int, pages: int) -> Html | None:
    if pages == 1:
        return None
    before = ("← Previous", walk.to(run, page=page - 1)) if page > 1 else None
    after = ("Next →", walk.to(run, page=page + 1)) if page < pages else None
    return pager(before, f"page {page:,} of {pages:,}", after, label="Pages of trials")

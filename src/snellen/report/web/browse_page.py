"""A query over one task to the sample browser: filters, table, pages, each with its own address."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec

from ...core.markup import Html, shorten, tag
from ...core.types import Failure, Timing, Usage
from ...scoring.table import TrialColumns
from ..pages.parts import outcome_tag
from ..pages.tables import scrolled
from ..query import OUTCOMES, SORTS, Query, Rows, select
from .shelf import OpenRun
from .shell import address, link, pager, progress_bar, shell, trial_address

PAGE = 50
COLUMNS = dict.fromkeys(
    ("outcome", "trial", "question", "expected", "read as", "rule", "reply", "seconds", "tokens"), ""
)
COLUMNS |= {"outcome": "value", "trial": "sample", "seconds": "latency", "tokens": "tokens"}
"""The columns by their head, and what each sorts by."""
MOST_CHOICES = 500
"""A list longer than this is no longer a list to choose from; the text field takes the rest."""


def parse_query(told: Mapping[str, str]) -> Query:
    """Return the query of an address; what is not understood falls back to everything."""
    key, _, group = told.get("group", "").partition("=")
    outcome, sort = told.get("outcome", "all"), told.get("sort", "plan")
    return Query(
        outcome if outcome in OUTCOMES else "all",
        told.get("rule", ""),
        key,
        group,
        told.get("text", ""),
        sort if sort in SORTS else "plan",
        told.get("order") == "down",
    )


def find_rows(run: OpenRun, task: str, query: Query, metric: str = "") -> tuple[TrialColumns, Rows]:
    """Return the columns of a task and the rows that match."""
    columns = run.columns(task, metric)
    return columns, select(
        columns, query, search=lambda text: run.search(task).find(text), costs=lambda: run.costs(task)
    )


def browse_page(run: OpenRun, task: str, told: Mapping[str, str]) -> Html:
    """Return one page of the trials that match."""
    query, metric = parse_query(told), told.get("metric", "")
    columns, rows = find_rows(run, task, query, metric)
    pages = max(1, math.ceil(rows.size / PAGE))
    wanted = told.get("page", "1")
    page = min(max(1, int(wanted)), pages) if wanted.isdecimal() and len(wanted) < 9 else 1
    shown = [int(row) for row in rows[(page - 1) * PAGE : page * PAGE]]
    kept = {"task": columns.task.name, **_kept(query), "metric": metric}
    body = tag("tbody", *(_row(run, columns, row) for row in shown))
    caption = tag("caption", f"{rows.size:,} of {len(columns):,} trials")
    table = scrolled("Trials", caption, _head(run, kept, query), body, class_="scroll card")
    everything = link("Show all", address(f"/run/{run.key}/trials", task=columns.task.name))
    pages_of = _pager(run, kept, page, pages)
    progress = run.progress()
    parts = [
        tag("h1", f"Trials of {columns.task.name}"),
        progress_bar(progress),
        _form(run, columns, query),
        pages_of,
        table if shown else tag("p", "No trial matches. ", everything),
        pages_of,
    ]
    live = None if progress.complete else address("/state", run=run.key)
    crumbs = [link("Runs", "/"), link(run.name, address(f"/run/{run.key}", task=columns.task.name)), "trials"]
    return shell(f"Trials of {run.name}", parts, crumbs=crumbs, live=live)


def _kept(query: Query) -> dict[str, str]:
    group = f"{query.key}={query.group}" if query.key else ""
    chosen = {"outcome": query.outcome, "rule": query.rule, "group": group, "text": query.text}
    chosen |= {"sort": query.sort, "order": "down" if query.descending else ""}
    return {key: value for key, value in chosen.items() if value not in ("all", "plan", "")}


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


def _row(run: OpenRun, columns: TrialColumns, row: int) -> Html:
    key, sample = columns.key(row), columns.facts[int(columns.sample[row])]
    text, *numbers = _body(run, columns, row).cells()
    name = link(key.sample, trial_address(run, key), class_="mono")
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


def _head(run: OpenRun, kept: Mapping[str, str], query: Query) -> Html:
    cells = []
    for words, sort in COLUMNS.items():
        kind = "n" if sort in ("latency", "tokens") else None
        if not sort:
            cells.append(tag("th", words, scope="col"))
            continue
        down = query.sort == sort and not query.descending
        arrow = (" ↓" if query.descending else " ↑") if query.sort == sort else ""
        order = ("descending" if query.descending else "ascending") if query.sort == sort else None
        to = address(f"/run/{run.key}/trials", **{**kept, "sort": sort, "order": "down" if down else ""})
        cells.append(tag("th", link(words + arrow, to), scope="col", class_=kind, aria_sort=order))
    return tag("thead", tag("tr", *cells))


def _form(run: OpenRun, columns: TrialColumns, query: Query) -> Html:
    groups = run.groups(columns.task.name)
    choices = [f"{key}={value}" for key, values in groups.items() for value in values][:MOST_CHOICES]
    rules = sorted({*columns.rules, *columns.reasons})[:MOST_CHOICES]
    current = f"{query.key}={query.group}" if query.key else ""
    kept = {"task": columns.task.name, "sort": query.sort, "order": "down" if query.descending else ""}
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in kept.items() if value]
    text = tag("input", type="search", name="text", value=query.text, id="search")
    fields = [
        tag("label", "outcome", _select("outcome", list(OUTCOMES), query.outcome, none=False)),
        tag("label", "rule or reason", _select("rule", rules, query.rule)),
        tag("label", "group", _select("group", choices, current)),
        tag("label", "text in question, id or reply", text),
        *_metric_choice(columns),
        tag("button", "Filter"),
    ]
    to = f"/run/{run.key}/trials"
    return tag("form", *hidden, *fields, method="get", action=to, class_="filters", role="search", data_filters=True)


def _metric_choice(columns: TrialColumns) -> Iterator[Html]:
    if len(columns.metrics) > 1:
        yield tag("label", "metric", _select("metric", list(columns.metrics), columns.metric, none=False))


def _select(name: str, values: list[str], chosen: str, *, none: bool = True) -> Html:
    offered = [*values, *([chosen] if chosen and chosen not in values else [])]
    options = [tag("option", shorten(value, 60), value=value, selected=value == chosen) for value in offered]
    return tag("select", tag("option", "any", value="", selected=not chosen) if none else None, *options, name=name)


def _pager(run: OpenRun, kept: Mapping[str, str], page: int, pages: int) -> Html | None:
    if pages == 1:
        return None

    def to(number: int) -> str:
        return address(f"/run/{run.key}/trials", **{**kept, "page": str(number)})

    before = ("← Previous", to(page - 1)) if page > 1 else None
    after = ("Next →", to(page + 1)) if page < pages else None
    return pager(before, f"page {page:,} of {pages:,}", after, label="Pages of trials")

"""A query over one task to the sample browser: filters, table, pages, each with its own address."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.markup import Child, Html, tag
from ...scoring.aggregates.means import headline_of, split
from ...scoring.tables.table import ScoreTable, TrialColumns
from ..pages import draw
from ..pages.parts import DRAWN, head, numbers, scrolled
from ..patterns import PatternProblem
from ..query import SEARCHED, Query, Rows
from ..written import RESTS_ON, percent_metric, rests_on, written, written_interval
from .run_library import OpenRun
from .shell import address, link, notes_notice, pager, progress_bar, shell
from .trial_table import SCORE, all_columns, gallery_grid, score_columns, trial_table
from .walk import Walk, Walked, chosen_groups, filter_form, outcome_buttons, walk_through

MOST_GROUPS = 200


def group_chart(run: OpenRun, walk: Walk) -> Iterator[Child]:
    """Yield the groups of the tag that was chosen, over all outcomes of the trials that the other filters leave."""
    key = walk.look.by
    if not key or key not in run.groups(walk.task):
        return
    every = walk._replace(query=msgspec.structs.replace(walk.query, outcome="all"))
    columns, rows, _ = walk_through(run, every)
    order = np.lexsort((columns.repeat[rows], columns.variant[rows], columns.sample[rows]))
    table = columns.take(rows[order])  # the order that aggregates read
    parts = dict(_by_group(table) if key == "group" else split(table, key))
    shown = list(parts.items())[:MOST_GROUPS]
    body = [_row(run, walk, key, value, part) for value, part in shown]
    more = f", the first {MOST_GROUPS} of {len(parts):,}" if len(parts) > MOST_GROUPS else ""
    caption = f"{columns.metric or 'trials'} by {key}, all outcomes of the trials that the other filters leave{more}"
    names = head(key, ("value", "n"), ("95 % interval", "n"), DRAWN, *((name, "n") for name in RESTS_ON))
    yield scrolled(caption, tag("caption", caption), names, tag("tbody", *body), class_="scroll card bygroup")


def _by_group(table: ScoreTable) -> Iterator[tuple[str, ScoreTable]]:
    codes, texts = table.groups or (np.full(len(table.samples), -1, np.int32), ())
    of_trial = codes[table.sample]
    order = np.argsort(of_trial, kind="stable")
    found, starts = np.unique(of_trial[order], return_index=True)
    named: dict[str, list[NDArray[np.int64]]] = {}
    for code, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        named.setdefault((texts[code] if code >= 0 else "") or "none", []).append(rows)
    for name in sorted(named):
        yield name, table.take(np.sort(np.concatenate(named[name])))


def _row(run: OpenRun, walk: Walk, key: str, value: str, part: ScoreTable) -> Html:
    estimate = msgspec.to_builtins(headline_of(part)[part.metric])
    chosen = [one for one in chosen_groups(walk.query) if not one.startswith(f"{key}=")]
    to = walk.to(run, group=[*chosen, f"{key}={value}"])
    share = percent_metric(part.metric, estimate)
    drawn = draw.interval(estimate["value"], estimate.get("ci95"), 0.0, 1.0) if share else ""
    shown = (written(part.metric, estimate), written_interval(part.metric, estimate))
    name = tag("th", link(value, to), scope="row")
    counts = numbers(f"{count:,}" for count in rests_on(estimate))
    return tag("tr", name, *numbers(shown), tag("td", drawn, class_="bar"), *counts)


def look_bar(run: OpenRun, walk: Walk) -> Html:
    """Return the ways to show the same trials otherwise; filters and order stay."""
    look = walk.look
    views = [
        _way("Table", walk.to(run, view=""), here=not look.gallery),
        _way("Gallery", walk.to(run, view="gallery"), here=look.gallery),
        _way("Roomy", walk.to(run, dense=""), here=not look.dense),
        _way("Dense", walk.to(run, dense="1"), here=look.dense),
    ]
    columns = None if look.gallery else _columns(run, walk)
    return tag(
        "div", tag("nav", *views, aria_label="Show as", class_="looks"), columns, _by(run, walk), class_="lookbar"
    )


def _way(words: str, to: str, *, here: bool) -> Html:
    return link(words, to, class_="button quiet small", aria_current="true" if here else None)


def _kept(walk: Walk, *but: str) -> list[Html]:
    told = {"task": walk.task, **{key: value for key, value in walk.kept.items() if key not in but}}
    groups = told.pop("group", [])
    values = [*told.items(), *(("group", one) for one in (groups if isinstance(groups, list) else []))]
    return [tag("input", type="hidden", name=name, value=str(value)) for name, value in values]


def _columns(run: OpenRun, walk: Walk) -> Html:
    """Return the choice of columns; all of them are none chosen."""
    every = all_columns(score_columns(run.columns(walk.task, walk.metric)))
    chosen = walk.look.columns or every
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", name="columns", value=name, checked=name in chosen),
            f" {name.removeprefix(SCORE)}",
        )
        for name in every
        if name != "trial"
    ]
    form = tag("form", *_kept(walk, "columns"), *boxes, tag("button", "Show these"), method="get", action=_to(run))
    return tag("details", tag("summary", "Columns"), form, class_="choice")


def _by(run: OpenRun, walk: Walk) -> Html | None:
    keys = list(run.groups(walk.task))
    if not keys:
        return None
    options = [tag("option", key, value=key, selected=key == walk.look.by) for key in keys]
    nothing = tag("option", "nothing", value="", selected=not walk.look.by)
    label = tag("label", "group by ", tag("select", nothing, *options, name="by"))
    fields = (*_kept(walk, "by"), label, tag("button", "Group", class_="quiet"))
    return tag("form", *fields, method="get", action=_to(run), data_filters=True)


def _to(run: OpenRun) -> str:
    return f"/run/{run.key}/trials"


def browse_page(run: OpenRun, walk: Walk, wanted: str = "1") -> Html:
    """Return one page of the trials that match."""
    (columns, rows, counts), problem = _found(run, walk)
    size = walk.look.page
    pages = max(1, math.ceil(rows.size / size))
    page = min(max(1, int(wanted)), pages) if wanted.isdecimal() and len(wanted) < 9 else 1
    shown = [int(row) for row in rows[(page - 1) * size : page * size]]
    show = gallery_grid if walk.look.gallery else trial_table
    table = show(run, columns, shown, walk, _caption(columns, rows, walk.query)) if shown else None
    everything = link("Show all", address(f"/run/{run.key}/trials", task=walk.task))
    pages_of = _pager(run, walk, page, pages)
    progress = run.progress()
    parts = [
        tag("h1", f"Trials of {walk.task}"),
        progress_bar(run),
        notes_notice(run),
        outcome_buttons(run, walk, counts),
        _folded(filter_form(run, columns, walk, counts), walk),
        look_bar(run, walk),
        *(() if problem else group_chart(run, walk)),
        pages_of,
        problem or table or tag("p", "No trial matches. ", everything),
        pages_of,
    ]
    live = None if progress.complete else address("/state", run=run.key)
    crumbs = [link("Runs", "/"), link(run.name, address(f"/run/{run.key}", task=walk.task)), "trials"]
    return shell(f"Trials of {run.name}", parts, crumbs=crumbs, live=live)


def _folded(form: Html, walk: Walk) -> Html:
    """Return the form in a fold that only a phone shows: there it is shut where nothing is filtered."""
    kept = {*walk.kept} - {"metric", "sort", "order", "outcome", *walk.look.kept}
    return tag("details", tag("summary", "Filters"), form, open=True, class_="filterfold", data_fold=not kept)


def _found(run: OpenRun, walk: Walk) -> tuple[Walked, Html | None]:
    """Return what the walk finds; of a pattern that cannot be tried nothing, and why: its form stays, to be mended."""
    try:
        return walk_through(run, walk), None
    except PatternProblem as error:
        rest = walk_through(run, walk._replace(query=structs.replace(walk.query, text="")))
        return rest._replace(rows=rest.rows[:0]), tag(
            "p", f"Nothing was looked for: {error}", class_="notice", role="alert"
        )


def _caption(columns: TrialColumns, rows: Rows, query: Query) -> Html:
    told = f"{rows.size:,} of {len(columns):,} trials"
    searched = f"; the text was looked for in ids, questions and the first {SEARCHED:,} characters of each reply"
    return tag("caption", told + (searched if query.text else ""))


def _pager(run: OpenRun, walk: Walk, page: int, pages: int) -> Html | None:
    if pages == 1:
        return None
    before = ("← Previous", walk.to(run, page=page - 1)) if page > 1 else None
    after = ("Next →", walk.to(run, page=page + 1)) if page < pages else None
    return pager(before, f"page {page:,} of {pages:,}", after, label="Pages of trials")

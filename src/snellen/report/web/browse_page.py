"""A query over one task to the sample browser: filters, table, pages, each with its own address."""

from __future__ import annotations

import math

from msgspec import structs

from ...core.markup import Html, tag
from ...scoring.table import TrialColumns
from ..patterns import PatternProblem
from ..query import SEARCHED, Query, Rows
from ..trials.gallery_grid import gallery_grid
from ..trials.group_chart import group_chart
from ..trials.look_bar import look_bar
from .filters import filter_form, outcome_buttons
from .shelf import OpenRun
from .shell import address, link, notes_notice, pager, progress_bar, shell
from .trial_table import trial_table
from .walk import Walk, Walked, walk_through


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

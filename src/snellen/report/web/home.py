"""The shelf to the table of all its runs."""

from __future__ import annotations

from ...core.markup import Html, tag
from ...core.tasks import RunHeader
from ...core.text import plural
from ..boards.headline import headline
from ..pages import draw
from ..pages.tables import DRAWN, numbers
from ..written import written, written_interval
from .shelf import OpenRun, Shelf
from .shell import address, link, progress_bar, shell

COLUMNS = ("compare", "run", "model", "task", "metric", "value", "95 % interval", DRAWN, "n", "lost", "begun")
SORTS = {"begun": True, "run": False, "model": False}
"""What the runs can be ordered by, and whether the first way is downwards: the newest run stands first."""
ONE_LINE = 36
"""Names up to this length stay on one line; longer ones fold, none is cut."""


def runs_page(shelf: Shelf, text: str = "", sort: str = "begun", *, turned: bool = False) -> Html:
    """Return the table of the runs whose names hold a text, with boxes to choose some for a comparison."""
    runs = shelf.runs()
    sort = sort if sort in SORTS else "begun"
    named = [run for run in runs if _holds(run, text)]  # by name, and so they stay where the order does not part them
    chosen = sorted(named, key=lambda run: _order(run, sort), reverse=SORTS[sort] != turned)
    rows, unfinished = [], False
    for run in chosen:
        with run.held():
            unfinished = unfinished or not run.progress().complete
            rows += _run_rows(run)
    words = plural(len(runs), "run") if len(chosen) == len(runs) else f"{len(chosen):,} of {plural(len(runs), 'run')}"
    table = tag("table", tag("caption", words), _head(text, sort, turned=turned), tag("tbody", *rows))
    hint = tag("span", "two to five on the same task", class_="muted small")
    choice = tag("p", tag("button", "Compare the chosen runs"), " ", hint)
    form = tag("form", tag("div", table, class_="scroll card runs"), choice, method="get", action="/compare")
    parts = [tag("h1", "Runs"), _search(text, sort) if runs else None, form if chosen else _nothing(text)]
    return shell("Runs", [*parts, _problems(shelf)], place="/", live="/state" if unfinished else None)


def _holds(run: OpenRun, text: str) -> bool:
    """Look for every word in the names of the run, its model and its tasks."""
    header = _header(run)
    names = " ".join((run.name, header.model, *(task.name for task in header.tasks))).lower()
    return all(word in names for word in text.lower().split())


def _order(run: OpenRun, sort: str) -> str:
    return {"begun": _header(run).created, "model": _header(run).model}.get(sort, run.name)


def _header(run: OpenRun) -> RunHeader:
    with run.lock:
        return run.header()


def _search(text: str, sort: str) -> Html:
    field = tag("input", type="search", name="text", value=text, id="search")
    kept = tag("input", type="hidden", name="sort", value=sort) if sort != "begun" else None
    fields = (tag("label", "run, model or task", field), kept, tag("button", "Search"))
    return tag("form", *fields, method="get", action="/", class_="filters", role="search")


def _nothing(text: str) -> Html:
    if text:
        return tag("p", "No run has this in its name, model or tasks. ", link("Show all", "/"))
    return tag("p", "No runs here yet. Make one: ", tag("code", "snellen run eyechart --model reader"))


def _head(text: str, sort: str, *, turned: bool) -> Html:
    cells = [_head_cell(name, text, here=name == sort, turned=turned) for name in COLUMNS]
    return tag("thead", tag("tr", *cells))


def _head_cell(name: str, text: str, *, here: bool, turned: bool) -> Html:
    """Return the head of a column; one that can be sorted by is a link, which turns the order the second time."""
    if name not in SORTS:
        return tag("th", name, scope="col", class_="n" if name in ("n", "lost") else None)
    to = address("/", text=text, sort=name, turned="1" if here and not turned else "")
    if not here:
        return tag("th", link(name, to), scope="col")
    down = SORTS[name] != turned
    arrow, order = ("↓", "descending") if down else ("↑", "ascending")
    return tag("th", link(f"{name} {arrow}", to), scope="col", aria_sort=order)


def _run_rows(run: OpenRun) -> list[Html]:
    header, rows = run.header(), []
    for number, (task, result) in enumerate(run.results()["tasks"].items()):
        name, estimate = headline(result["metrics"], result.get("headline"))
        metric, value = name or "–", estimate["value"]
        drawn = draw.interval(value, estimate.get("ci95"), 0.0, 1.0) if 0 <= (value or 0) <= 1 else ""
        box = tag("input", type="checkbox", name="run", value=run.key, aria_label=f"Compare {run.name}")
        shown = (metric, written(metric, estimate), written_interval(metric, estimate))
        progress = progress_bar(run) if number == 0 else None
        cells = (
            tag("td", box if number == 0 else ""),
            tag("th", link(run.name, f"/run/{run.key}"), progress, scope="row", class_=_fold(run.name)),
            tag("td", header.model, class_=_fold(header.model)),
            tag("td", link(task, address(f"/run/{run.key}", task=task)), class_=_fold(task)),
            *(tag("td", cell, class_="nowrap") for cell in shown),
            tag("td", drawn, class_="bar"),
            *numbers((f"{estimate['n']:,}", f"{estimate['unscored'] + estimate['failed']:,}")),
            tag("td", header.created[:16].replace("T", " "), class_="nowrap muted"),
        )
        rows.append(tag("tr", *cells, class_="row"))
    return rows


def _fold(name: str) -> str:
    return "nowrap" if len(name) <= ONE_LINE else "fold"


def _problems(shelf: Shelf) -> Html | None:
    if not shelf.problems:
        return None
    items = [tag("li", tag("b", name), ": ", reason) for name, reason in sorted(shelf.problems.items())]
    return tag("div", tag("h2", "Runs that cannot be shown"), tag("ul", *items), class_="notice")

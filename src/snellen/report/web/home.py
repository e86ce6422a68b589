"""The shelf to the table of all its runs."""

from __future__ import annotations

from ...core.markup import Html, tag
from ..boards.headline import headline
from ..pages import draw
from ..pages.tables import DRAWN, head, numbers
from ..written import written, written_interval
from .shelf import OpenRun, Shelf
from .shell import address, link, progress_bar, shell

COLUMNS = ("compare", "run", "model", "task", "metric", "value", "95 % interval", DRAWN, "n", "lost", "begun")


def runs_page(shelf: Shelf) -> Html:
    """Return the table of all runs, with boxes to choose some for a comparison."""
    runs = shelf.runs()
    rows, unfinished = [], False
    for run in runs:
        with run.held():
            unfinished = unfinished or not run.progress().complete
            rows += _run_rows(run)
    table = tag("table", tag("caption", f"{len(runs)} runs"), head(*COLUMNS), tag("tbody", *rows))
    hint = tag("span", "two to five on the same task", class_="muted small")
    choice = tag("p", tag("button", "Compare the chosen runs"), " ", hint)
    form = tag("form", tag("div", table, class_="scroll card"), choice, method="get", action="/compare")
    empty = tag("p", "No runs here yet. Make one: ", tag("code", "snellen run eyechart --model reader"))
    parts = [tag("h1", "Runs"), form if runs else empty, _problems(shelf)]
    return shell("Runs", parts, place="/", live="/state" if unfinished else None)


def _run_rows(run: OpenRun) -> list[Html]:
    header, rows = run.header(), []
    for number, (task, result) in enumerate(run.results()["tasks"].items()):
        name, estimate = headline(result["metrics"])
        metric, value = name or "–", estimate["value"]
        drawn = draw.interval(value, estimate.get("ci95"), 0.0, 1.0) if 0 <= (value or 0) <= 1 else ""
        box = tag("input", type="checkbox", name="run", value=run.key, aria_label=f"Compare {run.name}")
        shown = (metric, written(metric, estimate), written_interval(metric, estimate))
        progress = progress_bar(run.progress()) if number == 0 else None
        cells = (
            tag("td", box if number == 0 else ""),
            tag("th", link(run.name, f"/run/{run.key}"), progress, scope="row"),
            tag("td", header.model),
            tag("td", link(task, address(f"/run/{run.key}", task=task))),
            *(tag("td", cell, class_="nowrap") for cell in shown),
            tag("td", drawn, class_="bar"),
            *numbers((f"{estimate['n']:,}", f"{estimate['unscored'] + estimate['failed']:,}")),
            tag("td", header.created[:16].replace("T", " "), class_="nowrap muted"),
        )
        rows.append(tag("tr", *cells, class_="row"))
    return rows


def _problems(shelf: Shelf) -> Html | None:
    if not shelf.problems:
        return None
    items = [tag("li", tag("b", name), ": ", reason) for name, reason in sorted(shelf.problems.items())]
    return tag("div", tag("h2", "Runs that cannot be shown"), tag("ul", *items), class_="notice")

"""The shelf to its two tables: all runs, and the leaderboard."""

from __future__ import annotations

from ...core.markup import Child, Html, tag
from ...extract.profiles import PROFILES
from ..boards.headline import headline
from ..boards.ranking import Board, Line
from ..pages import draw
from ..pages.parts import written, written_interval
from .shelf import OpenRun, Shelf
from .shell import address, link, progress_bar, shell

PROFILE_NAMES = tuple(PROFILES)


def runs_page(shelf: Shelf) -> Html:
    """Return the table of all runs, with boxes to choose some for a comparison."""
    runs = shelf.runs()
    rows, unfinished = [], False
    for run in runs:
        with run.lock:
            run.refresh()
            unfinished = unfinished or not run.progress().complete
            rows += _run_rows(run)
    names = ("compare", "run", "model", "task", "metric", "value", "95 % interval", "", "n", "lost", "begun")
    head = tag(
        "thead", tag("tr", *(tag("th", name or tag("span", "drawn", class_="hidden"), scope="col") for name in names))
    )
    table = tag(
        "div", tag("table", tag("caption", f"{len(runs)} runs"), head, tag("tbody", *rows)), class_="scroll card"
    )
    form = tag(
        "form",
        table,
        tag(
            "p",
            tag("button", "Compare the chosen runs"),
            " ",
            tag("span", "two to five on the same task", class_="muted small"),
        ),
        method="get",
        action="/compare",
    )
    empty = tag("p", "No runs here yet. Make one: ", tag("code", "snellen run eyechart --model reader"))
    return shell(
        "Runs",
        [tag("h1", "Runs"), form if runs else empty, _problems(shelf)],
        place="/",
        live="/state" if unfinished else None,
    )


def _run_rows(run: OpenRun) -> list[Html]:
    header, results, progress = run.header(), run.results(), run.progress()
    rows = []
    for number, (task, result) in enumerate(results["tasks"].items()):
        name, estimate = headline(result["metrics"])
        metric = name or "–"
        drawn = (
            draw.interval(estimate["value"], estimate.get("ci95"), 0.0, 1.0)
            if 0 <= (estimate["value"] or 0) <= 1
            else ""
        )
        first = number == 0
        box = (
            tag("input", type="checkbox", name="run", value=run.key, aria_label=f"Compare {run.name}") if first else ""
        )
        state = progress_bar(progress) if first else None
        lost = estimate["unscored"] + estimate["failed"]
        cells = [metric, written(metric, estimate), written_interval(metric, estimate)]
        rows.append(
            tag(
                "tr",
                tag("td", box),
                tag("th", link(run.name, f"/run/{run.key}"), state, scope="row"),
                tag("td", header.model),
                tag("td", link(task, address(f"/run/{run.key}", task=task))),
                *(tag("td", cell, class_="nowrap") for cell in cells),
                tag("td", drawn, class_="bar"),
                tag("td", f"{estimate['n']:,}", class_="n"),
                tag("td", f"{lost:,}", class_="n"),
                tag("td", header.created[:16].replace("T", " "), class_="nowrap muted"),
                class_="row",
            )
        )
    return rows


def _problems(shelf: Shelf) -> Html | None:
    if not shelf.problems:
        return None
    items = [tag("li", tag("b", name), ": ", reason) for name, reason in sorted(shelf.problems.items())]
    return tag("div", tag("h2", "Runs that cannot be shown"), tag("ul", *items), class_="notice")


def board_page(board: Board, keys: dict[str, str]) -> Html:
    """Return the leaderboard; `keys` are the runs' keys by name."""
    head = [
        "#",
        "model",
        "run",
        "tasks",
        "average rank",
        "mean",
        "95 % interval",
        "",
        *(f"{name}" for name in board.dimensions),
        *board.tasks,
    ]
    rows, last = [], 0
    for line in board.lines:
        rows.append(_board_row(line, board, keys, new=line.band != last))
        last = line.band
    table = tag(
        "table",
        tag(
            "caption",
            "Best first, runs that did more tasks above. Rank 1 is best; a task a run has not done does not count for it.",
        ),
        _head(head),
        tag("tbody", *rows),
    )
    note = (
        "Runs with the same number cannot be told apart from the first run of that number (95 %, unpaired, so on the safe side). "
        "Choose runs under Runs to test them on the samples they share."
    )
    downloads = [
        link(name, address("/leaderboard/download", format=form), class_="button quiet")
        for form, name in (("csv", "CSV"), ("markdown", "Markdown"), ("latex", "LaTeX"))
    ]
    return shell(
        "Leaderboard",
        [
            tag("h1", "Leaderboard"),
            tag("p", note, class_="muted"),
            tag("div", table, class_="scroll card", tabindex=0, role="region", aria_label="Leaderboard"),
            tag("p", *downloads, class_="bar-of-buttons"),
        ],
        place="/leaderboard",
    )


def _head(names: list[str]) -> Html:
    return tag(
        "thead", tag("tr", *(tag("th", name or tag("span", "drawn", class_="hidden"), scope="col") for name in names))
    )


def _board_row(line: Line, board: Board, keys: dict[str, str], *, new: bool) -> Html:
    rank, mean, bounds = _standing(line)
    place = tag(
        "td",
        tag("b", line.band)
        if new
        else tag("span", f"{line.band} =", class_="muted", title="not distinguishable from the first of this number"),
        class_="nowrap",
    )
    name: Child = link(line.name, f"/run/{keys[line.name]}") if line.name in keys else line.name
    dimensions = [
        tag("td", f"{line.dimensions[name] * 100:.1f} %" if name in line.dimensions else "–", class_="n")
        for name in board.dimensions
    ]
    numbers = [tag("td", told, class_="n") for told in (f"{len(line.tasks)} of {len(board.tasks)}", rank, mean, bounds)]
    drawn = tag("td", draw.interval(line.mean, line.ci95, 0.0, 1.0), class_="bar")
    model = tag("th", line.model, scope="row", class_="nowrap")
    cells = [_board_cell(line, task) for task in board.tasks]
    return tag(
        "tr", place, model, tag("td", name), *numbers, drawn, *dimensions, *cells, class_="row best" if new else "row"
    )


def _standing(line: Line) -> tuple[str, str, str]:
    rank = "–" if line.average_rank is None else f"{line.average_rank:.2f}"
    mean = "–" if line.mean is None else f"{line.mean * 100:.1f} %"
    return rank, mean, f"{line.ci95[0] * 100:.1f} – {line.ci95[1] * 100:.1f}" if line.ci95 else "–"


def _board_cell(line: Line, task: str) -> Html:
    cell = line.tasks.get(task)
    if cell is None or cell.value is None:
        return tag("td", "–", class_="n")
    value = f"{cell.value * 100:.1f}" if 0 <= cell.value <= 1 else f"{cell.value:.3g}"
    half = f" ± {(cell.ci95[1] - cell.ci95[0]) * 50:.1f}" if cell.ci95 and 0 <= cell.value <= 1 else ""
    return tag(
        "td",
        value,
        tag("span", half, class_="muted small"),
        class_="n",
        title=f"{cell.metric}, n {cell.n}, rank {cell.rank:g}" if cell.rank else cell.metric,
    )


def profile_choice(run: OpenRun, task: str) -> Html:
    """Return the form that reads a run's replies as another tool does."""
    options = [tag("option", name, value=name) for name in PROFILE_NAMES]
    label = tag("label", "read the replies as", tag("select", *options, name="profile"))
    return tag(
        "form",
        tag("input", type="hidden", name="task", value=task),
        label,
        tag("button", "Score again"),
        method="get",
        action=f"/run/{run.key}/again",
        class_="filters",
    )


def again_page(run: OpenRun, profile: str, *, may_write: bool) -> Html:
    """Return the results as stored and as another profile reads them, side by side."""
    before, after = run.results(), run.rescored(profile)
    parts: list[Child] = [
        tag("h1", f"{run.name} read as {profile}"),
        tag("p", "The stored replies, scored again. Nothing was asked, nothing was written.", class_="muted"),
    ]
    for task, result in after["tasks"].items():
        old, new = before["tasks"].get(task, {}).get("metrics", {}), result["metrics"]
        rows = [
            tag("tr", tag("th", name, scope="row"), *_pair(name, old.get(name), new.get(name)))
            for name in dict.fromkeys([*old, *new])
        ]
        heads = [("metric", None), (before["run"]["profile"], "n"), (profile, "n"), ("difference", "n")]
        parts += [
            tag("h2", task),
            tag(
                "div",
                tag(
                    "table",
                    tag("thead", tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in heads))),
                    tag("tbody", *rows),
                ),
                class_="card scroll",
            ),
        ]
    if may_write:
        parts.append(
            tag(
                "form",
                tag("input", type="hidden", name="profile", value=profile),
                tag("button", f"Keep the scores of {profile} in this run"),
                method="post",
                action=f"/run/{run.key}/again",
            )
        )
    return shell(
        f"{run.name} as {profile}",
        parts,
        crumbs=[link("Runs", "/"), link(run.name, f"/run/{run.key}"), f"as {profile}"],
    )


def _pair(name: str, old: dict[str, float] | None, new: dict[str, float] | None) -> tuple[Html, Html, Html]:
    shown = [tag("td", "–" if one is None else written(name, one), class_="n") for one in (old, new)]
    known = old is not None and new is not None and old.get("value") is not None and new.get("value") is not None
    change = f"{new['value'] - old['value']:+.3f}" if known and old and new else "–"
    return shown[0], shown[1], tag("td", change, class_="n")

"""The leaderboard to its page: who is best, how surely, and on which task."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ...core.markup import Child, Html, tag
from ..boards.cost_cells import cost_cells
from ..boards.ranking import Board, Line
from ..pages import draw
from ..pages.tables import DRAWN, head, numbers, scrolled
from .shell import downloads, link, shell

CAPTION = "Best first, among runs of the same questions, metric, way of asking, variants and reading. Rank 1 is best."
NOTE = (
    "Runs with the same number cannot be told apart from the first run of that number "
    "(95 %, unpaired, so on the safe side). Choose runs under Runs to test them on the samples they share."
)
COLUMNS = ("#", "model", "run", *((name, "n") for name in ("tasks", "average rank", "mean", "95 % interval")), DRAWN)


def board_page(board: Board, keys: dict[str, str]) -> Html:
    """Return the leaderboard; `keys` are the runs' keys by name."""
    blocks = [list(lines) for _, lines in groupby(board.lines, key=lambda line: line.block)]
    tables = [_table(board, lines, keys) for lines in blocks]
    parts = [tag("h1", "Leaderboard"), tag("p", NOTE, class_="muted"), *tables, downloads("/leaderboard/download")]
    return shell("Leaderboard", parts, place="/leaderboard")


def _table(board: Board, lines: Sequence[Line], keys: dict[str, str]) -> Html:
    """Return one block: runs that did the same, ranked among themselves."""
    tasks = [task for task in board.tasks if task in lines[0].tasks]
    rows, last = [], 0
    for line in lines:
        rows.append(_row(line, board, tasks, keys, new=line.band not in (0, last)))
        last = line.band
    names = head(*COLUMNS, *((name, "n") for name in (*board.cost_columns, *board.dimensions, *tasks)))
    label = f"Leaderboard: {', '.join(tasks)}"
    return scrolled(label, tag("caption", CAPTION), names, tag("tbody", *rows), class_="scroll card")


def _row(line: Line, board: Board, tasks: Sequence[str], keys: dict[str, str], *, new: bool) -> Html:
    words = "not distinguishable from the first of this number"
    band = tag("b", line.band) if new else tag("span", f"{line.band} =", class_="muted", title=words)
    band = band if line.band else tag("span", "–", class_="muted", title="nothing was measured")
    name: Child = link(line.name, f"/run/{keys[line.name]}") if line.name in keys else line.name
    dimensions = (
        f"{line.dimensions[name] * 100:.1f} %" if name in line.dimensions else "–" for name in board.dimensions
    )
    who = (tag("td", band, class_="nowrap"), tag("th", line.model, scope="row", class_="nowrap"), tag("td", name))
    drawn = tag("td", draw.interval(line.mean, line.ci95, 0.0, 1.0), class_="bar")
    costs = cost_cells(line.cost) if board.cost_columns else ()
    cells = (
        *who,
        *numbers(_standing(line)),
        drawn,
        *numbers((*costs, *dimensions)),
        *(_cell(line, task) for task in tasks),
    )
    return tag("tr", *cells, class_="row best" if new else "row")


def _standing(line: Line) -> tuple[str, ...]:
    return (
        str(len(line.tasks)),
        "–" if line.average_rank is None else f"{line.average_rank:.2f}",
        "–" if line.mean is None else f"{line.mean * 100:.1f} %",
        f"{line.ci95[0] * 100:.1f} – {line.ci95[1] * 100:.1f}" if line.ci95 else "–",
    )


def _cell(line: Line, task: str) -> Html:
    cell = line.tasks.get(task)
    if cell is None or cell.value is None:
        return tag("td", "–", class_="n")
    value = f"{cell.value * 100:.1f}" if 0 <= cell.value <= 1 else f"{cell.value:.3g}"
    half = f" ± {(cell.ci95[1] - cell.ci95[0]) * 50:.1f}" if cell.ci95 and 0 <= cell.value <= 1 else ""
    title = f"{cell.metric}, n {cell.n}, rank {cell.rank:g}" if cell.rank else cell.metric
    return tag("td", value, tag("span", half, class_="muted small"), class_="n", title=title)

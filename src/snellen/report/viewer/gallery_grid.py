"""Rows of a walk to a gallery: a picture each, its outcome, and what was read; every picture is a link."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.markup import Html, join, shorten, tag
from ...scoring.tables.table import TrialColumns
from ..pages.parts import outcome_tag
from .run_library import OpenRun
from .shell import link, trial_address
from .trial_table import Line, read_line
from .walk import Walk


def gallery_grid(run: OpenRun, columns: TrialColumns, rows: Sequence[int], walk: Walk, caption: Html) -> Html:
    """Return the trials of one page as pictures side by side; those out of sight are not fetched."""
    cells = [_cell(run, columns, read_line(run, columns, row), walk) for row in rows]
    told = tag("p", caption.removeprefix("<caption>").removesuffix("</caption>"), class_="muted small")
    grid = tag("ul", *cells, class_="thumbs dense" if walk.look.dense else "thumbs")
    return join((told, grid))


def _cell(run: OpenRun, columns: TrialColumns, line: Line, walk: Walk) -> Html:
    row, key = line.row, columns.key(line.row)
    sample = columns.facts[int(columns.sample[row])]
    read = columns.text("answer", row) or columns.text("reason", row) or ""
    expected = shorten(", ".join(sample.answers), 40)
    words = tag("span", f"{shorten(read, 40)} (expected {expected})" if expected else shorten(read, 40), class_="small")
    more = tag("span", f"+{line.pictures - 1}", class_="small muted") if line.pictures > 1 else None
    name = tag("span", key.sample, class_="mono small")
    outcome = outcome_tag(int(columns.outcome[row]), float(columns.value[row]))
    inside = join((_picture(run, line, columns), tag("span", outcome, " ", more), name, words))
    return tag("li", link(inside, walk.trial(run, key), title=shorten(sample.question, 200)))


def _picture(run: OpenRun, line: Line, columns: TrialColumns) -> Html:
    if not line.pictures:
        return tag("span", "no picture", class_="none muted small")
    source = trial_address(run, columns.key(line.row), "image", small=1)
    return tag("img", src=source, alt="", loading="lazy", decoding="async", width=220, height=150)

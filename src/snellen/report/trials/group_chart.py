"""The trials of a walk, grouped by a tag, to a chart: the mean of each group with its interval, each a way in."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.markup import Child, Html, tag
from ...scoring.aggregates.means import headline_of, split
from ...scoring.table import ScoreTable
from ..pages import draw
from ..pages.tables import DRAWN, head, numbers, scrolled
from ..web.shelf import OpenRun
from ..web.shell import link
from ..web.walk import Walk, chosen_groups, walk_through
from ..written import RESTS_ON, percent_metric, rests_on, written, written_interval

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

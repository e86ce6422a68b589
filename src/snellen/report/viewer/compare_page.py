"""Two to six runs on the samples they share to one page: who is better, how surely, and on which samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...core.markup import Child, Html, tag
from ...core.text import plural
from ...scoring.compare.look_pairs import ComparedLooks
from ...scoring.compare.paired import Comparison
from ..pages.comparison import agreement_matrix, divergence_sheet, flips, pair_sheet
from ..pages.look_part import compared_sheet
from ..pages.sheet import sheet_table
from ..pages.tables import head, numbers, row, scrolled
from ..written import written_share
from .flip_cards import Flipped, flip_card
from .run_library import OpenRun, run_titles
from .shell import address, downloads, link, pager, shell

CARDS = 25
"""Flipped samples on one page."""
Compared = Mapping[str, Sequence[Comparison]]


def compare_page(
    runs: Sequence[OpenRun],
    names: Sequence[str],
    results: Compared,
    task: str = "",
    page: int = 1,
    *,
    looks: Mapping[str, ComparedLooks] = MappingProxyType({}),
) -> Html:
    """Return the comparison of runs; `names` are how the comparisons call them. A task and a page choose the flips."""
    chosen = {name: results[name] for name in results if name == task} or results
    parts: list[Child] = [tag("h1", " against ".join(run_titles(runs, names)))]
    for name, comparisons in chosen.items():
        main = [one for one in comparisons if one.metric == comparisons[0].metric]
        parts += [tag("h2", name), tag("div", sheet_table(pair_sheet(name, comparisons)), class_="card")]
        cards = [
            tag("div", tag("h3", "Agreement"), _matrix(main, names), class_="card"),
            tag("div", tag("h3", "Where they part"), sheet_table(divergence_sheet(name, main)), class_="card"),
        ]
        if name in looks:
            parts.append(tag("div", sheet_table(compared_sheet(name, looks[name])), class_="card"))
        named = dict(zip(names, runs, strict=True))
        parts += [tag("div", *cards, class_="grid"), *_flips(name, main, named, page if name == task else 1)]
    to = address("/matrix", run=[run.key for run in runs])
    parts.append(tag("p", link("Who fails where: samples and runs", to, class_="button quiet")))
    parts.append(downloads("/compare/download", run=[run.key for run in runs]))
    whole = address("/compare", run=[run.key for run in runs])
    crumbs = (
        [link("Runs", "/"), link("comparison", whole), task] if task in results else [link("Runs", "/"), "comparison"]
    )
    return shell("Comparison", parts, crumbs=crumbs)


def _matrix(comparisons: Sequence[Comparison], names: Sequence[str]) -> Html:
    known = agreement_matrix(comparisons)
    rows = []
    for name in names:
        shares = [1.0 if name == other else known.get((name, other)) for other in names]
        rows.append(row(name, *numbers("–" if share is None else written_share(share) for share in shares)))
    columns = head(tag("span", "run", class_="hidden"), *((name, "n") for name in names))
    caption = "Share of common samples on which two runs have the same value"
    return scrolled(caption, tag("caption", caption), columns, tag("tbody", *rows))


def _flips(task: str, comparisons: Sequence[Comparison], runs: Mapping[str, OpenRun], page: int) -> list[Child]:
    """Return the samples on which the runs differ, those furthest apart first."""
    stages = {flip.sample: flip.divergence for one in comparisons for flip in (*one.better, *one.worse)}
    flipped = [Flipped(sample, values, stages.get(sample)) for sample, values in flips(comparisons).items()]
    if not flipped:
        return [tag("p", "No sample flipped: the runs agree on every common sample.")]
    flipped.sort(key=lambda flip: (-flip.spread, flip.sample))
    pages = math.ceil(len(flipped) / CARDS)
    page = min(max(1, page), pages)
    cards = [flip_card(flip, task, comparisons[0].metric, runs) for flip in flipped[(page - 1) * CARDS : page * CARDS]]
    words = f"{plural(len(flipped), 'sample')} on which the runs differ, those furthest apart first"
    ways = _pager(task, runs, page, pages)
    return [tag("h3", "Flips"), tag("p", words, class_="muted"), ways, tag("div", *cards, class_="flips"), ways]


def _pager(task: str, runs: Mapping[str, OpenRun], page: int, pages: int) -> Html | None:
    if pages == 1:
        return None

    def to(number: int) -> str:
        return address("/compare", run=[run.key for run in runs.values()], task=task, page=number)

    before = ("← Previous flips", to(page - 1)) if page > 1 else None
    after = ("Next flips →", to(page + 1)) if page < pages else None
    return pager(before, f"page {page:,} of {pages:,}", after, label=f"Flips of {task}")

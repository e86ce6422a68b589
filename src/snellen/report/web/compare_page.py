"""Two to five runs on the samples they share to one page: who is better, how surely, and on which samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.markup import Child, Html, tag
from ...core.types import TrialKey
from ...scoring.compare.paired import Comparison
from ..boards.comparison import agreement_matrix, divergence_sheet, flips, pair_sheet
from ..boards.sheet import sheet_table
from .shelf import OpenRun
from .shell import address, link, shell, trial_address

MOST_FLIPS = 300


def compare_page(runs: Sequence[OpenRun], names: Sequence[str], results: Mapping[str, Sequence[Comparison]]) -> Html:
    """Return the comparison of runs; `names` are how the comparisons call them."""
    parts: list[Child] = [tag("h1", " against ".join(run.header().model for run in runs))]
    keys = [run.key for run in runs]
    for task, comparisons in results.items():
        main = [one for one in comparisons if one.metric == comparisons[0].metric]
        parts += [tag("h2", task), tag("div", sheet_table(pair_sheet(task, comparisons)), class_="card")]
        cards = [
            tag("div", tag("h3", "Agreement"), _matrix(main, names), class_="card"),
            tag("div", tag("h3", "Where they part"), sheet_table(divergence_sheet(task, main)), class_="card"),
        ]
        parts += [tag("div", *cards, class_="grid"), *_flips(task, main, dict(zip(names, runs, strict=True)))]
    downloads = [
        link(words, address("/compare/download", run=keys, format=form), class_="button quiet")
        for form, words in (("csv", "CSV"), ("markdown", "Markdown"), ("latex", "LaTeX"))
    ]
    parts.append(tag("p", *downloads, class_="bar-of-buttons"))
    return shell("Comparison", parts, crumbs=[link("Runs", "/"), "comparison"])


def _matrix(comparisons: Sequence[Comparison], names: Sequence[str]) -> Html:
    known = agreement_matrix(comparisons)
    head = tag(
        "thead",
        tag(
            "tr",
            tag("th", tag("span", "run", class_="hidden"), scope="col"),
            *(tag("th", name, scope="col", class_="n") for name in names),
        ),
    )
    rows = []
    for name in names:
        shares = [1.0 if name == other else known.get((name, other)) for other in names]
        rows.append(
            tag(
                "tr",
                tag("th", name, scope="row"),
                *(tag("td", "–" if share is None else f"{share:.1%}", class_="n") for share in shares),
            )
        )
    caption = "Share of common samples on which two runs have the same value"
    return tag(
        "div",
        tag("table", tag("caption", caption), head, tag("tbody", *rows)),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _flips(task: str, comparisons: Sequence[Comparison], runs: Mapping[str, OpenRun]) -> list[Child]:
    found = flips(comparisons)
    if not found:
        return [tag("p", "No sample flipped: the runs agree on every common sample.")]
    stage = {flip.sample: flip.divergence for one in comparisons for flip in (*one.better, *one.worse)}
    head = tag(
        "thead",
        tag(
            "tr",
            tag("th", "sample", scope="col"),
            *(tag("th", name, scope="col", class_="n") for name in runs),
            tag("th", "first part at", scope="col"),
        ),
    )
    rows = []
    for sample, values in list(found.items())[:MOST_FLIPS]:
        cells = [
            tag("td", link(_shown(values.get(name)), _address(run, task, sample)), class_="n")
            for name, run in runs.items()
        ]
        rows.append(
            tag(
                "tr",
                tag("th", sample, scope="row", class_="mono"),
                *cells,
                tag("td", stage.get(sample) or ""),
                class_="row",
            )
        )
    caption = f"{len(found):,} samples on which the runs differ" + (
        f", the first {MOST_FLIPS} shown" if len(found) > MOST_FLIPS else ""
    )
    return [
        tag("h3", "Flips"),
        tag(
            "div",
            tag("table", tag("caption", caption), head, tag("tbody", *rows)),
            class_="card scroll",
            tabindex=0,
            role="region",
            aria_label="Flipped samples",
        ),
    ]


def _shown(value: float | None) -> str:
    return "same" if value is None else "✓" if value >= 1 else "✗" if value <= 0 else f"{value:.0%}"


def _address(run: OpenRun, task: str, sample: str) -> str:
    """A sample may have been asked in other variants than base: its first stored trial is the one to show."""
    row = next(
        run.reader.rows(
            "SELECT variant, repeat FROM predictions WHERE task = ? AND sample = ? ORDER BY variant <> 'base', variant, repeat LIMIT 1",
            (task, sample),
        ),
        None,
    )
    return trial_address(run, TrialKey(task, sample, *(row or ("base", 0))))

"""Two to five runs on the samples they share to one page: who is better, how surely, and on which samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.markup import Child, Html, tag
from ...core.types import TrialKey
from ...scoring.compare.paired import Comparison
from ..boards.comparison import agreement_matrix, divergence_sheet, flips, pair_sheet
from ..boards.sheet import sheet_table
from ..pages.tables import head, numbers, row, scrolled
from ..written import written_share
from .shelf import OpenRun
from .shell import downloads, link, shell, trial_address

MOST_FLIPS = 300
_FIRST_TRIAL = (
    "SELECT variant, repeat FROM predictions WHERE task = ? AND sample = ? "
    "ORDER BY variant <> 'base', variant, repeat LIMIT 1"
)


def compare_page(runs: Sequence[OpenRun], names: Sequence[str], results: Mapping[str, Sequence[Comparison]]) -> Html:
    """Return the comparison of runs; `names` are how the comparisons call them."""
    parts: list[Child] = [tag("h1", " against ".join(run.header().model for run in runs))]
    for task, comparisons in results.items():
        main = [one for one in comparisons if one.metric == comparisons[0].metric]
        parts += [tag("h2", task), tag("div", sheet_table(pair_sheet(task, comparisons)), class_="card")]
        cards = [
            tag("div", tag("h3", "Agreement"), _matrix(main, names), class_="card"),
            tag("div", tag("h3", "Where they part"), sheet_table(divergence_sheet(task, main)), class_="card"),
        ]
        parts += [tag("div", *cards, class_="grid"), *_flips(task, main, dict(zip(names, runs, strict=True)))]
    parts.append(downloads("/compare/download", run=[run.key for run in runs]))
    return shell("Comparison", parts, crumbs=[link("Runs", "/"), "comparison"])


def _matrix(comparisons: Sequence[Comparison], names: Sequence[str]) -> Html:
    known = agreement_matrix(comparisons)
    rows = []
    for name in names:
        shares = [1.0 if name == other else known.get((name, other)) for other in names]
        rows.append(row(name, *numbers("–" if share is None else written_share(share) for share in shares)))
    columns = head(tag("span", "run", class_="hidden"), *((name, "n") for name in names))
    caption = "Share of common samples on which two runs have the same value"
    return scrolled(caption, tag("caption", caption), columns, tag("tbody", *rows))


def _flips(task: str, comparisons: Sequence[Comparison], runs: Mapping[str, OpenRun]) -> list[Child]:
    flipped = flips(comparisons)
    if not flipped:
        return [tag("p", "No sample flipped: the runs agree on every common sample.")]
    stages = {flip.sample: flip.divergence for one in comparisons for flip in (*one.better, *one.worse)}
    rows = []
    for sample, values in list(flipped.items())[:MOST_FLIPS]:
        links = [link(_shown(values.get(name)), _address(run, task, sample)) for name, run in runs.items()]
        stage = tag("td", stages.get(sample) or "")
        rows.append(row(sample, *numbers(links), stage, class_="row", name_class="mono"))
    more = f", the first {MOST_FLIPS} shown" if len(flipped) > MOST_FLIPS else ""
    caption = tag("caption", f"{len(flipped):,} samples on which the runs differ{more}")
    columns = head("sample", *((name, "n") for name in runs), "first part at")
    table = scrolled("Flipped samples", caption, columns, tag("tbody", *rows), class_="card scroll")
    return [tag("h3", "Flips"), table]


def _shown(value: float | None) -> str:
    return "same" if value is None else "✓" if value >= 1 else "✗" if value <= 0 else f"{value:.0%}"


def _address(run: OpenRun, task: str, sample: str) -> str:
    """A sample may have been asked in other variants than base: its first stored trial is the one to show."""
    first = next(run.reader.rows(_FIRST_TRIAL, (task, sample)), None)
    return trial_address(run, TrialKey(task, sample, *(first or ("base", 0))))

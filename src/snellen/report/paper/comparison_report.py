"""Runs side by side to one file: who is better and how surely, and the samples on which they differ, with pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...core.types import TrialKey
from ...scoring.aggregates.headline import headline
from ...scoring.compare.paired import Comparison
from ...scoring.tables.table import lower_is_better
from ...store.reader import RunReader
from ..files import write_atomically
from ..pages import draw
from ..pages.comparison import divergence_sheet, flips, pair_sheet
from ..pages.gallery import Budget, Shown, read_trial, request_picture
from ..pages.parts import DRAWN, document, facts, head, numbers, reply_text, row, scrolled
from ..pages.sheet import sheet_table
from ..stored_results import read_results
from ..written import percent_metric, written, written_interval

FLIPS = 40
"""Samples on which the runs differ that are shown; all are counted."""
_FIRST = (
    "SELECT variant, repeat FROM predictions WHERE task = ? AND sample = ? "
    "ORDER BY variant <> 'base', variant, repeat LIMIT 1"
)


class Side(NamedTuple):
    """One of the runs: how the comparison calls it, and where it lies."""

    name: str
    reader: RunReader


def write_comparison(
    folders: Mapping[str, Path], results: Mapping[str, Sequence[Comparison]], path: Path, picture_bytes: int
) -> Path:
    """Write the page of a comparison; `folders` are the runs by the names that the comparisons use."""
    sides = [Side(name, RunReader(folder)) for name, folder in folders.items()]
    try:
        parts: list[Child] = [tag("h1", " against ".join(folders)), *_summary(sides, results)]
        budget = Budget(picture_bytes)
        for task, comparisons in results.items():
            main = [one for one in comparisons if one.metric == comparisons[0].metric]
            parts += [tag("h2", task), tag("div", sheet_table(pair_sheet(task, comparisons)), class_="card")]
            parts.append(tag("div", sheet_table(divergence_sheet(task, main)), class_="card"))
            parts += _flips(task, main, sides, budget)
    finally:
        for side in sides:
            side.reader.close()
    body = document("Comparison – Snellen", parts).encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(body))
    return path


def _summary(sides: Sequence[Side], results: Mapping[str, Sequence[Comparison]]) -> Iterator[Child]:
    """Yield every run with its model and its headline of each shared task."""
    rows = []
    for side in sides:
        header = side.reader.header()
        known = read_results(side.reader, header)["tasks"]
        for task in results:
            name, estimate = headline(known[task])
            metric = name or "–"
            share = name is not None and percent_metric(metric, estimate)
            drawn = draw.interval(estimate["value"], estimate.get("ci95"), 0.0, 1.0) if share else ""
            shown = (written(metric, estimate), written_interval(metric, estimate), f"{estimate['n']:,}")
            texts = (tag("td", header.model), tag("td", task), tag("td", metric))
            rows.append(row(side.name, *texts, *numbers(shown), tag("td", drawn, class_="bar")))
    names = head("run", "model", "task", "metric", ("value", "n"), ("95 % interval", "n"), ("n", "n"), DRAWN)
    table = scrolled("All runs", tag("caption", "All runs on the tasks they share"), names, tag("tbody", *rows))
    yield tag("h2", "Summary")
    yield tag("div", table, class_="card")


def _flips(task: str, comparisons: Sequence[Comparison], sides: Sequence[Side], budget: Budget) -> Iterator[Child]:
    found = flips(comparisons)
    ordered = sorted(found, key=lambda sample: (min(found[sample].values()) - max(found[sample].values()), sample))
    shown = f", the {FLIPS} furthest apart shown" if len(ordered) > FLIPS else ""
    yield tag("h3", f"{plural(len(ordered), 'sample')} on which the runs differ{shown}")
    words = "The number is the mean over all trials of a sample, lost ones as 0; shown is the reply to its first."
    yield tag("p", words, class_="muted")
    cards = [
        _card(TrialKey(task, sample), found[sample], comparisons[0].metric, sides, budget) for sample in ordered[:FLIPS]
    ]
    yield tag("div", *cards, class_="flips")


def _card(key: TrialKey, values: Mapping[str, float], metric: str, sides: Sequence[Side], budget: Budget) -> Html:
    trials, sample = [_trial(side, key.task, key.sample) for side in sides], key.sample
    first = next((trial for trial in trials if trial is not None), None)
    question = shorten(first.sample.question, 240) if first else sample
    expected = (
        facts([("expected", shorten(", ".join(first.sample.answers), 200)), ("sample", sample)]) if first else None
    )
    picture = request_picture(first.seen, budget) if first else None
    columns = [_column(side.name, trial, values, metric) for side, trial in zip(sides, trials, strict=True)]
    seen = tag("div", picture, expected, class_="seen")
    return tag("article", tag("h3", question), tag("div", seen, *columns, class_="flip"), class_="card")


def _trial(side: Side, task: str, sample: str) -> Shown | None:
    found = next(side.reader.rows(_FIRST, (task, sample)), None)
    return read_trial(side.reader, TrialKey(task, sample, *found)) if found else None


def _column(name: str, trial: Shown | None, values: Mapping[str, float], metric: str) -> Html:
    """Return what one run answered; its mean over all trials of the sample stands above the first reply."""
    value = values.get(name)
    best = value is not None and value >= 1 and not lower_is_better(metric)  # of an error 0 may be a lost reply
    sign = "as the others" if value is None else f"{'✓ ' if best else ''}{value:.3g}"
    title = tag("h4", tag("span", sign, class_=f"tag {'right' if best else 'partly'}"), f" {name}")
    if trial is None:
        return tag("section", title, tag("p", "This trial is not stored.", class_="muted"))
    return tag("section", title, reply_text(trial.text, trial.span, most=500))

"""Several runs of one task to a matrix: a row a sample, a column a run, those first on which the runs disagree most."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.errors import UsageError
from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...scoring.tables.table import Outcome, TrialColumns, lower_is_better
from ..pages.parts import outcome_tag
from ..pages.tables import head, scrolled
from ..protocol_words import reading_name
from .run_library import OpenRun, run_titles
from .shell import address, link, pager, shell

ROWS = 100
"""Samples on one page."""


class Standing(NamedTuple):
    """What one run made of one sample: how good its trials are in the mean (1 is best), and what became of them."""

    good: float
    outcome: int | None
    """None where its trials differ."""
    trials: int
    value: float
    """The mean as the metric counts it, a trial without a score as the worst; this is what is shown."""


class Sampled(NamedTuple):
    """One sample with what every run made of it; None where a run does not have it."""

    sample: str
    question: str
    runs: tuple[Standing | None, ...]

    @property
    def spread(self) -> float:
        """Return how far the runs are apart; -1 where fewer than two have the sample."""
        known = [one.good for one in self.runs if one is not None]
        return max(known) - min(known) if len(known) > 1 else -1.0


class Comparer:
    """Keeps the last matrix that was asked for: one walks through its samples page by page."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[object, list[Sampled]] | None = None

    def samples(self, runs: Sequence[OpenRun], task: str) -> list[Sampled]:
        """Return `compared_samples`, made anew when a run has changed."""
        with self._lock:
            about = (task, *((run.key, run.written()) for run in runs))
            if self._kept is None or self._kept[0] != about:
                self._kept = (about, compared_samples(runs, task))
            return self._kept[1]


def shared_tasks(runs: Sequence[OpenRun]) -> list[str]:
    """Return the tasks that all runs have, in the order of the first; refuse where there is none."""
    names = []
    for run in runs:
        with run.held():
            names.append([task.name for task in run.header().tasks])
    shared = [name for name in names[0] if all(name in others for others in names[1:])]
    if not shared:
        raise UsageError("these runs have no task in common: choose runs of the same task")
    return shared


def compared_samples(runs: Sequence[OpenRun], task: str) -> list[Sampled]:
    """Return the samples of a task, those furthest apart first; refuse runs of other metrics or readings."""
    metrics, readings, standings = set(), set(), []
    questions: dict[str, str] = {}
    for run in runs:
        with run.held():
            columns = run.columns(task)
            metrics.add(columns.metric)
            readings.add(reading_name(run.results()))
            standings.append(_standings(columns))
            questions |= {sample.id: sample.question for sample in columns.facts if sample.id not in questions}
    for name, found in (("metric", metrics), ("reading", readings)):
        if len(found) > 1:
            raise UsageError(f"these runs differ in their {name} ({', '.join(sorted(found))}): score them alike first")
    names = dict.fromkeys(sample for standing in standings for sample in standing)
    made = [Sampled(name, questions.get(name, ""), tuple(one.get(name) for one in standings)) for name in names]
    return sorted(made, key=lambda one: -one.spread)  # stable: else in the order of the plan


def _standings(columns: TrialColumns) -> dict[str, Standing]:
    """Return every sample's mean, one without a score counting as the worst, and its outcome if its trials agree."""
    count = len(columns.samples)
    good = 1.0 - columns.strict_value if lower_is_better(columns.metric) else columns.strict_value
    trials = np.bincount(columns.sample, minlength=count)
    means = np.bincount(columns.sample, weights=good, minlength=count) / np.maximum(1, trials)
    low, high = np.full(count, len(Outcome), np.int64), np.full(count, -1, np.int64)
    np.minimum.at(low, columns.sample, columns.outcome)
    np.maximum.at(high, columns.sample, columns.outcome)
    values = np.bincount(columns.sample, weights=columns.strict_value, minlength=count) / np.maximum(1, trials)
    found = (means, low, high, trials, values)
    rows = zip(columns.samples, *(column.tolist() for column in found), strict=True)
    return {name: Standing(mean, a if a == b else None, n, value) for name, mean, a, b, n, value in rows if n}


def matrix_page(runs: Sequence[OpenRun], comparer: Comparer, task: str = "", page: int = 1) -> Html:
    """Return one page of the matrix of samples and runs."""
    tasks = shared_tasks(runs)
    task = task if task in tasks else tasks[0]
    samples = comparer.samples(runs, task)
    pages = max(1, math.ceil(len(samples) / ROWS))
    page = min(max(1, page), pages)
    start = (page - 1) * ROWS
    keys = [run.key for run in runs]
    body = [_row(keys, task, start + n, one) for n, one in enumerate(samples[start : start + ROWS])]
    titles = [(link(title, f"/run/{run.key}"), "sign") for title, run in zip(run_titles(runs), runs, strict=True)]
    caption = tag("caption", _summary(samples))
    table = scrolled(
        "Samples and runs",
        caption,
        head("sample", ("question", "broad"), *titles),
        tag("tbody", *body),
        class_="scroll card",
    )
    tabs = [
        link(name, address("/matrix", run=keys, task=name), class_="button quiet", aria_current=_true(name == task))
        for name in tasks
    ]
    ways = _pager(keys, task, page, pages)
    parts: list[Child] = [tag("h1", f"Who fails where: {task}")]
    parts += [
        tag("nav", *tabs, class_="bar-of-buttons", aria_label="Tasks") if len(tasks) > 1 else None,
        ways,
        table,
        ways,
    ]
    crumbs = [link("Runs", "/"), link("comparison", address("/compare", run=keys)), "matrix"]
    return shell("Samples and runs", parts, crumbs=crumbs)


def _true(holds: bool) -> str | None:
    return "true" if holds else None


def _summary(samples: Sequence[Sampled]) -> str:
    whole = [one for one in samples if None not in one.runs]
    good = [[standing.good for standing in one.runs if standing is not None] for one in whole]
    right, wrong = sum(min(values) >= 1 for values in good), sum(max(values) <= 0 for values in good)
    apart = sum(max(values) != min(values) for values in good)
    lacking = f"; {plural(len(samples) - len(whole), 'sample')} not in every run" if len(samples) > len(whole) else ""
    counts = f"all right {right:,}, all wrong {wrong:,}, they differ on {apart:,}"
    return f"{plural(len(samples), 'sample')}: {counts}{lacking}. Those furthest apart come first."


def _row(keys: Sequence[str], task: str, at: int, one: Sampled) -> Html:
    to = address("/sample", run=keys, task=task, sample=one.sample, at=str(at))
    cells = [tag("td", _sign(standing), class_="sign") for standing in one.runs]
    question = tag("td", tag("div", shorten(one.question, 160), class_="clamp"), class_="text broad")
    name = tag("th", link(one.sample, to, class_="mono whole"), scope="row")
    return tag("tr", name, question, *cells, class_="row")


def _sign(standing: Standing | None) -> Child:
    if standing is None:
        return tag("span", "not in this run", class_="muted small")
    if standing.outcome is None:
        fifth = min(4, int(standing.good * 5))
        return tag("span", f"{standing.value:.0%}", class_=f"tag fifth{fifth}", title=f"of {standing.trials} trials")
    return outcome_tag(standing.outcome, standing.value)


def _pager(keys: Sequence[str], task: str, page: int, pages: int) -> Html | None:
    if pages == 1:
        return None
    to: Mapping[int, str] = {n: address("/matrix", run=keys, task=task, page=n) for n in (page - 1, page + 1)}
    before = ("← Previous samples", to[page - 1]) if page > 1 else None
    after = ("Next samples →", to[page + 1]) if page < pages else None
    return pager(before, f"page {page:,} of {pages:,}", after, label="Pages of samples")

"""Two to six runs on the samples they share to one page: who is better, how surely, and on which samples."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.errors import UsageError
from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...core.types import Score, TrialKey
from ...scoring.compare.paired import Comparison
from ...scoring.tables.table import Outcome, TrialColumns, lower_is_better
from ..pages.comparison import agreement_matrix, divergence_sheet, flips, pair_sheet
from ..pages.gallery import Shown, read_trial
from ..pages.parts import captioned, facts, head, numbers, outcome_tag, reply_text, row, scrolled
from ..pages.sheet import Sheet, sheet_table
from ..written import reading_name, written_share
from .run_library import OpenRun, run_titles
from .shell import address, downloads, link, page_of, picture, shell, trial_address

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
    shown = page_of(len(samples), ROWS, page)
    keys = [run.key for run in runs]
    body = [_row(keys, task, n, one) for n, one in enumerate(samples[shown.rows], shown.rows.start)]
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
    ways = shown.ways(lambda n: address("/matrix", run=keys, task=task, page=n), "samples", label="Pages of samples")
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


_TRIALS = (
    "SELECT p.variant, p.repeat, s.value FROM predictions p LEFT JOIN scores s ON s.task = p.task AND "
    "s.sample = p.sample AND s.variant = p.variant AND s.repeat = p.repeat AND s.metric = ? "
    "WHERE p.task = ? AND p.sample = ? ORDER BY p.variant <> 'base', p.variant, p.repeat"
)
Trials = Mapping[tuple[str, int], float | None]


class Flipped(NamedTuple):
    """A sample on which runs differ: the mean of each run over its trials, and where they first part."""

    sample: str
    values: Mapping[str, float]
    stage: str | None

    @property
    def spread(self) -> float:
        """Return how far the runs are apart."""
        return max(self.values.values()) - min(self.values.values())


class _Side(NamedTuple):
    name: str
    run: OpenRun
    shown: Shown | None
    value: float | None
    trials: int


def flip_card(flip: Flipped, task: str, metric: str, runs: Mapping[str, OpenRun]) -> Html:
    """Return one sample with the replies of all runs to the same prompt, if they share one."""
    stored = {name: stored_trials(run, metric, task, flip.sample) for name, run in runs.items()}
    chosen = pick_trial(list(stored.values()))
    sides = [_side(name, run, flip, TrialKey(task, flip.sample, *_first(stored[name], chosen)), len(stored[name]))
             for name, run in runs.items()]  # fmt: skip
    shown = next((side for side in sides if side.shown is not None), None)
    asked = shown.shown.sample if shown is not None and shown.shown is not None else None
    question = tag("h3", shorten(asked.question, 240) if asked else flip.sample)
    about = [tag("span", flip.sample, class_="mono muted small"), *_notes(flip, sides, chosen)]
    expected = facts([("expected", shorten(", ".join(asked.answers), 200))]) if asked else None
    first = tag("div", _picture(shown), expected, class_="seen")
    columns = tag("div", first, *(_column(side, metric) for side in sides), class_="flip")
    return tag("article", question, tag("p", *about), columns, class_="card")


def pick_trial(stored: Sequence[Trials]) -> tuple[str, int] | None:
    """Return the first trial that all runs have and on which they differ; else the first that all have; else None."""
    common = [key for key in stored[0] if all(key in trials for trials in stored)]
    differing = [key for key in common if len({trials[key] for trials in stored}) > 1]
    return next(iter((*differing, *common)), None)


def stored_trials(run: OpenRun, metric: str, task: str, sample: str) -> Trials:
    """Return the value of every stored trial of a sample, by variant and repeat, the base first."""
    with run.lock:
        rows = list(run.reader.rows(_TRIALS, (metric, task, sample)))
    return {(variant, repeat): value for variant, repeat, value in rows}


def _first(trials: Trials, chosen: tuple[str, int] | None) -> tuple[str, int]:
    return chosen or next(iter(trials), ("base", 0))


def _side(name: str, run: OpenRun, flip: Flipped, key: TrialKey, trials: int) -> _Side:
    with run.lock:
        return _Side(name, run, read_trial(run.reader, key), flip.values.get(name), trials)


def _notes(flip: Flipped, sides: Sequence[_Side], chosen: tuple[str, int] | None) -> Iterator[Child]:
    """Say what the card leaves out, and whether the two were asked the same."""
    if flip.stage:
        yield tag("span", f" · they first part at the {flip.stage}", class_="muted small")
    if any(side.trials > 1 for side in sides):
        which = f"{chosen[0]}, inference {chosen[1] + 1}" if chosen else "the first trial of each, they share none"
        words = f" · shown is {which}; the share is of all {max(side.trials for side in sides)} trials"
        yield tag("span", words, class_="muted small")


def _picture(side: _Side | None) -> Html:
    if side is None or side.shown is None:
        return tag("p", "This trial is not stored.", class_="muted")
    key = side.shown.prediction.key
    if not any(turn.images for turn in side.shown.request.messages):
        return tag("p", "No picture was sent.", class_="muted small")
    return picture(side.run, key, f"What the models saw for {key.sample}", decoding="async")


def _column(side: _Side, metric: str) -> Html:
    shown = side.shown
    if shown is None:
        return tag("section", tag("h4", side.name), tag("p", "This trial is not stored.", class_="muted"))
    score = score_by(shown, metric)
    mark = _mean_mark(side.value, metric) if side.trials > 1 else trial_mark(shown, metric)
    about = [("read as", shorten((score.answer or score.reason or "") if score else "", 120))]
    parts: list[Child] = [tag("h4", mark, " ", link(side.name, trial_address(side.run, shown.prediction.key)))]
    if side.trials > 1:  # the mark above is the mean of them all
        parts.append(tag("p", trial_mark(shown, metric), " this trial", class_="small"))
    return tag("section", *parts, facts(about), reply_text(shown.text, shown.span, most=500))


def score_by(shown: Shown, metric: str) -> Score | None:
    """Return the score of a trial by a metric, where it has one."""
    return next((score for score in shown.scores if score.metric == metric), None)


def trial_mark(shown: Shown, metric: str) -> Html:
    """Mark the reply that is shown, by its own score: in a mean a failed trial counts as 0, and is not wrong."""
    if shown.prediction.failure is not None:
        return outcome_tag(Outcome.FAILED)
    score = score_by(shown, metric)
    return flip_mark(score.value if score is not None else None, metric)


def _mean_mark(value: float | None, metric: str) -> Html:
    """Mark the mean of all trials; of an error 0 may be a reply that was lost, so it is a number and no sign."""
    if value is not None and lower_is_better(metric):
        return tag("span", f"{value:.3g}", class_="tag pending")
    return flip_mark(value, metric)


def flip_mark(value: float | None, metric: str) -> Html:
    """Return a value as a sign and a word, or as its share; of an error the lowest is the best. None was not scored."""
    if value is None:
        return tag("span", "no value", class_="tag unread")
    good = 1.0 - value if lower_is_better(metric) else value
    words, kind = f"{value:.0%}", "partly"
    if good >= 1 or good <= 0:
        words, kind = ("✓ right", "right") if good >= 1 else ("✗ wrong", "wrong")
    return tag("span", words, class_=f"tag {kind}")


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
    beside: Sequence[tuple[str, Sheet]] = (),
) -> Html:
    """Return the comparison of runs; `names` are how the comparisons call them. A task and a page choose the flips.

    `beside`: what kits say of a task, each as a table.
    """
    chosen = {name: results[name] for name in results if name == task} or results
    parts: list[Child] = [tag("h1", " against ".join(run_titles(runs, names)))]
    for name, comparisons in chosen.items():
        main = [one for one in comparisons if one.metric == comparisons[0].metric]
        parts += [tag("h2", name), tag("div", sheet_table(pair_sheet(name, comparisons)), class_="card")]
        cards = [
            tag("div", tag("h3", "Agreement"), _matrix(main, names), class_="card"),
            tag("div", tag("h3", "Where they part"), sheet_table(divergence_sheet(name, main)), class_="card"),
        ]
        parts += [tag("div", sheet_table(sheet), class_="card") for task_name, sheet in beside if task_name == name]
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
    return captioned(caption, columns, rows)


def _flips(task: str, comparisons: Sequence[Comparison], runs: Mapping[str, OpenRun], page: int) -> list[Child]:
    """Return the samples on which the runs differ, those furthest apart first."""
    stages = {flip.sample: flip.divergence for one in comparisons for flip in (*one.better, *one.worse)}
    flipped = [Flipped(sample, values, stages.get(sample)) for sample, values in flips(comparisons).items()]
    if not flipped:
        return [tag("p", "No sample flipped: the runs agree on every common sample.")]
    flipped.sort(key=lambda flip: (-flip.spread, flip.sample))
    shown, keys = page_of(len(flipped), CARDS, page), [run.key for run in runs.values()]
    cards = [flip_card(flip, task, comparisons[0].metric, runs) for flip in flipped[shown.rows]]
    words = f"{plural(len(flipped), 'sample')} on which the runs differ, those furthest apart first"
    ways = shown.ways(lambda n: address("/compare", run=keys, task=task, page=n), "flips", label=f"Flips of {task}")
    return [tag("h3", "Flips"), tag("p", words, class_="muted"), ways, tag("div", *cards, class_="flips"), ways]

"""Runs of one task at several checkpoints to a learning curve: values, a simultaneous band, and whether it fell."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.counting import lower_is_better
from ...core.errors import UsageError
from ...core.markup import Html, tag
from ...report.files import atomic_file
from ...report.pages import draw
from ...report.pages.parts import scrolled
from ...report.viewer.shell import shell
from ...scoring.aggregates.headline import main_metric
from ...scoring.stored import stored_tables
from ...scoring.tables.table import ScoreTable
from ...store.reader import RunReader
from .sup_band import fall, share_of_level, simultaneous_band

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...report.viewer.run_library import RunLibrary


FILE = "curve.json"
BARS = "▁▂▃▄▅▆▇█"


class CurvePoint(msgspec.Struct, frozen=True):
    """One checkpoint on one task."""

    name: str
    step: float
    value: float
    """On the questions that all have a reply to; with a bank the estimate of the whole benchmark."""
    difference: float
    """To the first checkpoint, on the questions that all have a reply to."""
    low: float
    high: float
    """Of the difference: a band that holds all checkpoints at once with 95 %."""
    interval: tuple[float, float] | None = None
    """Of the value, by a bank."""
    unread: float = 0.0
    """Share of the replies that no answer could be read from: they count as wrong."""
    failed: int = 0


class Alarm(msgspec.Struct, frozen=True):
    """A checkpoint that is worse than the best before it, or than the gate, by more than was allowed."""

    name: str
    best: str
    fell: float
    at_least: float


class Curve(msgspec.Struct, frozen=True):
    """One task at all checkpoints so far."""

    task: str
    metric: str
    questions: int
    factor: float
    points: tuple[CurvePoint, ...]
    alarms: tuple[Alarm, ...] = ()
    whole: int = 0
    """Questions of the whole benchmark, where a bank estimated it from those that were asked."""


class Measured(msgspec.Struct, frozen=True):
    """One checkpoint's run: what became of every trial of a task, and what a bank made of it."""

    name: str
    tables: dict[str, ScoreTable]
    created: str
    whole: dict[str, dict[str, Any]]
    """Task -> the estimate of the whole, where a bank was asked."""


def step_of(name: str) -> tuple[float, str]:
    """Return by what checkpoints are ordered: the last number in their name, else the name."""
    numbers = re.findall(r"\d+", name)
    return (float(numbers[-1]) if numbers else 0.0, name)


def read_curves(folders: Sequence[Path], drop: float, gate: Path | None = None) -> list[Curve]:
    """Return a curve for every task that all runs have.

    `drop` is how much (a share) a checkpoint may be worse than the best before it, and than the run `gate`.
    """
    runs = [read_measured(folder) for folder in sorted(folders, key=lambda folder: step_of(folder.name))]
    base = None if gate is None else read_measured(gate, str(gate))
    shared = [task for task in runs[0].tables if all(task in one.tables for one in runs)] if runs else []
    return [_curve(task, runs, drop, base) for task in shared]


def check_gate(gate: Path, tasks: Sequence[str]) -> None:
    """Refuse a gate that was asked none of these tasks."""
    if not set(tasks) & set(read_measured(gate, str(gate)).tables):
        raise UsageError(f"--gate {gate} has none of the tasks {', '.join(tasks)}: name a run of the same questions")


def read_measured(folder: Path, name: str = "") -> Measured:
    """Read the run of one checkpoint."""
    with RunReader(folder) as run:
        header = run.header()
        found = {task.name: (task, stored_tables(run, task.name)) for task in header.tasks}
    chosen = {name: main_metric(tuple(tables), task.headline) for name, (task, tables) in found.items() if tables}
    tables = {name: found[name][1][metric] for name, metric in chosen.items() if metric in found[name][1]}
    results = json.loads((folder / "results.json").read_bytes())["tasks"]
    whole = {task: told["whole"] for task, told in results.items() if task in tables and told.get("whole")}
    return Measured(name or folder.name, tables, header.created, whole)


def _curve(task: str, runs: Sequence[Measured], drop: float, base: Measured | None) -> Curve:
    tables = [one.tables[task] for one in runs]
    metrics = {table.metric for table in tables}
    if len(metrics) > 1:
        raise UsageError(f"task {task!r} is headed by {' and '.join(sorted(metrics))}: score the runs alike first")
    means = [_question_means(table) for table in tables]
    questions = sorted(set.intersection(*(set(one) for one in means)))
    if not questions:
        raise UsageError(f"task {task!r}: no question has a reply at every checkpoint")
    values = np.array([[one[name] for one in means] for name in questions])
    clusters = _clusters(tables[0], questions)
    band = simultaneous_band(values, clusters, task, len(runs))
    places = [(float(band.difference[at]), float(band.low[at]), float(band.high[at])) for at in range(len(runs))]
    points = [_point(task, run, float(values[:, at].mean()), places[at]) for at, run in enumerate(runs)]
    alarms = _alarms(runs, _as_gain(values, tables[0].metric), clusters, drop)
    if base is not None and task in base.tables:
        alarms += _gate_alarms(task, runs, base, drop)
    whole = max((one.whole[task]["items"] for one in runs if task in one.whole), default=0)
    return Curve(task, tables[0].metric, len(questions), band.factor, tuple(points), tuple(alarms), whole)


def _point(task: str, run: Measured, value: float, band: tuple[float, float, float]) -> CurvePoint:
    table, whole, interval = run.tables[task], run.whole.get(task), None
    if whole is not None:
        value, interval = whole["value"], tuple(whole["interval"] or (whole["value"], whole["value"]))
    unread = float(table.unread.mean()) if len(table) else 0.0
    return CurvePoint(run.name, step_of(run.name)[0], value, *band, interval, unread, int(table.failed.sum()))


def _as_gain(values: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return values of which more is better."""
    return 1.0 - values if lower_is_better(metric) else values


def _question_means(table: ScoreTable) -> dict[str, float]:
    part = table.take(table.scored)
    sums, counts = np.bincount(part.sample, weights=part.value), np.bincount(part.sample)
    return {table.samples[code]: float(sums[code] / counts[code]) for code in np.flatnonzero(counts).tolist()}


def _clusters(table: ScoreTable, questions: Sequence[str]) -> NDArray[np.int64]:
    code = {name: number for number, name in enumerate(table.samples)}
    return table.cluster_of_sample[[code[name] for name in questions]].astype(np.int64)


def _alarms(
    runs: Sequence[Measured], gains: NDArray[np.float64], clusters: NDArray[np.int64], drop: float
) -> list[Alarm]:
    """Return the checkpoints that fell below the best before them.

    The level of a pair is that of its later measurement: pairs are shared out as they come to be looked at, so a false
    alarm ever has its chance also where old checkpoints are measured after new ones.
    """
    order = sorted(range(len(runs)), key=lambda at: runs[at].created)
    looks = {at: look for look, at in enumerate(order)}
    found = []
    for at in range(1, len(runs)):
        best = int(gains[:, :at].mean(0).argmax())
        look = max(looks[at], looks[best])
        fell, at_least = fall(gains[:, best], gains[:, at], clusters, share_of_level(look, look))
        if at_least > drop:
            found.append(Alarm(runs[at].name, runs[best].name, fell, at_least))
    return found


def _gate_alarms(task: str, runs: Sequence[Measured], base: Measured, drop: float) -> list[Alarm]:
    """Return the checkpoints that are below the gate, each on the questions that both have a reply to."""
    table = base.tables[task]
    known, found = _question_means(table), []
    for look, run in enumerate(sorted(runs, key=lambda one: one.created), 1):
        own = _question_means(run.tables[task])
        questions = sorted(set(own) & set(known))
        if run.tables[task].metric != table.metric or not questions:
            raise UsageError(
                f"--gate {base.name} was not asked the questions of {run.name}, task {task!r}, by {table.metric}"
            )
        pairs = _as_gain(np.array([[known[name], own[name]] for name in questions]), table.metric)
        clusters = _clusters(table, questions)
        fell, at_least = fall(pairs[:, 0], pairs[:, 1], clusters, share_of_level(look, 1))
        if at_least > drop:
            found.append(Alarm(run.name, base.name, fell, at_least))
    return found


def write_curves(folder: Path, curves: Sequence[Curve]) -> Path:
    """Write the curves for the viewer and for programs."""
    path = folder / FILE
    with atomic_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(list(curves)), indent=1))
    return path


def curve_lines(curve: Curve) -> list[str]:
    """Return a curve for the terminal: a line a checkpoint, with a bar, its difference and the band."""
    asked = f"{curve.questions:,} questions"
    head = f"{curve.task}: {curve.metric} " + (
        f"of all {curve.whole:,} by the bank, {asked} asked of all checkpoints" if curve.whole else f"on {asked}"
    )
    lines = [f"{head}; difference to the first, band of all checkpoints at once (95 %)"]
    width = max(len(point.name) for point in curve.points)
    values = [point.value for point in curve.points]
    low, span = min(values), (max(values) - min(values)) or 1.0
    for point in curve.points:
        bar = BARS[round((point.value - low) / span * (len(BARS) - 1))]
        change = f"{100 * point.difference:+6.1f} [{100 * point.low:+.1f}, {100 * point.high:+.1f}]"
        told = change if point is not curve.points[0] else "     the first"
        sure = "" if point.interval is None else f" [{100 * point.interval[0]:.1f}, {100 * point.interval[1]:.1f}]"
        lines.append(f"  {point.name:{width}}  {bar} {100 * point.value:5.1f} %{sure}  {told}{_lost(point)}")
    lines += [
        f"  ALARM {one.name}: {100 * one.fell:.1f} points below {one.best}, at least {100 * one.at_least:.1f}"
        for one in curve.alarms
    ]
    return lines


def _lost(point: CurvePoint) -> str:
    """Say how many replies were not read and how many calls failed, where some were."""
    unread = f", {100 * point.unread:.0f} % of the replies not read" if point.unread else ""
    return unread + (f", {point.failed:,} failed" if point.failed else "")


def curve_figure(curve: Curve) -> Html:
    """Return a curve as a picture: the value of each checkpoint, the band around it as it differs from the first."""
    first, steps = curve.points[0].value, [point.step for point in curve.points]
    apart = len(set(steps)) == len(steps)
    places = steps if apart else list(range(len(steps)))
    most = 1.0 if max(point.value for point in curve.points) <= 1.0 else math.inf  # nobody is above 100 %
    bands = [point.interval or (first + point.low, first + point.high) for point in curve.points]
    points = [
        draw.Point(x, point.value, max(0.0, low), min(most, high))
        for x, point, (low, high) in zip(places, curve.points, bands, strict=True)
    ]
    bounds = [value for point in points for value in (point.low, point.high) if value is not None]
    x = draw.Axis("step" if apart else "checkpoint", min(places), max(places))
    y = draw.Axis(curve.metric, max(0.0, min(bounds) - 0.02), max(bounds) + 0.02, percent=True)
    return draw.plot([draw.Series(curve.metric, points)], x, y, label=f"{curve.task} by checkpoint")


def curves_below(folder: Path) -> list[tuple[Path, list[Curve]]]:
    """Return the curves that were written in or below a folder; none of a file that cannot be read."""
    found = sorted({*folder.glob(FILE), *folder.glob(f"*/{FILE}"), *folder.glob(f"*/*/{FILE}")})
    return [(path.parent, _read_file(path)) for path in found]


def _read_file(path: Path) -> list[Curve]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Curve])
    except (OSError, msgspec.DecodeError):
        return []


def curve_section(folder: Path, curve: Curve) -> Html:
    """Return one curve as a part of a page."""
    alarms = [tag("p", line.strip(), class_="notice") for line in curve_lines(curve) if "ALARM" in line]
    rows = [
        tag(
            "tr",
            tag("td", point.name),
            tag("td", f"{100 * point.value:.1f} %"),
            tag("td", _difference_words(curve, point)),
        )
        for point in curve.points
    ]
    head = tag("tr", *(tag("th", word) for word in ("checkpoint", curve.metric, "difference to the first, band")))
    words = (
        f"{curve.questions:,} questions; the band of the difference to the first holds all checkpoints at once, 95 %"
    )
    if curve.whole:
        words = (
            f"Drawn: estimates of all {curve.whole:,} questions by a bank, each with its interval. Differences: {words}"
        )
    table = scrolled(f"{curve.task} by checkpoint", tag("thead", head), tag("tbody", *rows))
    title = tag("h2", f"{curve.task} · {folder.name}")
    return tag("section", title, *alarms, curve_figure(curve), tag("p", words, class_="quiet"), table)


def _difference_words(curve: Curve, point: CurvePoint) -> str:
    if point is curve.points[0]:
        return f"the first{_lost(point)}"
    return f"{100 * point.difference:+.1f} [{100 * point.low:+.1f}, {100 * point.high:+.1f}]{_lost(point)}"


ADDRESS = "/curves"


def curves_page(library: RunLibrary, request: Request) -> Html:
    """Return every curve that `snellen follow` has written."""
    found = [one for root in library.roots for one in curves_below(root)]
    none = tag("p", "No curves here yet: snellen follow CHECKPOINTS/ --tasks TASK -o DIR writes them.")
    broken = "holds no curve that can be read: the same snellen follow writes it again with the next checkpoint"
    parts = [curve_section(place, curve) for place, curves in found for curve in curves]
    parts += [tag("p", f"{place / FILE} {broken}", class_="notice") for place, curves in found if not curves]
    parts = parts or [none]
    return shell("Curves", [tag("h1", "Learning curves"), *parts], place=ADDRESS)

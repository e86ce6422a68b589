"""Runs of one task at several checkpoints to a learning curve: values, a simultaneous band, and whether it fell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from ...core.markup import Html, tag
from ...report.files import atomic_file
from ...report.pages import draw
from ...scoring.headline import main_metric
from ...scoring.stored import stored_tables
from ...scoring.table import ScoreTable
from ...stats.sup_band import fall, share_of_level, simultaneous_band
from ...store.reader import RunReader

FILE = "curve.json"
BARS = "▁▂▃▄▅▆▇█"


class CurvePoint(msgspec.Struct, frozen=True):
    """One checkpoint on one task."""

    name: str
    step: float
    value: float
    difference: float
    """To the first checkpoint, on the questions that all have a reply to."""
    low: float
    high: float
    """Of the difference: a band that holds all checkpoints at once with 95 %."""


class Alarm(msgspec.Struct, frozen=True):
    """A checkpoint that is worse than the best before it by more than was allowed."""

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


def step_of(name: str) -> tuple[float, str]:
    """Return by what checkpoints are ordered: the last number in their name, else the name."""
    numbers = re.findall(r"\d+", name)
    return (float(numbers[-1]) if numbers else 0.0, name)


def read_curves(folders: Sequence[Path], drop: float) -> list[Curve]:
    """Return a curve for every task that all runs have; `drop` is how much (a share) a checkpoint may be worse."""
    ordered = sorted(folders, key=lambda folder: step_of(folder.name))
    tables = [_tables_of(folder) for folder in ordered]
    shared = [task for task in tables[0] if all(task in one for one in tables)] if tables else []
    return [_curve(task, [folder.name for folder in ordered], [one[task] for one in tables], drop) for task in shared]


def _tables_of(folder: Path) -> dict[str, ScoreTable]:
    with RunReader(folder) as run:
        found = {task.name: (task, stored_tables(run, task.name)) for task in run.header().tasks}
    chosen = {name: main_metric(tuple(tables), task.headline) for name, (task, tables) in found.items() if tables}
    return {name: found[name][1][metric] for name, metric in chosen.items() if metric in found[name][1]}


def _curve(task: str, names: Sequence[str], tables: Sequence[ScoreTable], drop: float) -> Curve:
    metrics = {table.metric for table in tables}
    if len(metrics) > 1:
        raise UsageError(f"task {task!r} is headed by {' and '.join(sorted(metrics))}: score the runs alike first")
    means = [_question_means(table) for table in tables]
    questions = sorted(set.intersection(*(set(one) for one in means)))
    if not questions:
        raise UsageError(f"task {task!r}: no question has a reply at every checkpoint")
    values = np.array([[one[name] for one in means] for name in questions])
    clusters = _clusters(tables[0], questions)
    band = simultaneous_band(values, clusters, task, len(names))
    points = [
        CurvePoint(name, step_of(name)[0], float(values[:, at].mean()), *(float(x[at]) for x in band[:3]))
        for at, name in enumerate(names)
    ]
    alarms = _alarms(names, values, clusters, drop)
    return Curve(task, tables[0].metric, len(questions), band.factor, tuple(points), tuple(alarms))


def _question_means(table: ScoreTable) -> dict[str, float]:
    part = table.take(table.scored)
    sums, counts = np.bincount(part.sample, weights=part.value), np.bincount(part.sample)
    return {table.samples[code]: float(sums[code] / counts[code]) for code in np.flatnonzero(counts).tolist()}


def _clusters(table: ScoreTable, questions: Sequence[str]) -> NDArray[np.int64]:
    code = {name: number for number, name in enumerate(table.samples)}
    return table.cluster_of_sample[[code[name] for name in questions]].astype(np.int64)


def _alarms(names: Sequence[str], values: NDArray[np.float64], clusters: NDArray[np.int64], drop: float) -> list[Alarm]:
    found = []
    for at in range(1, len(names)):
        best = int(values[:, :at].mean(0).argmax())
        fell, at_least = fall(values[:, best], values[:, at], clusters, share_of_level(at, at))
        if at_least > drop:
            found.append(Alarm(names[at], names[best], fell, at_least))
    return found


def write_curves(folder: Path, curves: Sequence[Curve]) -> Path:
    """Write the curves for the viewer and for programs."""
    path = folder / FILE
    with atomic_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(list(curves)), indent=1))
    return path


def curve_lines(curve: Curve) -> list[str]:
    """Return a curve for the terminal: a line a checkpoint, with a bar, its difference and the band."""
    head = f"{curve.task}: {curve.metric} on {curve.questions:,} questions"
    lines = [f"{head}; difference to the first, band of all checkpoints at once (95 %)"]
    width = max(len(point.name) for point in curve.points)
    values = [point.value for point in curve.points]
    low, span = min(values), (max(values) - min(values)) or 1.0
    for point in curve.points:
        bar = BARS[round((point.value - low) / span * (len(BARS) - 1))]
        change = f"{100 * point.difference:+6.1f} [{100 * point.low:+.1f}, {100 * point.high:+.1f}]"
        told = change if point is not curve.points[0] else "     the first"
        lines.append(f"  {point.name:{width}}  {bar} {100 * point.value:5.1f} %  {told}")
    lines += [
        f"  ALARM {one.name}: {100 * one.fell:.1f} points below {one.best}, at least {100 * one.at_least:.1f}"
        for one in curve.alarms
    ]
    return lines


def curve_figure(curve: Curve) -> Html:
    """Return a curve as a picture: the value of each checkpoint, the band around it as it differs from the first."""
    first, steps = curve.points[0].value, [point.step for point in curve.points]
    apart = len(set(steps)) == len(steps)
    places = steps if apart else list(range(len(steps)))
    points = [
        draw.Point(x, point.value, first + point.low, first + point.high)
        for x, point in zip(places, curve.points, strict=True)
    ]
    bounds = [value for point in points for value in (point.low, point.high) if value is not None]
    x = draw.Axis("step" if apart else "checkpoint", min(places), max(places))
    y = draw.Axis(curve.metric, max(0.0, min(bounds) - 0.02), max(bounds) + 0.02, percent=True)
    return draw.plot([draw.Series(curve.metric, points)], x, y, label=f"{curve.task} by checkpoint")


def curves_below(folder: Path) -> list[tuple[Path, list[Curve]]]:
    """Return the curves that were written in or below a folder."""
    found = sorted({*folder.glob(FILE), *folder.glob(f"*/{FILE}"), *folder.glob(f"*/*/{FILE}")})
    return [(path.parent, msgspec.json.decode(path.read_bytes(), type=list[Curve])) for path in found]


def curve_section(folder: Path, curve: Curve) -> Html:
    """Return one curve as a part of a page."""
    alarms = [tag("p", line.strip(), class_="notice") for line in curve_lines(curve) if "ALARM" in line]
    rows = [
        tag("tr", tag("td", point.name), tag("td", f"{100 * point.value:.1f} %"), tag("td", _told(curve, point)))
        for point in curve.points
    ]
    head = tag("tr", *(tag("th", word) for word in ("checkpoint", curve.metric, "difference to the first, band")))
    words = f"{curve.questions:,} questions; the band holds all checkpoints at once with 95 %"
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    title = tag("h2", f"{curve.task} · {folder.name}")
    return tag("section", title, *alarms, curve_figure(curve), tag("p", words, class_="quiet"), table)


def _told(curve: Curve, point: CurvePoint) -> str:
    if point is curve.points[0]:
        return "the first"
    return f"{100 * point.difference:+.1f} [{100 * point.low:+.1f}, {100 * point.high:+.1f}]"

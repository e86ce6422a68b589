"""Results to the terminal: the tables with their intervals, foreign text made harmless."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..core.text import show_text
from ..scoring.aggregates.headline import MACRO, SIDE_METRICS, is_side_metric
from .written import read_share, written, written_interval, written_share

BLIND = "_blind"
"""Figures of blind rules have a table of their own."""
VARIANCE = "_variance_"
"""Parts of the variance: said in words below the table."""
ALWAYS = ("n", "read", "failed")
AT_TIMES = ("unscored", "not_yet_asked", "left_out")
"""Counts of an estimate; the last ones have a column where some are not 0."""


def plain(text: str) -> Text:
    """Return foreign text as it may be shown: no control bytes, no markup."""
    return Text(show_text(text))


def results_table(name: str, result: Mapping[str, Any]) -> Table:
    """Return one task's metrics with their 95 % intervals and counts."""
    table = Table(title=plain(name), title_justify="left", title_style="bold")
    table.add_column("metric")
    metrics = result["metrics"]
    metrics = {
        name: estimate for name, estimate in metrics.items() if VARIANCE not in name and not name.endswith(BLIND)
    }
    counts = (*ALWAYS, *told_counts(metrics.values(), AT_TIMES))
    for column in ("value", "95 % interval", "bounds", *counts):
        table.add_column(column.replace("_", " "), justify="right")
    main = [metric for metric in metrics if not is_side_metric(metric)]
    side = [metric for metric in metrics if is_side_metric(metric) and tells_more(metric, metrics)]
    for metric in main:
        table.add_row(*estimate_cells(metric, metrics[metric], counts))
    for metric in side:
        table.add_row(*estimate_cells(metric, metrics[metric], counts), style="dim")
    return table


def tells_more(metric: str, metrics: Mapping[str, Any]) -> bool:
    """Tell whether a side metric says something its main metric does not: a rate above 0, a value that differs."""
    value = metrics[metric]["value"]
    if metric.endswith("_rate"):
        return bool(value)
    of = metric.split(MACRO, maxsplit=1)[0]
    for ending in SIDE_METRICS:
        of = of.removesuffix(ending)
    beside = metrics.get(of, {"value": None})["value"]
    return MACRO not in metric and value is not None and (beside is None or abs(value - beside) > 1e-9)


def told_counts(estimates: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the counts among `names` that are not 0 for some estimate; unknown is not 0."""
    found = list(estimates)
    return [name for name in names if any(estimate.get(name, 0) != 0 for estimate in found)]


def read_text(estimate: Mapping[str, Any]) -> str:
    """Return which share of what an estimate counts was read; of figures that do not tell, and of nothing, a dash."""
    share = read_share(estimate)
    return "–" if share is None else written_share(share)


def count_text(count: int | None) -> str:
    """Return a count, or a question mark where it is not known."""
    return "?" if count is None else f"{count:,}"


def estimate_cells(metric: str, estimate: Mapping[str, Any], counts: Sequence[str] = ALWAYS) -> list[Text | str]:
    """Return one row: name, value, interval, bounds and counts."""
    counted = (read_text(estimate) if name == "read" else count_text(estimate.get(name, 0)) for name in counts)
    ends = (written_interval(metric, estimate), written_interval(metric, estimate, "bounds"))
    return [plain(metric), written(metric, estimate), *ends, *counted]


def said_share(estimate: Mapping[str, Any]) -> str:
    """Return a share in per cent with its interval."""
    if estimate["value"] is None:
        return "–"
    ends = estimate["ci95"]
    interval = f" [{ends[0] * 100:.1f} – {ends[1] * 100:.1f}]" if ends else ""
    return f"{estimate['value'] * 100:.1f} %{interval}"


def said_points(estimate: Mapping[str, Any] | None) -> str:
    """Return a paired difference in points of a hundred with its interval; a dash where there is none."""
    if estimate is None or estimate["value"] is None:
        return "–"
    ends = estimate["ci95"]
    interval = f" [{ends[0] * 100:+.1f}, {ends[1] * 100:+.1f}]" if ends else " (no interval)"
    return f"{estimate['value'] * 100:+.1f}{interval}"


SURENESS = (
    "answers",
    "mean confidence",
    "right",
    "calibration error",
    "risk area",
    "error of the surest half",
    "of 80 %",
)
"""What is told of a source of confidence."""


def sureness_cells(one: Mapping[str, Any]) -> list[str]:
    """Return a source of confidence as cells: how sure, how right, how far apart, what is risked."""
    risk = {round(share, 1): error for share, error in one["risk"]}
    shares = [f"{value * 100:.1f} %" for value in (one["confidence"], one["accuracy"])]
    figures = [said_share(one["ece"]), said_share(one["aurc"])]
    return [count_text(one["n"]), *shares, *figures, *(f"{risk[share] * 100:.1f} %" for share in (0.5, 0.8))]


def sureness_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    """Yield how sure and how right answers were; nothing where nobody told how sure."""
    if not result.get("sureness"):
        return
    table = Table(title="how sure, and how right", title_justify="left", title_style="dim")
    table.add_column("by")
    for column in SURENESS:
        table.add_column(column, justify="right")
    for one in result["sureness"]:
        table.add_row(one["source"], *sureness_cells(one))
    yield table


def group_tables(result: Mapping[str, Any], most: int = 12) -> Iterator[Table]:
    """Yield one table for each key that has a few groups."""
    for key, groups in result.get("groups", {}).items():
        if 2 <= len(groups) <= most:
            yield _group_table(key, groups)


def _group_table(key: str, groups: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(title=plain(f"by {key}"), title_justify="left", title_style="dim")
    table.add_column(plain(key))
    metrics = [metric for metric in next(iter(groups.values())) if not metric.endswith(SIDE_METRICS)]
    for metric in metrics:
        table.add_column(plain(metric), justify="right")
    first = [estimates[metrics[0]] for estimates in groups.values()]
    unread = any(read_share(estimate) not in (None, 1.0) for estimate in first)
    counts = ("n", *(["read"] if unread else []), *told_counts(first, ("failed", *AT_TIMES)))
    for name in counts:  # "trials", not "n": a tag may be called so
        table.add_column("trials" if name == "n" else name.replace("_", " "), justify="right")
    for value, estimates in groups.items():
        shown = [with_interval(metric, estimates[metric]) for metric in metrics]
        one = estimates[metrics[0]]
        told = (read_text(one) if name == "read" else count_text(one.get(name, 0)) for name in counts)
        table.add_row(plain(value), *shown, *told)
    return table


def dimension_table(means: Mapping[str, tuple[float, int]]) -> Table:
    """Return one row a dimension, and their mean."""
    table = Table("dimension", "tasks", "mean", title="by dimension", title_justify="left", title_style="bold")
    for dimension, (mean, count) in means.items():
        table.add_row(plain(dimension), str(count), f"{mean * 100:.1f} %")
    average = sum(mean for mean, _ in means.values()) / len(means)
    table.add_row("average of dimensions", "", f"{average * 100:.1f} %", style="bold")
    return table


def with_interval(metric: str, estimate: Mapping[str, Any]) -> str:
    """Return a value as it is written, with its interval where it has one."""
    interval = f" [{written_interval(metric, estimate)}]" if estimate.get("ci95") else ""
    return written(metric, estimate) + interval

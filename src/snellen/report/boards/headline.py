"""The metrics of a task to the one it stands for, on every page, table and board; of many tasks to dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from ...scoring.table import lower_is_better
from ..side_metrics import is_side_metric
from ..written import percent_metric

PREFERRED = ("accuracy", "cider")
BESIDE = ("_share", "_tokens", "latency_s")
"""How figures end that are no metric of the answers."""
NO_ESTIMATE: Mapping[str, Any] = {"value": None, "n": 0, "unscored": 0, "failed": 0}


def reading_name(results: Mapping[str, Any]) -> str:
    """Return by which reading results were made; those of 0.1 name the profile only."""
    run = results.get("run", {})
    name: str = run.get("reading", {}).get("name") or run.get("profile") or "snellen"
    return name


def headline_metric(metrics: Mapping[str, Any]) -> str | None:
    """Return the metric a task stands for, whatever the order of `metrics`; None where there are only side figures.

    The acuity of an eye chart where it could be fitted; else accuracy, else CIDEr; else the first by name that is
    measured trial by trial (it has a strict twin), else the first that is no side figure.
    """
    if metrics.get("acuity_px", NO_ESTIMATE)["value"] is not None:
        return "acuity_px"
    by_trial = [name for name in sorted(metrics) if f"{name}_strict" in metrics]
    others = [name for name in sorted(metrics) if not is_side_metric(name) and not name.endswith(BESIDE)]
    return next((name for name in (*PREFERRED, *by_trial, *others) if name in metrics), None)


def headline(metrics: Mapping[str, Any], quoted: str | None = None) -> tuple[str | None, Mapping[str, Any]]:
    """Return the metric a task stands for and its estimate, an empty one where there is none.

    `quoted` is what its card is quoted by; without a card the metrics decide.
    """
    name = quoted if quoted in metrics else headline_metric(metrics)
    return name, metrics.get(name, NO_ESTIMATE) if name is not None else NO_ESTIMATE


def dimension_means(
    tasks: Mapping[str, Mapping[str, Any]], dimensions: Mapping[str, str]
) -> dict[str, tuple[float, int]]:
    """Return dimension -> (mean of its tasks' headlines, number of tasks); every task weighs the same.

    Tasks whose headline is better when lower (pixels, error rates) or no share (CIDEr, points) are left out: they have
    no place in a mean.
    """
    values: dict[str, list[float]] = {}
    for task, result in tasks.items():
        name, estimate = headline(result["metrics"], result.get("headline"))
        if name is None or estimate["value"] is None or not dimensions.get(task):
            continue
        if percent_metric(name, {"value": estimate["value"]}) and not lower_is_better(name):
            values.setdefault(dimensions[task], []).append(estimate["value"])
    return {dimension: (fmean(of_tasks), len(of_tasks)) for dimension, of_tasks in values.items()}

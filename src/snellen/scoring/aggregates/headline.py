"""The metrics of a task to the one it stands for: chosen here once, for results.json and all that shows a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.counting import lower_is_better
from ...core.tasks import Task
from ...core.types import Score

if TYPE_CHECKING:
    from ..tables.table import ScoredTask

PREFERRED = ("accuracy", "cider", "page")
BESIDE = ("_share", "_tokens", "latency_s")
"""How figures end that are no metric of the answers."""
PEER = "_peer"
"""How metrics end that count as a protocol's own tool does."""
SIDE_METRICS = ("_rate", "_read", "_strict", "_micro", PEER)
MACRO = "_macro_"
NO_SHARES = (
    *("acuity_px", "contrast_threshold", "critical_severity", "threshold", "points"),
    *("cider", "answer_entropy", "round_correlation", "round_slope", "compression:", "difference:"),
)
"""How metrics begin that have a unit or a scale of their own, though they may lie from 0 to 1."""
NO_ESTIMATE: Mapping[str, Any] = {"value": None, "n": 0, "unscored": 0, "failed": 0}


def is_side_metric(metric: str) -> bool:
    """Tell whether a metric stands beside another one: a rate, a strict twin, another weighting."""
    return metric.endswith(SIDE_METRICS) or MACRO in metric


def is_no_share(metric: str) -> bool:
    """Tell whether a metric is no share whatever its value: pixels, CIDEr, nats, slopes, ratios, variances."""
    return metric.startswith(NO_SHARES) or metric == "instability" or "_variance_" in metric


def headline_metric(metrics: Mapping[str, Any], quoted: str = "") -> str | None:
    """Return the metric a task stands for, whatever the order of `metrics`; None where there are only side figures.

    What its card is quoted by, where that could be computed; else the acuity of an eye chart where it could be fitted,
    else accuracy, else CIDEr; else the first by name that is measured trial by trial (it has a strict twin), else the
    first that is no side figure.
    """
    if quoted in metrics:
        return quoted
    if metrics.get("acuity_px", NO_ESTIMATE)["value"] is not None:
        return "acuity_px"
    by_trial = [name for name in sorted(metrics) if f"{name}_strict" in metrics]
    others = [name for name in sorted(metrics) if not is_side_metric(name) and not name.endswith(BESIDE)]
    return next((name for name in (*PREFERRED, *by_trial, *others) if name in metrics), None)


def quoted_metric(task: Task) -> str:
    """Return the metric of single trials that a task's headline is, or is made of; nothing where no card names one."""
    made_of = {figure.name: figure.metric for figure in task.figures}
    return made_of.get(task.headline, task.headline)


@cache
def main_metric(metrics: tuple[str, ...], quoted: str) -> str | None:
    """Return which of the metrics of single trials stands for a trial, as the headline does for its task."""
    return headline_metric({name: NO_ESTIMATE for metric in metrics for name in (metric, f"{metric}_strict")}, quoted)


def main_first(scores: Sequence[Score], quoted: str) -> Sequence[Score]:
    """Return the scores of a trial, that of the main metric first: pages and exports show it as the verdict."""
    if len(scores) < 2:
        return scores
    metrics = tuple([score.metric for score in scores])
    main = main_metric(metrics, quoted)
    if main is None or main == metrics[0]:
        return scores
    place = metrics.index(main)
    return [scores[place], *scores[:place], *scores[place + 1 :]]


def headline(result: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """Return the metric that one task of a results.json stands for, and its estimate, an empty one where there is none.

    Results of before 0.3 name it only where a card does: there the metrics decide, as they do when a run is scored.
    """
    name = headline_metric(result["metrics"], result.get("headline") or "")
    return name, NO_ESTIMATE if name is None else result["metrics"][name]


def right_answers(scored: ScoredTask, headline: str) -> float | None:
    """Return how many answers the headline counts as right, credit in part included; None where it counts none.

    A figure of whole groups or a mean of means counts the trials that it is made of.
    """
    name = quoted_metric(scored.task) if headline == scored.task.headline else headline
    table = scored.tables.get(name)
    if table is None or not len(table) or lower_is_better(table.metric) or is_no_share(table.metric):
        return None
    values = table.value[table.scored]
    return float(values.sum()) if bool(np.all((values >= 0.0) & (values <= 1.0))) else None

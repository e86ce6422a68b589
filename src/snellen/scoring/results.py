"""Scored tasks in, results.json out: the part of every task, the tokens spent, and how far the run is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..core.registry import Registry
from ..core.tasks import MOST_GROUPS, RunHeader, Task
from ..core.types import Estimate
from ..data.degrade.calibrations import stated_calibration
from ..store.reader import RunReader
from .aggregates.quoted_figures import figures_left_out
from .aggregates.robustness import DISTURBING
from .aggregates.suite_means import suite_figures
from .aggregates.variance import advise, split_variance
from .counts import TaskCounts
from .gathered import USAGE
from .headline import right_answers
from .peers.peer_words import headline_note, stated_protocol
from .readings import OWN, Reading
from .summary import summarize
from .table import ScoredTask, ScoreTable

COUNTED = "every reply; unread is not right"
"""What the figures of results.json are over. Those of 0.2, which do not say it, left out what was not read."""


def results_of(
    reader: RunReader, reading: Reading, score_task: Callable[[Task], tuple[dict[str, Any], dict[str, int]]]
) -> dict[str, Any]:
    """Return results.json as plain data; `score_task` gives the part of a task, and its tokens."""
    header = reader.header()
    scored = {task.name: score_task(task) for task in header.tasks}
    usage = {name: sum(usage[name] for _, usage in scored.values()) for name in USAGE}
    return frame_results(reader, header, {name: result for name, (result, _) in scored.items()}, usage, reading)


def frame_results(
    reader: RunReader, header: RunHeader, tasks: dict[str, Any], usage: dict[str, int], reading: Reading = OWN
) -> dict[str, Any]:
    """Return the parts of tasks as results.json frames them: which run, which model, how far it is."""
    if reading == OWN:
        _put_stopped_interval(tasks, reader.meta("until_ci"))
    run: dict[str, Any] = {name: getattr(header, name) for name in ("id", "created", "command", "config")}
    return {
        "run": run
        | {
            "profile": reading.profile,
            "reading": reading.described(),
            "counted": COUNTED,
            "servers": reader.meta("servers") or [],
            "adjusted": reader.meta("adjusted") or [],
            "warnings": reader.meta("warnings") or [],
        }
        | ({"replicas": told} if (told := reader.meta("replicas")) else {})
        | stated_calibration(header.config),
        "model": header.model,
        "tasks": tasks,
        "suites": suite_figures(tasks),
        "usage": usage,
        "versions": header.versions,
        "status": _status(reader, header),
    }


def _put_stopped_interval(tasks: Mapping[str, Any], until_ci: Mapping[str, Any] | None) -> None:
    """Give the metric that `--until-ci` stopped at the interval that allows for having looked again and again.

    One made for a fixed number of trials would be too narrow. The value has replies that were under way at the stop.
    """
    if not until_ci or not until_ci["stopped"]:
        return
    for task in tasks.values():
        estimate = task["metrics"].get(until_ci.get("metric"))
        if estimate is not None and estimate["value"] is not None:
            low, high = until_ci["interval"]
            estimate["ci95"] = [min(low, estimate["value"]), max(high, estimate["value"])]


def summarize_task(
    scored: ScoredTask, registry: Registry, options: Mapping[str, Any], header: RunHeader
) -> dict[str, Any]:
    """Return one task's part of results.json."""
    counts = TaskCounts(next(iter(scored.tables.values())), scored.task, header)
    result = summarize(scored.tables, group_by=group_keys(scored.tables, scored.task), options=options, counts=counts)
    told = {"planned_trials": header.planned.get(scored.task.name), **options}
    for name in aggregates_of(scored.task):
        estimates: Mapping[str, Estimate] = registry.get("aggregate", name)(scored, told)
        result["metrics"] |= msgspec.to_builtins(counts.settle_all(estimates))
    stated = stated_protocol(scored.task, result["metrics"])
    notes = [*headline_note(scored.task, stated), *figures_left_out(scored), *notes_on(scored.tables)]
    return result | {"notes": notes, "right_answers": right_answers(scored, stated["headline"])} | stated


def notes_on(tables: Mapping[str, ScoreTable]) -> list[str]:
    """Say in words what the spread of the trials means for the next run."""
    return [
        f"{name}: {advise(split_variance(table))}"
        for name, table in sorted(tables.items())
        if table.is_repeated or table.is_varied
    ]


class _Options(msgspec.Struct):
    """The part of a sample that chance hangs on."""

    options: tuple[str, ...] = ()


def chance_of(reader: RunReader, task: Task) -> float:
    """Return what guessing would score: robustness is counted from there."""
    decode = msgspec.json.Decoder(_Options).decode
    sizes = Counter(len(decode(body).options) for (body,) in reader.sample_columns("body", task.name))
    del sizes[0]
    return math.fsum(count / size for size, count in sizes.items()) / sizes.total() if sizes else 0.0


def aggregates_of(task: Task) -> list[str]:
    """Return the task's aggregates; what was disturbed also gets its own, where chance and unread replies count."""
    perturbed = any(f"{axis}=" in variant for variant in task.variants for axis in DISTURBING)
    more = [*(["perturbed"] if perturbed else []), *(["figures"] if task.figures else [])]
    return list(dict.fromkeys([*task.aggregates, *more]))


def group_keys(tables: Mapping[str, ScoreTable], task: Task) -> list[str]:
    """Return what to group by: as the task says, else every tag with a few values, and the variants."""
    table = next(iter(tables.values()), None)
    if table is None:
        return []
    keys = list(task.group_by) or [key for key, (_, values) in table.tags.items() if 2 <= len(values) <= MOST_GROUPS]
    return [*keys, *(["variant"] if table.is_varied else [])]


def _status(reader: RunReader, header: RunHeader) -> dict[str, Any]:
    """Return whether every planned trial is stored and has a reply."""
    counts = list(reader.rows("SELECT task, COUNT(*), SUM(failed) FROM predictions GROUP BY task"))
    stored, failed = {task: count for task, count, _ in counts}, {task: int(lost or 0) for task, _, lost in counts}
    # A plug-in of before 0.3 may have stored more than it announced: what is stored was planned.
    planned = {task: max(count, stored.get(task, 0)) for task, count in header.planned.items()}
    missing = {task: count - stored.get(task, 0) for task, count in planned.items()}
    until_ci = reader.meta("until_ci")
    asked = not any(missing.values()) or bool(until_ci and until_ci["stopped"])
    return {
        "complete": asked and not any(failed.values()),
        "planned": planned,
        "not_yet_asked": missing,
        "failed": failed,
        "until_ci": until_ci,
    }

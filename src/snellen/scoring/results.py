"""Scored tasks in, results.json out: the part of every task, the tokens spent, and how far the run is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..core.builtins import parts_of
from ..core.registry import Registry
from ..core.tasks import MOST_GROUPS, RunHeader, Task
from ..core.types import Estimate
from ..data.images.edits import stated_calibration
from ..data.regions import REGIONS
from ..stats.intervals import Z95
from ..store.answerers import Row, read_table
from ..store.reader import RunReader
from .aggregates.calibration import describe_sureness
from .aggregates.counted import counted_task
from .aggregates.counts import TaskCounts
from .aggregates.headline import right_answers
from .aggregates.robustness import DISTURBING
from .aggregates.summary import group_estimates, summarize
from .aggregates.variance import advise, split_variance
from .protocols.peer_scores import headline_note, stated_protocol
from .protocols.readings import COUNTED, OWN, Reading
from .tables.table import ScoredTask, ScoreTable


def frame_results(
    reader: RunReader, header: RunHeader, tasks: dict[str, Any], usage: dict[str, int], reading: Reading = OWN
) -> dict[str, Any]:
    """Return the parts of tasks as results.json frames them: which run, which model, how far it is."""
    until_ci = reader.meta("until_ci")
    if reading == OWN:
        _put_stopped_interval(tasks, until_ci)
    run: dict[str, Any] = {name: getattr(header, name) for name in ("id", "created", "command", "config")}
    return {
        "run": run
        | {
            "profile": reading.profile,
            "reading": reading.described(),
            "counted": COUNTED,
            "servers": _servers(answerers := read_table(reader.meta)),
            "answerers": [msgspec.to_builtins(row) for row in answerers],
            "adjusted": reader.meta("adjusted") or [],
            "warnings": reader.meta("warnings") or [],
        }
        | {name: told for name in ("replicas", "duplicates") if (told := reader.meta(name))}
        | stated_calibration(header.config),
        "model": header.model,
        "tasks": tasks,
        "suites": _suites(tasks),
        "usage": usage,
        "versions": header.versions,
        **({"continued_with": told} if (told := reader.meta("continued_with")) else {}),
        "status": _status(reader, header, until_ci),
    }


def _suites(tasks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of suites; one task alone is none."""
    if len(tasks) < 2:
        return {}
    from .suites import suite_figures

    return suite_figures(tasks)


def _servers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return where a run was asked and what the servers listed, each once."""
    told = [{"base_url": row.who.address, "says": row.who.listed} for row in rows if row.who.address]
    return [one for number, one in enumerate(told) if one not in told[:number]]


def _put_stopped_interval(tasks: Mapping[str, Any], until_ci: Mapping[str, Any] | None) -> None:
    """Give the metric that `--until-ci` stopped at the interval that allows for having looked again and again.

    One made for a fixed number of trials would be too narrow. The value has replies that were under way at the stop.
    """
    if until_ci and until_ci.get("gate"):
        _put_gated(tasks)
        return
    if until_ci and until_ci.get("whole"):
        _put_whole(tasks, until_ci)
        return
    if not until_ci or not until_ci["stopped"]:
        return
    for task in tasks.values():
        estimate = task["metrics"].get(until_ci.get("metric"))
        if estimate is not None and estimate["value"] is not None:
            low, high = until_ci["interval"]
            estimate["ci95"] = [min(low, estimate["value"]), max(high, estimate["value"])]


def _put_whole(tasks: Mapping[str, Any], until_ci: Mapping[str, Any]) -> None:
    """Let the metric that a bank helped with be the estimate of the whole benchmark; the mean of a part is no score."""
    whole, metric = until_ci["whole"], until_ci["metric"]
    for task in tasks.values():
        estimate = task["metrics"].get(metric)
        if estimate is None or estimate["value"] is None:
            continue
        low, high = whole["interval"] or (whole["value"], whole["value"])
        if estimate.get("bounds") is not None:
            estimate["bounds"] = whole["bounds"]
        estimate |= {"value": whole["value"], "stderr": (high - low) / (2 * Z95), "ci95": [low, high]}
        task["whole"] = dict(whole) | {"metric": metric}
        task["notes"] = [*task["notes"], *whole_lines(whole, metric)]


def _put_gated(tasks: Mapping[str, Any]) -> None:
    """Say of the questions that a gate asked that they are no fair sample: it asks those that may change more often."""
    for task in tasks.values():
        for estimate in task["metrics"].values():
            estimate["ci95"] = None
        task["notes"] = [*task["notes"], GATED]


GATED = "these questions were chosen by a gate, those that may change first: their mean is no score (see gate.json)"


def whole_lines(whole: Mapping[str, Any], metric: str) -> list[str]:
    """Say what an estimate of the whole is, and what it rests on."""
    asked, items, value = whole["asked"], whole["items"], 100 * whole["value"]
    if whole["interval"] is None:
        return [f"{metric} {value:.1f}: all {items:,} questions were asked, so the bank says nothing more"]
    low, high = (100 * end for end in whole["interval"])
    words = (
        f"{metric} {value:.1f} ({low:.1f}–{high:.1f}) is an estimate of all {items:,} questions from {asked:,} asked"
    )
    trust = f"trust in the bank {whole['trust']:.2f}, random sampling would need ~{whole['alike']:,.0f}"
    lines = [f"{words} · {trust} · other rows are means of what was asked, no estimates"]
    if whole["outside_the_bank"]:
        changed = f", {whole['of_another_content']:,} of them changed since" if whole["of_another_content"] else ""
        lines.append(f"{whole['outside_the_bank']:,} of {items:,} questions are not in the bank{changed}")
    if whole["left_out_of_the_bank"]:
        lines.append(f"left out of the bank, as they are this model: {', '.join(whole['left_out_of_the_bank'])}")
    if whole["failed"]:
        lines.append(f"{whole['failed']:,} calls of the prefix failed and count as not right")
    if whole["bounds"][0] != whole["bounds"][1]:
        lines.append(f"had every unread reply been right: {100 * whole['bounds'][1]:.1f}")
    if whole["repetition_error"]:
        lines.append(f"another full run would differ by ± {100 * whole['repetition_error']:.2f} (one standard error)")
    return lines


def summarize_task(
    scored: ScoredTask, registry: Registry, options: Mapping[str, Any], header: RunHeader
) -> dict[str, Any]:
    """Return one task's part of results.json."""
    counts = TaskCounts(next(iter(scored.tables.values())), scored.task, header)
    whole, scored, keys = scored, counted_task(scored), group_keys(scored.tables, scored.task)
    result = summarize(scored.tables, group_by=keys, options=options, counts=counts)
    told_by = {name: describe(whole, keys) for name, describe in parts_of(whole.task, "describe", registry)}
    if scored is not whole:
        result["groups"]["variant"] = _by_variant(whole.tables, counts)
    for _, figures in told_by.values():
        result["metrics"] |= msgspec.to_builtins(counts.settle_all(figures))
    told = {"planned_trials": header.planned.get(scored.task.name), **options}
    for name in aggregates_of(scored.task):
        seen = whole if name == "figures" else scored  # a figure may be a gain over an arm
        estimates: Mapping[str, Estimate] = registry.get("aggregate", name)(seen, told)
        result["metrics"] |= msgspec.to_builtins(counts.settle_all(estimates))
    stated = stated_protocol(scored.task, result["metrics"])
    notes = [*counts.beside_card(), *headline_note(scored.task, stated), *_left_out(whole)]
    sure = describe_sureness(scored)
    parts = {name: found for name, (found, _) in told_by.items() if found}
    notes += [note for found in parts.values() for note in found.get("notes", ())]
    notes += notes_on(scored.tables)
    return result | {"notes": notes, "right_answers": right_answers(scored, stated["headline"])} | stated | parts | sure


def _left_out(scored: ScoredTask) -> list[str]:
    """Say which figures of a card cannot be made; what makes figures is imported where a card has some."""
    if not scored.task.figures:
        return []
    from .aggregates.quoted_figures import figures_left_out

    return list(figures_left_out(scored))


def _by_variant(tables: Mapping[str, ScoreTable], counts: TaskCounts) -> dict[str, dict[str, Any]]:
    """Return the figures of each variant, arms too, which are no part of the figures of the task."""
    found: dict[str, dict[str, Any]] = {}
    for table in tables.values():
        for value, estimates in group_estimates(table, "variant", counts).items():
            found.setdefault(value, {}).update(msgspec.to_builtins(estimates))
    return found


def notes_on(tables: Mapping[str, ScoreTable]) -> list[str]:
    """Say in words what the spread of the trials means for the next run."""
    return [f"{name}: {advise(split_variance(table))}" for name, table in sorted(tables.items()) if table.asks_again]


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
    few = [key for key, (_, values) in table.tags.items() if 2 <= len(values) <= MOST_GROUPS and key not in REGIONS]
    keys = list(task.group_by) or few
    return [*keys, *(["variant"] if table.is_varied else [])]


def _status(reader: RunReader, header: RunHeader, until_ci: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return whether every planned trial is stored and has a reply."""
    counts = list(reader.rows("SELECT task, COUNT(*), SUM(failed) FROM predictions GROUP BY task"))
    stored, failed = {task: count for task, count, _ in counts}, {task: int(lost or 0) for task, _, lost in counts}
    # A plug-in of before 0.3 may have stored more than it announced: what is stored was planned.
    planned = {task: max(count, stored.get(task, 0)) for task, count in header.planned.items()}
    missing = {task: count - stored.get(task, 0) for task, count in planned.items()}
    asked = not any(missing.values()) or bool(until_ci and until_ci["stopped"])
    return {
        "complete": asked and not any(failed.values()),
        "planned": planned,
        "not_yet_asked": missing,
        "failed": failed,
        "until_ci": until_ci,
    }

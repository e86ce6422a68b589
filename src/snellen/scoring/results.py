"""Scored tasks in, results.json out: the part of every task, the tokens spent, and how far the run is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..core.builtins import parts_of
from ..core.registry import Registry
from ..core.tasks import MOST_GROUPS, RunHeader, Task
from ..core.types import Estimate
from ..data.atlas.protocols import Suite, SuiteMember
from ..data.catalog import Catalog
from ..data.images.edits import stated_calibration
from ..data.regions import REGIONS
from ..stats.intervals import Z95, sum_interval
from ..store.answerers import Row, read_table
from ..store.reader import RunReader
from .aggregates.calibration import describe_sureness
from .aggregates.counted import counted_task
from .aggregates.counts import TaskCounts
from .aggregates.headline import headline, right_answers
from .aggregates.quoted_figures import figures_left_out
from .aggregates.robustness import DISTURBING
from .aggregates.summary import group_estimates, summarize
from .aggregates.variance import advise, split_variance
from .protocols.peer_scores import headline_note, stated_protocol
from .protocols.readings import COUNTED, OWN, Reading
from .tables.table import ScoredTask, ScoreTable

Tasks = Mapping[str, Mapping[str, Any]]


def suite_figures(tasks: Tasks, catalog: Catalog | None = None) -> dict[str, dict[str, Any]]:
    """Return the headline of every suite of which all members that have a card were measured."""
    if len(tasks) < 2:
        return {}
    catalog = catalog or Catalog()
    suites = {name: catalog.suite(name) for name in catalog.names("suites")}
    known = set(catalog.names("datasets"))
    asked = {name: suite for name, suite in suites.items() if suite.headline and _is_asked(suite, tasks, known)}
    return {name: suite_figure(suite, tasks) for name, suite in asked.items()}


def _is_asked(suite: Suite, tasks: Tasks, known: set[str]) -> bool:
    with_card = [task for task in suite.names if task in known]
    return len(with_card) > 1 and all(task in tasks for task in with_card)


def suite_figure(suite: Suite, tasks: Tasks) -> dict[str, Any]:
    """Return a suite's mean with its interval; with a member lacking it has none, and only that of those present.

    Members have different questions, so their errors add up as independent ones.
    """
    found = [(member, _estimate(member, tasks)) for member in suite.members]
    present = [(member, estimate) for member, estimate in found if estimate is not None]
    lacking = [_why_lacking(member, tasks) for member, estimate in found if estimate is None]
    mean = _mean(present)
    whole = mean if not lacking else {"value": None, "stderr": None, "ci95": None}
    return {
        "name": suite.headline,
        **whole,
        "members": {_label(member): member.scale * estimate["value"] for member, estimate in present},
        "lacking": lacking,
        "mean_of_present": mean["value"],
        "protocols": sorted(set(_protocols(tasks, suite))),
        "quoted_in": suite.protocol,
    }


def _protocols(tasks: Tasks, suite: Suite) -> Iterator[str]:
    yield from (tasks[name].get("protocol", {}).get("name", "") for name in suite.names if name in tasks)


def _label(member: SuiteMember) -> str:
    return f"{member.task}:{member.metric}" if member.metric else member.task


def _estimate(member: SuiteMember, tasks: Tasks) -> Mapping[str, Any] | None:
    result = tasks.get(member.task)
    if result is None:
        return None
    estimate = result["metrics"].get(member.metric) if member.metric else headline(result)[1]
    return estimate if estimate is not None and estimate["value"] is not None else None


def _why_lacking(member: SuiteMember, tasks: Tasks) -> str:
    if member.task not in tasks:
        return f"{member.task}: not measured"
    metric = member.metric or headline(tasks[member.task])[0]
    return f"{member.task}: has no {metric or 'figure'}"


def _mean(present: list[tuple[SuiteMember, Mapping[str, Any]]]) -> dict[str, Any]:
    weights = sum(member.weight for member, _ in present)
    if not weights:
        return {"value": None, "stderr": None, "ci95": None}
    value = sum(member.weight * member.scale * estimate["value"] for member, estimate in present) / weights
    found = [(member.weight * member.scale / weights, estimate) for member, estimate in present]
    known = all(estimate["stderr"] is not None for _, estimate in found)
    stderr = math.sqrt(math.fsum((share * one["stderr"]) ** 2 for share, one in found)) if known else None
    bounded = [(share, one["value"], bounds) for share, one in found if (bounds := _bounds(one)) is not None]
    return {
        "value": value,
        "stderr": stderr,
        "ci95": list(sum_interval(bounded)) if len(bounded) == len(found) else None,
    }


def _bounds(estimate: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return a member's interval; of figures that have only an error, the normal one."""
    if estimate["ci95"] is not None:
        low, high = estimate["ci95"]
        return low, high
    value, stderr = estimate["value"], estimate["stderr"]
    return (value - Z95 * stderr, value + Z95 * stderr) if stderr else None


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
            "servers": _servers(answerers := read_table(reader.meta)),
            "answerers": [msgspec.to_builtins(row) for row in answerers],
            "adjusted": reader.meta("adjusted") or [],
            "warnings": reader.meta("warnings") or [],
        }
        | {name: told for name in ("replicas", "duplicates") if (told := reader.meta(name))}
        | stated_calibration(header.config),
        "model": header.model,
        "tasks": tasks,
        "suites": suite_figures(tasks),
        "usage": usage,
        "versions": header.versions,
        **({"continued_with": told} if (told := reader.meta("continued_with")) else {}),
        "status": _status(reader, header),
    }


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
    notes = [*counts.beside_card(), *headline_note(scored.task, stated), *figures_left_out(whole)]
    sure = describe_sureness(scored)
    parts = {name: found for name, (found, _) in told_by.items() if found}
    notes += [note for found in parts.values() for note in found.get("notes", ())]
    notes += notes_on(scored.tables)
    return result | {"notes": notes, "right_answers": right_answers(scored, stated["headline"])} | stated | parts | sure


def _by_variant(tables: Mapping[str, ScoreTable], counts: TaskCounts) -> dict[str, dict[str, Any]]:
    """Return the figures of each variant, arms too, which are no part of the figures of the task."""
    found: dict[str, dict[str, Any]] = {}
    for table in tables.values():
        for value, estimates in group_estimates(table, "variant", counts).items():
            found.setdefault(value, {}).update(msgspec.to_builtins(estimates))
    return found


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
    few = [key for key, (_, values) in table.tags.items() if 2 <= len(values) <= MOST_GROUPS and key not in REGIONS]
    keys = list(task.group_by) or few
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

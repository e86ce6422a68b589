"""What judges said of a run to its results: their account, figures that rest on them, and people's labels of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from ...core.tasks import RunHeader, Task
from ...core.types import Estimate, TrialKey
from ...stats.agreement import Agreement
from ...stats.intervals import Floats, estimate_ratio
from ...stats.prediction_powered import FEWEST_LABELS, prediction_powered_mean
from ...store.reader import RunReader
from ..aggregates.counts import TaskCounts
from ..aggregates.headline import PEER, main_metric, quoted_metric
from ..aggregates.quoted_figures import figures as quoted_figures
from ..protocols.readings import judge_folders
from ..tables.table import ScoredTask, ScoreTable
from .judge_card import PAIR, Judge
from .labels import (
    LabelsByPerson,
    check_draw,
    draw_order,
    labels_file,
    people_account,
    people_labels,
    people_notes,
    settle_people,
)
from .verdicts import REFERENCE, stored_judge

CALIBRATED, RELATIVE = "_calibrated", "_relative"
"""What follows a judge's metric: corrected by people's labels; the answer's grades over the reference's."""
Tables = Mapping[str, ScoreTable]


def add_judges(
    result: dict[str, Any], reader: RunReader, task: Task, tables: Tables, header: RunHeader
) -> dict[str, Any]:
    """Add to a task's results, for each judge that was asked: its account, figures that rest on it, and notes."""
    for folder in judge_folders(reader.folder):
        with RunReader(folder) as votes:
            judge, model = stored_judge(votes), votes.header().model
        if judge.metric not in tables:
            continue
        account, figures = _account(judge, model, tables, reader=reader, task=task, header=header)
        result.setdefault("judges", []).append(account)
        settled = TaskCounts(tables[judge.metric], task, header).settle_all(figures)
        result["metrics"] |= msgspec.to_builtins(settled)
        result["notes"] = [*result.get("notes", []), *account["notes"]]
    return result


def _account(
    judge: Judge, model: str, tables: Tables, *, reader: RunReader, task: Task, header: RunHeader
) -> tuple[dict[str, Any], dict[str, Estimate]]:
    table = tables[judge.metric]
    account: dict[str, Any] = {
        "judge": judge.name,
        "metric": judge.metric,
        "model": model,
        "votes": judge.votes,
        "published_judge": judge.default_model,
        "comparable": is_published_judge(judge, model) if judge.default_model else None,
        "agreement": agreement_with_rule(judge, tables, quoted_metric(task)),
    }
    figures = judged_figures(judge, task, tables, header.planned.get(task.name))
    if judge.verdict == PAIR:
        figures[f"{judge.metric}{RELATIVE}"] = _relative(table, tables[f"{judge.metric}{REFERENCE}"])
    labels, corrected = _calibrated(judge, reader, task, table, header)
    if labels is not None:
        account["labels"] = labels
        figures[f"{judge.metric}{CALIBRATED}"] = corrected
    return account | {"notes": list(_notes(judge, account, table))}, figures


def is_published_judge(judge: Judge, model: str) -> bool:
    """Tell whether a model is the one that judged the published numbers, whoever serves it."""
    return model.rpartition("/")[2].casefold() == judge.default_model.rpartition("/")[2].casefold()


def judged_figures(judge: Judge, task: Task, tables: Tables, planned: int | None) -> dict[str, Estimate]:
    """Return the figures that a benchmark is quoted by, made of the verdicts instead of the rule's scores."""
    rule = _rule_metric(judge, tables, quoted_metric(task))
    if not any(figure.metric == rule for figure in task.figures):
        return {}
    own = [structs.replace(one, metric=judge.metric if one.metric == rule else one.metric) for one in task.figures]
    judged = ScoredTask(
        structs.replace(task, figures=tuple(own)), {judge.metric: tables[judge.metric]}, lambda: iter(())
    )
    found = quoted_figures(judged, {"planned_trials": planned})
    return {f"{judge.metric}_{name}": estimate for name, estimate in found.items()}


def _rule_metric(judge: Judge, tables: Tables, quoted: str) -> str:
    """Return the metric of the rule-based reader: as the judge says, else the headline of those without a judge."""
    known = [name for name in tables if not _is_of(judge, name) and not name.endswith(PEER)]
    return judge.rule or main_metric(tuple(known), quoted) or ""


def agreement_with_rule(judge: Judge, tables: Tables, quoted: str = "") -> dict[str, Any] | None:
    """Return how often a judge and the rule-based reader say the same of a reply, right or wrong; None without one."""
    rule = _rule_metric(judge, tables, quoted)
    if rule not in tables or _is_of(judge, rule):
        return None
    one, other = tables[judge.metric], tables[rule]
    both = one.read & other.read
    middle = sum(judge.bounds()) / 2.0
    said, read = one.value[both] > middle, other.value[both] > 0.5
    counts = Agreement()
    for left, right in zip(said.tolist(), read.tolist(), strict=True):
        counts.change({}, {"judge": str(left), "rule": str(right)})
    return {
        "rule": rule,
        "n": int(both.sum()),
        "same": counts.observed,
        "kappa": counts.kappa("judge", "rule")[0],
        "right_for_judge_alone": int((said & ~read).sum()),
        "right_for_rule_alone": int((~said & read).sum()),
    }


def _is_of(judge: Judge, metric: str) -> bool:
    return metric in (judge.metric, judge.without_judge, f"{judge.metric}{REFERENCE}")


def _relative(answers: ScoreTable, references: ScoreTable) -> Estimate:
    """Return the answers' grades over the references' (their ratio may pass 1), with an interval by clusters."""
    graded = answers.read & references.read
    _, codes = np.unique(answers.cluster[graded], return_inverse=True)
    sums = np.bincount(codes, weights=answers.value[graded]).astype(np.float64)
    sizes = np.bincount(codes, weights=references.value[graded]).astype(np.float64)
    scored, unscored, failed = answers.only_read.counts
    estimate = estimate_ratio(sums, sizes, bounded=False, n=scored, unscored=unscored, failed=failed)
    return structs.replace(estimate, unit="trials")


def _calibrated(
    judge: Judge, reader: RunReader, task: Task, table: ScoreTable, header: RunHeader
) -> tuple[dict[str, Any] | None, Estimate]:
    """Return what people's labels say of the judge, and its mean corrected by them; None where nobody labelled."""
    run = reader.folder
    if not labels_file(run, judge.name).is_file():
        return None, Estimate(None)
    table = table.only_read  # people label what the judge spoke of
    keys = _keys(table, task.name)
    people = _of_task(people_labels(run, judge), task.name)
    for own in people.values():
        check_draw(own, draw_order(header.id, keys))
    settled = settle_people(people, judge)
    verdicts = table.value[table.scored]
    known = _in_order(settled.labels, keys)
    seen = ~np.isnan(known)

    def corrected(labels: Floats) -> Estimate:
        return prediction_powered_mean(verdicts, labels, table.cluster[table.scored], scale=judge.bounds())

    scored, unscored, failed = table.counts
    estimate = corrected(known)
    figure = structs.replace(estimate, n=scored, unscored=unscored, failed=failed, left_out=0, unit="trials")
    account: dict[str, Any] = {"n": int(seen.sum()), "fewest": FEWEST_LABELS}
    account["same"] = float(np.mean(verdicts[seen] == known[seen])) if seen.any() else None
    account["judge_minus_people"] = float(np.mean(verdicts[seen] - known[seen])) if seen.any() else None
    account |= people_account(settled, judge)
    if settled.disputed:
        ends = [corrected(_in_order(settled.with_disputed(pick), keys)).value for pick in (min, max)]
        account["range"] = None if None in ends else ends
    return account, figure


def _of_task(people: LabelsByPerson, task: str) -> LabelsByPerson:
    own = {by: {key: value for key, value in labels.items() if key.task == task} for by, labels in people.items()}
    return {by: labels for by, labels in own.items() if labels}


def _in_order(labels: Mapping[TrialKey, float], keys: list[TrialKey]) -> Floats:
    """Return the label of every trial, NaN where it has none."""
    return np.array([labels.get(key, np.nan) for key in keys])


def _keys(table: ScoreTable, task: str) -> list[TrialKey]:
    rows = np.flatnonzero(table.scored)
    return [
        TrialKey(task, table.samples[table.sample[row]], table.variants[table.variant[row]], int(table.repeat[row]))
        for row in rows
    ]


def _notes(judge: Judge, account: Mapping[str, Any], table: ScoreTable) -> list[str]:
    """Say in words what must not be overlooked."""
    notes = []
    if account["comparable"] is False:
        said = f"{judge.metric}: judged by {account['model']}; published numbers were judged by {judge.default_model}"
        notes.append(f"{said}: not comparable with them")
    elif account["comparable"]:
        said = f"{judge.metric}: judged by {account['model']}, as published numbers were"
        notes.append(f"{said}; it is asked in Snellen's words, so small differences remain")
    void = table.counts[1]
    if void:
        said = f"{void} of {len(table)} replies have no valid verdict"
        notes.append(f"{judge.metric}: {said} and are outside the figure, not wrong")
    agreement = account["agreement"]
    if agreement and agreement["n"]:
        share = f"{100 * agreement['same']:.1f} % of {agreement['n']} replies"
        notes.append(f"{judge.metric}: the judge and the rule behind {agreement['rule']} agree on {share}")
    labels = account.get("labels")
    if labels:
        notes += people_notes(labels, judge, f"{judge.metric}{CALIBRATED}")
    if labels and labels["n"] < FEWEST_LABELS:
        fix = f"label at least {FEWEST_LABELS} (snellen judge label)"
        notes.append(f"{judge.metric}{CALIBRATED}: {labels['n']} labels are too few for an estimate; {fix}")
    return notes

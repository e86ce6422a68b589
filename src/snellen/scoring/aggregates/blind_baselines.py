"""The items of a run to what blind rules score on them: the figures that must stand beside a model's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.types import Estimate, Sample
from ...stats.intervals import estimate_mean
from ..tables.table import ScoredTask, ScoreTable
from .blind_learned import Choice, learned_credit
from .blind_rules import RULES, credit
from .chain_tables import chains_from_table
from .consistency import CHAINS

BASELINES = ("no-period", "period", "shortest", "longest", "majority")
LEARNED = "learned"
FEWEST_TO_LEARN = 20
"""Items below which a judge has nothing to learn from."""
BLIND_SUFFIX = "_blind"
FIGURES = ("Rh", "Rcot", "Ro")
Counted = dict[str, NDArray[Any]]
"""Figure -> the cluster of every chain that the model's own figure counts."""


def aggregate(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro of the blind baselines, as `Rh_no-period_blind`, on the very chains that Rh counts."""
    table = scored.tables.get("accuracy") or next(iter(scored.tables.values()), None)
    if table is None or not len(table):
        return {}
    return baselines(scored.samples(), counted=_counted(table), cluster_of=_clusters(table))


def _clusters(table: ScoreTable) -> dict[str, int]:
    return {name: int(cluster) for name, cluster in zip(table.samples, table.cluster_of_sample, strict=True)}


def _counted(table: ScoreTable) -> Counted:
    """Return which chains the figures count; where only inferences or only steps were asked, whose trials they do."""
    codes, names = table.tags["role"]
    roles = {names[code] for code in np.unique(codes[table.sample])}
    if roles == {"inference"}:
        return {"Rh": table.cluster[table.scored]}
    if len(roles) == 1:
        return {"Rcot": np.unique(table.cluster)}
    chains = chains_from_table(table)
    return {name: chains.clusters[known] for name, known in chains.known.items()}


def baselines(
    samples: Iterable[Sample],
    rules: Iterable[str] = BASELINES,
    *,
    counted: Counted | None = None,
    cluster_of: Mapping[str, int] | None = None,
) -> dict[str, Estimate]:
    """Return what rules score that read the options only, ties shared, and a judge that learns from the other items.

    `counted` names the chains to average over, by the number that `cluster_of` gives a sample; else each item once.
    """
    chains = _in_chains(samples)
    found = {rule: [_by_rule(sample, rule) for chain in chains for sample in chain] for rule in rules}
    if len(chains) >= FEWEST_TO_LEARN:
        found[LEARNED] = _by_learning(chains)
    numbers = [place if cluster_of is None else cluster_of[chain[0].id] for place, chain in enumerate(chains)]
    estimates: dict[str, Estimate] = {}
    for rule, chances in found.items():
        of_rule = _estimates(chains, chances, numbers, counted).items()
        estimates |= {f"{name}_{rule}{BLIND_SUFFIX}": estimate for name, estimate in of_rule}
    return estimates


def _in_chains(samples: Iterable[Sample]) -> list[list[Sample]]:
    items: dict[str, list[Sample]] = {}
    for sample in samples:
        items.setdefault(sample.group or sample.id, []).append(sample)
    return list(items.values())


def _estimates(
    chains: Sequence[Sequence[Sample]], chances: Sequence[float], numbers: Sequence[int], counted: Counted | None
) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro from the chance of every sample, in the order of chains; the unasked are left out."""
    given = iter(chances)
    rows = [expected([(sample, next(given)) for sample in chain]) for chain in chains]
    estimates = {}
    for name in FIGURES:
        credit_of = {number: row[name] for number, row in zip(numbers, rows, strict=True) if name in row}
        clusters = np.array(list(credit_of)) if counted is None else counted.get(name, np.empty(0, np.int64))
        values = np.array([credit_of[int(cluster)] for cluster in clusters])
        if credit_of and (counted is None or name in counted):
            estimates[name] = structs.replace(estimate_mean(values, clusters), unit=CHAINS)
    return estimates


def expected(chain: Iterable[tuple[Sample, float]]) -> dict[str, float]:
    """Return the chances of one item: inference right (Rh), all steps right (Rcot), both (Ro), as far as asked."""
    found: dict[str, float] = {}
    for sample, chance in chain:
        name = "Rh" if _is_inference(sample) else "Rcot"
        found[name] = found.get(name, 1.0) * chance
    return found | ({"Ro": math.prod(found.values())} if len(found) == 2 else {})


def _by_rule(sample: Sample, rule: str) -> float:
    return credit(sample.options, sample.options.index(sample.answers[0]), RULES[rule])


def _by_learning(chains: Sequence[Sequence[Sample]]) -> list[float]:
    """Let one judge learn the inferences and another the steps, as they are worded differently."""
    asked = [(sample, place) for place, chain in enumerate(chains) for sample in chain]
    chances = np.zeros(len(asked))
    for wanted in (True, False):
        rows = [row for row, (sample, _) in enumerate(asked) if _is_inference(sample) is wanted]
        if rows:
            choices = [_choice(asked[row][0]) for row in rows]
            chances[rows] = learned_credit(choices, [asked[row][1] for row in rows])
    return [float(chance) for chance in chances]


def _choice(sample: Sample) -> Choice:
    return Choice(sample.question, sample.options, sample.options.index(sample.answers[0]))


def _is_inference(sample: Sample) -> bool:
    return sample.tags.get("role") == "inference"

"""The items of a run to what blind rules score on them: the figures that must stand beside a model's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.types import Estimate, Sample
from ...stats.intervals import estimate_mean
from ..table import ScoredTask
from .blind_learned import Choice, learned_credit
from .blind_rules import RULES, credit

BASELINES = ("no-period", "period", "shortest", "longest", "majority")
LEARNED = "learned"
FEWEST_TO_LEARN = 20
"""Items below which a judge has nothing to learn from."""
BLIND_SUFFIX = "_blind"


def aggregate(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro of the blind baselines on the items that were asked, as `Rh_no-period_blind`."""
    return baselines({sample.id: sample for sample, _ in scored.scores()}.values())


def baselines(samples: Iterable[Sample], rules: Iterable[str] = BASELINES) -> dict[str, Estimate]:
    """Return what rules score that read the options only, ties shared, and a judge that learns from the other items."""
    items: dict[str, list[Sample]] = {}
    for sample in samples:
        items.setdefault(sample.group or sample.id, []).append(sample)
    chains = list(items.values())
    found = {rule: [_by_rule(sample, rule) for chain in chains for sample in chain] for rule in rules}
    if len(chains) >= FEWEST_TO_LEARN:
        found[LEARNED] = _by_learning(chains)
    estimates: dict[str, Estimate] = {}
    for rule, chances in found.items():
        of_rule = _estimates(chains, chances).items()
        estimates |= {f"{name}_{rule}{BLIND_SUFFIX}": estimate for name, estimate in of_rule}
    return estimates


def _estimates(chains: Sequence[Sequence[Sample]], chances: Sequence[float]) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro from the chance of every sample, in the order of chains; the unasked are left out."""
    given = iter(chances)
    rows = [expected([(sample, next(given)) for sample in chain]) for chain in chains]
    columns = {name: np.array([row[name] for row in rows if name in row]) for name in ("Rh", "Rcot", "Ro")}
    return {name: estimate_mean(values) for name, values in columns.items() if values.size}


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

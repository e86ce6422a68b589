"""The items of a run to what blind rules score on them: the figures that must stand beside a model's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.types import Estimate, Sample
from .blind_rules import RULES, Preference, credit
from .run import ScoredTask
from .stats import estimate_mean

BASELINES = ("no-period", "period", "shortest", "longest", "majority")
BLIND_SUFFIX = "_blind"


def aggregate(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro of the blind baselines on the items that were asked, as `Rh_no-period_blind`."""
    return baselines({sample.id: sample for sample, _ in scored.scores()}.values())


def baselines(samples: Iterable[Sample], rules: Iterable[str] = BASELINES) -> dict[str, Estimate]:
    """Return what rules score that read the options only, in expectation over ties."""
    items: dict[str, list[Sample]] = {}
    for sample in samples:
        items.setdefault(sample.group or sample.id, []).append(sample)
    estimates: dict[str, Estimate] = {}
    for rule in rules:
        found = [expected(chain, RULES[rule]) for chain in items.values()]
        for name in ("Rh", "Rcot", "Ro"):
            values = np.array([item[name] for item in found if name in item])
            if values.size:
                estimates[f"{name}_{rule}{BLIND_SUFFIX}"] = estimate_mean(values)
    return estimates


def expected(chain: Iterable[Sample], preference: Preference) -> dict[str, float]:
    """Return the chances of one item: inference right (Rh), all steps right (Rcot), both (Ro), as far as they were asked."""
    inference: float | None = None
    steps: list[float] = []
    for sample in chain:
        chance = credit(sample.options, sample.options.index(sample.answers[0]), preference)
        if sample.tags.get("role") == "inference":
            inference = chance
        else:
            steps.append(chance)
    found = {} if inference is None else {"Rh": inference}
    if steps:
        found["Rcot"] = math.prod(steps)
    return found | ({"Ro": found["Rh"] * found["Rcot"]} if len(found) == 2 else {})

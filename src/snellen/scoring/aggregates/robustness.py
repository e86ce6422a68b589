"""Trials of perturbed variants in, robustness out: the curve over severity, what is retained, where the model breaks.

A variant `perturb=jpeg:3` is family `jpeg` at severity 3; `base` is severity 0 of every family. Everything is paired:
a family's curve is drawn over the questions that have a scored base trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.types import BASE_VARIANT, Estimate
from ...stats.intervals import Floats, cluster_totals, estimate_mean
from ..tables.table import Codes, ScoredTask, ScoreTable, lower_is_better
from .means import in_unit

Matrix = NDArray[np.float64]
DISTURBING = ("perturb", "tempo")
"""Axes of variants that make it harder to see, in severities: pictures, and the time of videos."""
_LEVEL = re.compile(r"^(?P<family>[^:&=]+):(?P<severity>\d+(?:\.\d+)?)(?::.*)?$")


class Ladder(Struct, frozen=True):
    """One family of perturbation: mean of every question (rows) at every severity (columns), NaN where not asked."""

    family: str
    severities: tuple[float, ...]
    values: Matrix
    clusters: Codes


def read_level(variant: str, axis: str = "") -> tuple[str, float] | None:
    """Return (family, severity) of a variant that only differs from base along `axis`; None for any other.

    Without an axis: along one of those that disturb what is seen.
    """
    name, _, level = variant.partition("=")
    match = _LEVEL.match(level) if name in ((axis,) if axis else DISTURBING) else None
    return (match["family"], float(match["severity"])) if match else None


def ladders(table: ScoreTable, axis: str = "") -> Iterator[Ladder]:
    """Yield each family with the questions that have a scored base trial and at least one scored level."""
    levels = {code: level for code, variant in enumerate(table.variants) if (level := read_level(variant, axis))}
    base = _question_values(table, [code for code, variant in enumerate(table.variants) if variant == BASE_VARIANT])
    for family in sorted({family for family, _ in levels.values()}):
        severities = sorted({severity for name, severity in levels.values() if name == family and severity > 0.0})
        chosen = ([code for code, level in levels.items() if level == (family, severity)] for severity in severities)
        values = np.column_stack([base, *(_question_values(table, codes) for codes in chosen)])
        kept = np.isfinite(values[:, 0]) & np.isfinite(values[:, 1:]).any(axis=1)
        yield Ladder(family, (0.0, *severities), values[kept], table.cluster_of_sample[: values.shape[0]][kept])


def _question_values(table: ScoreTable, variants: list[int]) -> Floats:
    rows = table.scored & np.isin(table.variant, variants)
    size = len(table.samples)
    count = np.bincount(table.sample[rows], minlength=size)
    total = np.bincount(table.sample[rows], weights=table.value[rows], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def curve(ladder: Ladder) -> dict[float, Estimate]:
    """Return the mean at every severity."""
    return {severity: _column(ladder, column) for column, severity in enumerate(ladder.severities)}


def _column(ladder: Ladder, column: int) -> Estimate:
    seen = np.isfinite(ladder.values[:, column])
    return estimate_mean(ladder.values[seen, column], ladder.clusters[seen])


def retention(ladder: Ladder, chance: float = 0.0) -> dict[float, Estimate]:
    """Return (mean at severity - chance) / (mean at base - chance) for every severity, over questions asked at both.

    None where base is not above chance: there is nothing to retain.
    """
    return {severity: _retained(ladder, column, chance) for column, severity in enumerate(ladder.severities) if column}


def _retained(ladder: Ladder, column: int, chance: float) -> Estimate:
    from ...stats.bootstrap import bootstrap_interval

    seen = np.isfinite(ladder.values[:, column])
    clusters = ladder.clusters[seen]
    level, count = cluster_totals(ladder.values[seen, column], clusters)
    base, _ = cluster_totals(ladder.values[seen, 0], clusters)
    above, base_above = level.sum() - chance * count.sum(), base.sum() - chance * count.sum()
    if base_above <= 1e-12 * max(1.0, float(count.sum())):
        return Estimate(None, n=int(seen.sum()))
    columns = np.column_stack([level - chance * count, base - chance * count])
    return Estimate(
        float(above / base_above), ci95=bootstrap_interval(columns, _positive_ratio, "retention"), n=int(seen.sum())
    )


def _positive_ratio(totals: Matrix) -> Floats:
    return np.where(totals[:, 1] > 1e-12, totals[:, 0] / np.where(totals[:, 1] > 1e-12, totals[:, 1], 1.0), np.nan)


def worst_case(ladder: Ladder, *, errors: bool = False) -> Estimate:
    """Return the mean over questions of the lowest value at any severity, base included; of errors the highest."""
    worst = np.nanmax if errors else np.nanmin
    return estimate_mean(worst(ladder.values, axis=1) if ladder.values.size else np.empty(0), ladder.clusters)


def flips(ladder: Ladder) -> dict[str, Estimate]:
    """Return the shares of (question, severity) whose value fell below or rose above that of base."""
    rows, columns = np.nonzero(np.isfinite(ladder.values[:, 1:]))
    change = ladder.values[rows, columns + 1] - ladder.values[rows, 0]
    clusters = ladder.clusters[rows]
    return {
        "lost": estimate_mean((change < 0.0).astype(np.float64), clusters),
        "gained": estimate_mean((change > 0.0).astype(np.float64), clusters),
    }


def critical_severity(ladder: Ladder, chance: float = 0.0) -> Estimate:
    """Return the severity at which the fitted curve has lost half of what base has above chance.

    None where the curve does not get there rising in severity, or lies beyond ten times the severities asked.
    """
    from ...stats.logistic import fit_curve, threshold_interval

    base = float(ladder.values[:, 0].mean()) if ladder.values.size else 0.0
    lapse = min(0.99 - chance, max(0.0, 1.0 - base))
    if base <= chance or len(ladder.severities) < 3 or lapse < 0.0:
        return Estimate(None, n=int(ladder.values.shape[0]))
    right, trials = _totals(ladder)
    x = np.array(ladder.severities)
    threshold = chance + (base - chance) / 2.0
    fitted = fit_curve(x, right.sum(axis=0), trials.sum(axis=0), guess=chance, lapse=lapse)
    where = fitted.where(threshold) if fitted is not None and fitted.slope < 0.0 else None
    if where is None or not 0.0 <= where <= 10.0 * ladder.severities[-1]:
        return Estimate(None, n=int(ladder.values.shape[0]))
    interval = threshold_interval(x, right, trials, threshold, guess=chance, lapse=lapse)
    return Estimate(where, ci95=interval, n=int(ladder.values.shape[0]))


def _totals(ladder: Ladder) -> tuple[Matrix, Matrix]:
    """Return per cluster the sum of values and the number of them at every severity; values beyond [0, 1] are cut."""
    seen = np.isfinite(ladder.values)
    values = np.clip(np.where(seen, ladder.values, 0.0), 0.0, 1.0)
    _, codes = np.unique(ladder.clusters, return_inverse=True)
    columns = range(values.shape[1])
    right = np.column_stack([np.bincount(codes, weights=values[:, column]) for column in columns])
    trials = np.column_stack([np.bincount(codes, weights=seen[:, column]) for column in columns])
    return right.astype(np.float64), trials.astype(np.float64)


def aggregate(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return for every family `<family>_<severity>`, retention, worst case, flips and critical severity.

    Of errors (`wer`) what is retained, lost and half gone is 1 - min(1, error): more errors are no gain.
    Options: `chance` (default 0), `axis` (default: `perturb` and `tempo`).
    """
    chosen = options or {}
    chance, axis, errors = float(chosen.get("chance", 0.0)), str(chosen.get("axis", "")), lower_is_better(table.metric)
    estimates: dict[str, Estimate] = {}
    pairs: dict[str, Estimate] = {}
    for ladder, good in zip(ladders(table, axis), ladders(as_worth(table) if errors else table, axis), strict=True):
        name = ladder.family
        estimates |= {f"{table.metric}_{name}_{severity:g}": value for severity, value in curve(ladder).items()}
        estimates |= {f"retention_{name}_{severity:g}": value for severity, value in retention(good, chance).items()}
        estimates[f"{table.metric}_{name}_worst"] = worst_case(ladder, errors=errors)
        pairs |= in_unit(f"pairs of {name}", {f"{kind}_{name}": value for kind, value in flips(good).items()})
        estimates[f"critical_severity_{name}"] = critical_severity(good, chance)
    return in_unit("questions", estimates) | pairs


def perturbed(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the robustness of a task's accuracy, or of its first metric; options as `aggregate` has them."""
    return {} if scored.main is None else aggregate(scored.main, options)


def as_worth(table: ScoreTable) -> ScoreTable:
    """Return a table of errors as what is left without them, 1 - min(1, error): what can be retained and lost."""
    return replace(table, value=np.where(table.scored, 1.0 - np.minimum(table.value, 1.0), 0.0))

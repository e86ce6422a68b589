"""Two ScoreTables of the same questions in, their paired difference out: interval, exact test, flipped samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...stats.bootstrap import difference_interval, difference_p_value, swap_p_value
from ...stats.intervals import Floats, cluster_totals, holm, mcnemar
from ..table import ScoreTable, lower_is_better
from .divergence import STAGES, Fingerprint, Key, divergences, earliest

TEST_DRAWS = 10_000
Means = dict[tuple[str, str], tuple[float, int]]
"""(sample, variant) -> mean value, number of trials."""


class RunSide(Struct, frozen=True):
    """One run as a comparison sees it."""

    name: str
    table: ScoreTable
    fingerprints: Mapping[Key, Fingerprint] = {}


class Flip(Struct, frozen=True):
    """A sample on which two runs differ, and the first stage at which they part."""

    sample: str
    first: float
    second: float
    divergence: str | None = None


class Comparison(Struct, frozen=True):
    """The second run against the first, on the questions and variants both have."""

    metric: str
    first: str
    second: str
    first_value: float | None
    second_value: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    """Paired bootstrap, questions of one cluster drawn together."""
    p: float | None
    """Exact: McNemar for one 0/1 trial a question, else the paired randomisation test by cluster."""
    test: str
    p_bootstrap: float | None
    p_adjusted: float | None = None
    """Holm, over all pairs of the comparison."""
    paired: int = 0
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    not_scored: tuple[int, int] = (0, 0)
    """Trials of each run without a score; they count as 0 (errors as 1) unless only scored ones are compared."""
    better: tuple[Flip, ...] = ()
    worse: tuple[Flip, ...] = ()
    divergence: dict[str, int] = {}
    """How many paired samples part at which stage."""


class _Paired(Struct, frozen=True):
    samples: tuple[str, ...]
    first: Floats
    second: Floats
    clusters: NDArray[np.int32]
    single: bool
    """One 0/1 trial a question in both runs, and every question its own cluster."""


def compare_all(sides: Sequence[RunSide], *, scored_only: bool = False) -> list[Comparison]:
    """Compare every pair of runs, p-values adjusted over all pairs."""
    results = [compare_pair(first, second, scored_only=scored_only) for first, second in combinations(sides, 2)]
    adjusted = holm([result.p for result in results])
    return [msgspec.structs.replace(result, p_adjusted=p) for result, p in zip(results, adjusted, strict=True)]


def compare_pair(first: RunSide, second: RunSide, *, scored_only: bool = False) -> Comparison:
    """Compare two runs on the samples (and, within a sample, the variants) that both have."""
    left, right = _cells(first.table, scored_only), _cells(second.table, scored_only)
    paired = _pair(first.table, left, right)
    known_left, known_right = {sample for sample, _ in left}, {sample for sample, _ in right}
    unpaired = known_left ^ known_right | (known_left & known_right) - set(paired.samples)
    difference, interval, p, test, p_bootstrap = _test(paired)
    stages = _stages(first, second)
    flips, lower = _flips(paired, stages), lower_is_better(first.table.metric)
    return Comparison(
        metric=first.table.metric,
        first=first.name,
        second=second.name,
        first_value=_mean(paired.first),
        second_value=_mean(paired.second),
        difference=difference,
        ci95=interval,
        p=p,
        test=test,
        p_bootstrap=p_bootstrap,
        paired=len(paired.samples),
        only_first=tuple(sorted(unpaired & known_left)),
        only_second=tuple(sorted(unpaired & known_right)),
        not_scored=(int((~first.table.scored).sum()), int((~second.table.scored).sum())),
        better=tuple(flip for flip in flips if (flip.second < flip.first) == lower),
        worse=tuple(flip for flip in flips if (flip.second > flip.first) == lower),
        divergence=_count(stages, paired.samples),
    )


def _cells(table: ScoreTable, scored_only: bool) -> Means:
    """Return the mean value and the number of trials of every (sample, variant)."""
    part = table.take(table.scored) if scored_only else table
    if not len(part):
        return {}
    starts = np.flatnonzero(np.r_[True, (np.diff(part.sample) != 0) | (np.diff(part.variant) != 0)])
    sizes = np.diff(np.r_[starts, len(part)])
    means = np.add.reduceat(part.strict_value, starts) / sizes
    names = zip(part.sample[starts].tolist(), part.variant[starts].tolist(), strict=True)
    keys = [(part.samples[sample], part.variants[variant]) for sample, variant in names]
    return dict(zip(keys, zip(means.tolist(), sizes.tolist(), strict=True), strict=True))


def _pair(table: ScoreTable, left: Means, right: Means) -> _Paired:
    common = sorted(left.keys() & right.keys())
    samples = sorted({sample for sample, _ in common})
    place = {sample: i for i, sample in enumerate(samples)}
    rows = np.array([place[sample] for sample, _ in common], dtype=np.int64)
    first, second = (_sample_means(side, common, rows, len(samples)) for side in (left, right))
    code = {sample: i for i, sample in enumerate(table.samples)}
    clusters = table.cluster_of_sample[[code[sample] for sample in samples]]
    one_trial = all(left[key][1] == right[key][1] == 1 for key in common)
    apart = np.unique(clusters).size == clusters.size == len(common)
    return _Paired(
        tuple(samples), first, second, clusters, one_trial and apart and _is_binary(np.concatenate([first, second]))
    )


def _sample_means(side: Means, keys: Sequence[tuple[str, str]], rows: NDArray[np.int64], samples: int) -> Floats:
    values = np.array([side[key][0] for key in keys], dtype=np.float64)
    return np.bincount(rows, weights=values, minlength=samples) / np.maximum(np.bincount(rows, minlength=samples), 1)


def _is_binary(values: Floats) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))


def _test(paired: _Paired) -> tuple[float | None, tuple[float, float] | None, float | None, str, float | None]:
    if not paired.samples:
        return None, None, None, "none: no common samples", None
    change = paired.second - paired.first
    sums, sizes = cluster_totals(change, paired.clusters)
    interval = difference_interval(sums, sizes, "compare")
    p_bootstrap = difference_p_value(sums, sizes, "compare")
    if paired.single:
        p, test = mcnemar(int((change < 0).sum()), int((change > 0).sum())), "McNemar exact"
    else:
        p, test = swap_p_value(sums, "compare", draws=TEST_DRAWS), "paired randomisation"
    return float(change.mean()), interval, p, test, p_bootstrap


def _stages(first: RunSide, second: RunSide) -> dict[str, str]:
    by_sample: dict[str, list[str]] = {}
    for (sample, _, _), stage in divergences(first.fingerprints, second.fingerprints).items():
        by_sample.setdefault(sample, []).append(stage)
    return {sample: earliest(stages) for sample, stages in by_sample.items()}


def _flips(paired: _Paired, stages: Mapping[str, str]) -> list[Flip]:
    rows = np.flatnonzero(paired.first != paired.second).tolist()
    return [
        Flip(paired.samples[i], float(paired.first[i]), float(paired.second[i]), stages.get(paired.samples[i]))
        for i in rows
    ]


def _count(stages: Mapping[str, str], samples: Sequence[str]) -> dict[str, int]:
    seen = [stages[sample] for sample in samples if sample in stages]
    return {stage: seen.count(stage) for stage in (*STAGES, "same") if stage in seen}


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None

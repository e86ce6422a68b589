"""Two ScoreTables of the same questions in, their paired difference out: interval, exact test, flipped samples."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...stats.bootstrap import difference_p_value, swap_p_value
from ...stats.intervals import Floats, cluster_totals, holm, mcnemar
from ...stats.paired import paired_difference
from ..tables.table import Codes, ScoreTable, lower_is_better
from ..tables.table_builder import codes_in
from .divergence import ENDS, StageMarks

TEST_DRAWS = 10_000


class RunSide(Struct, frozen=True):
    """One run as a comparison sees it."""

    name: str
    table: ScoreTable
    marks: StageMarks | None = None


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
    """Trials of each run that were not read; they count as 0 (errors as 1) unless only those that were are compared."""
    outside: tuple[int, int] = (0, 0)
    """Trials of each run that are no part of the comparison: failed, or nobody can judge them."""
    better: tuple[Flip, ...] = ()
    worse: tuple[Flip, ...] = ()
    divergence: dict[str, int] = {}
    """How many paired samples part at which stage."""


class _Cells(NamedTuple):
    """Every (sample, variant) of a run in sorted order, by the codes of its table."""

    table: ScoreTable
    sample: Codes
    variant: Codes
    mean: Floats
    trials: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.int64]:
        """Return the samples that have a trial."""
        return np.unique(self.sample).astype(np.int64)


class _Paired(Struct, frozen=True):
    samples: tuple[str, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    """Samples of each run that have no partner in the other."""
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
    """Compare two runs on the samples (and, within a sample, the variants) that both have a reply to.

    What was not read is not right, as in the runs' own headlines; `scored_only` leaves it out.
    """
    paired = _pair(_cells(first.table, scored_only), _cells(second.table, scored_only))
    difference, interval, p, test, p_bootstrap = _test(paired)
    stages = first.marks.parting(second.marks) if first.marks and second.marks else {}
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
        only_first=paired.only[0],
        only_second=paired.only[1],
        not_scored=(_unread(first.table), _unread(second.table)),
        outside=(int((~first.table.scored).sum()), int((~second.table.scored).sum())),
        better=tuple(flip for flip in flips if (flip.second < flip.first) == lower),
        worse=tuple(flip for flip in flips if (flip.second > flip.first) == lower),
        divergence=_count(stages, paired.samples),
    )


def _unread(table: ScoreTable) -> int:
    return int((table.unread & table.scored).sum())


def _cells(table: ScoreTable, scored_only: bool) -> _Cells:
    """Return the mean value and the number of trials of every (sample, variant) of which something counts."""
    part = table.take(table.read if scored_only else table.scored)
    if not len(part):
        return _Cells(part, part.sample, part.variant, np.empty(0), np.empty(0, np.int64))
    starts = np.flatnonzero(np.r_[True, (np.diff(part.sample) != 0) | (np.diff(part.variant) != 0)])
    sizes = np.diff(np.r_[starts, len(part)])
    means = np.add.reduceat(part.value, starts) / sizes
    return _Cells(part, part.sample[starts], part.variant[starts], means, sizes)


def _pair(left: _Cells, right: _Cells) -> _Paired:
    """Lay the cells side by side that both runs have; samples and variants are the same by name."""
    ours, theirs = _shared_cells(left, right)
    codes, place = np.unique(left.sample[ours], return_inverse=True)
    first, second = _sample_means(left.mean[ours], place), _sample_means(right.mean[theirs], place)
    alone = np.setdiff1d(left.known, codes), np.setdiff1d(right.known, right.sample[theirs])
    only = _named(left.table, alone[0]), _named(right.table, alone[1])
    clusters = left.table.cluster_of_sample[codes]
    one_trial = bool(np.all(left.trials[ours] == 1) and np.all(right.trials[theirs] == 1))
    apart = np.unique(clusters).size == clusters.size == ours.size
    single = one_trial and apart and _is_binary(np.concatenate([first, second]))
    return _Paired(_named(left.table, codes), only, first, second, clusters, single)


def _shared_cells(left: _Cells, right: _Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the cells that both have, sorted by the names of sample and variant."""
    sample = codes_in(_numbered(left.table.samples), right.table.samples)[right.sample]
    variant = codes_in(_numbered(left.table.variants), right.table.variants)[right.variant]
    known, width = np.flatnonzero((sample >= 0) & (variant >= 0)), len(left.table.variants)
    ours = left.sample.astype(np.int64) * width + left.variant
    theirs = sample[known] * width + variant[known]
    _, first, second = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return first, known[second]


def _numbered(book: Sequence[str]) -> dict[Hashable, int]:
    return {text: code for code, text in enumerate(book)}


def _named(table: ScoreTable, codes: NDArray[np.integer[Any]]) -> tuple[str, ...]:
    return tuple(table.samples[code] for code in codes.tolist())


def _sample_means(values: Floats, place: NDArray[np.int64]) -> Floats:
    """Return the mean over the variants of each sample."""
    return np.bincount(place, weights=values) / np.maximum(np.bincount(place), 1)


def _is_binary(values: Floats) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))


def _test(paired: _Paired) -> tuple[float | None, tuple[float, float] | None, float | None, str, float | None]:
    if not paired.samples:
        return None, None, None, "none: no common samples", None
    change = paired.second - paired.first
    sums, sizes = cluster_totals(change, paired.clusters)
    p_bootstrap = difference_p_value(sums, sizes, "compare")
    if paired.single:
        p, test = mcnemar(int((change < 0).sum()), int((change > 0).sum())), "McNemar exact"
    else:
        p, test = swap_p_value(sums, "compare", draws=TEST_DRAWS), "paired randomisation"
    found = paired_difference(paired.first, paired.second, paired.clusters, "compare", single=paired.single)
    return found.value, found.ci95, p, test, p_bootstrap


def _flips(paired: _Paired, stages: Mapping[str, str]) -> list[Flip]:
    rows = np.flatnonzero(paired.first != paired.second).tolist()
    return [
        Flip(paired.samples[i], float(paired.first[i]), float(paired.second[i]), stages.get(paired.samples[i]))
        for i in rows
    ]


def _count(stages: Mapping[str, str], samples: Sequence[str]) -> dict[str, int]:
    seen = [stages[sample] for sample in samples if sample in stages]
    return {stage: seen.count(stage) for stage in ENDS if stage in seen}


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None

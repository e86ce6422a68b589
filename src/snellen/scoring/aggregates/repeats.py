"""Several inferences of the same prompt in, what they say together out: votes, pass@k, spread of runs, disagreement.

A cell is one question in one variant. A missing inference is simply not among a cell's trials: nothing is renumbered,
and a cell with fewer replies than a metric needs is counted as unscored by that metric. A reply without a readable
answer is one of the replies: it is not right, and it has no vote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.types import Estimate
from ...stats.intervals import Floats, estimate_mean
from ..tables.table import Outcome, ScoreTable, worst_value
from .means import mean, split, with_bounds
from .votes import Ballots, count_ballots, disagreement, entropy, expected_vote, majority

Counts = NDArray[np.int64]


class Cells:
    """The cells of a table: which trials each holds, and which question each belongs to."""

    def __init__(self, table: ScoreTable, unit: str = "prompts") -> None:
        self._unit = unit
        first = len(table) > 0  # no cell begins in an empty table
        starts = np.flatnonzero(np.r_[first, (np.diff(table.sample) != 0) | (np.diff(table.variant) != 0)])
        self.number = starts.size
        self.of_trial: Counts = np.repeat(np.arange(starts.size), np.diff(np.r_[starts, len(table)]))
        self.sample = table.sample[starts]
        replied = np.bincount(self.of_trial[~table.failed], minlength=starts.size)
        self._failed = replied == 0
        self._cluster_of_sample = table.cluster_of_sample

    def estimate(self, values: Floats, *, is_share: bool = True) -> Estimate:
        """Return the mean over questions of the mean over their cells.

        NaN cells are unscored, or failed where no trial of the cell has a reply.
        """
        defined = np.isfinite(values)
        samples, kept = self.sample[defined], values[defined]
        failed = int(np.count_nonzero(~defined & self._failed))
        unscored = int(values.size - kept.size) - failed
        if not kept.size:
            return Estimate(None, unscored=unscored, failed=failed, unit=self._unit)
        starts = np.flatnonzero(np.r_[True, np.diff(samples) != 0])
        means = np.add.reduceat(kept, starts) / np.diff(np.r_[starts, samples.size])
        clusters = self._cluster_of_sample[samples[starts]]
        counts = {"n": int(kept.size), "unscored": unscored, "failed": failed}
        estimate = estimate_mean(means, clusters, **counts, is_share=is_share)
        bounds = estimate.ci95
        if bounds is not None and bounds[0] < 0.0 <= kept.min():  # no entropy is less than nothing
            bounds = (0.0, bounds[1])
        return structs.replace(estimate, ci95=bounds, unit=self._unit)


def pass_at_k(right: Counts, trials: Counts, k: int) -> Floats:
    """Return 1 - C(n-c, k)/C(n, k) for each cell: the unbiased chance that one of k is right; NaN where n < k."""
    return _with_enough(trials, k, 1.0 - _all_of(trials - right, trials, k))


def pass_all_k(right: Counts, trials: Counts, k: int) -> Floats:
    """Return C(c, k)/C(n, k) for each cell (pass^k): the unbiased chance that all of k are right; NaN where n < k."""
    return _with_enough(trials, k, _all_of(right, trials, k))


def _all_of(chosen: Counts, trials: Counts, k: int) -> Floats:
    """Return C(chosen, k)/C(trials, k) as a product, which neither overflows nor cancels."""
    result = np.ones(chosen.shape)
    for i in range(k):
        result *= np.maximum(chosen - i, 0) / np.maximum(trials - i, 1)
    return result


def _with_enough(trials: Counts, k: int, values: Floats) -> Floats:
    return np.where(trials >= k, values, np.nan)


def aggregate(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return the mean (per question and per inference) and all that several inferences add.

    Options: `k` (list; default 2, 4 … up to the most inferences of a cell that count), `correct_at` (the value from
    which a trial is right, for metrics that are not 0/1).
    """
    chosen = options or {}
    cells = Cells(table)
    estimates = mean(table)
    estimates |= _answers(table, cells, chosen)
    estimates |= _passes(table, cells, chosen)
    estimates[f"{table.metric}_run_std"] = run_spread(table)
    return estimates


def _answers(table: ScoreTable, cells: Cells, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the metrics that need answers to be compared: none where the scorer stores no answers."""
    if not len(table.answers):
        return {}
    votes = count_ballots(table, cells.of_trial, cells.number, none_votes=False)
    won, voted = majority(votes)
    replies = np.bincount(cells.of_trial[table.scored], minlength=cells.number)
    nothing = worst_value(table.metric)
    vote = np.where(replies > 0, np.nan if nothing is None else nothing, np.nan)
    vote[voted] = won
    estimates = {f"{table.metric}_majority": cells.estimate(vote)}
    for k in _sizes(replies, options):
        estimates[f"cons@{k}"] = cells.estimate(expected_vote(votes, k, replies - votes.totals, nothing or 0.0))
    return estimates | _spread(count_ballots(table, cells.of_trial, cells.number, none_votes=True), cells)


def _spread(ballots: Ballots, cells: Cells) -> dict[str, Estimate]:
    return {
        "answer_entropy": cells.estimate(entropy(ballots), is_share=False),
        "flip_rate": cells.estimate(disagreement(ballots)),
    }


def _passes(table: ScoreTable, cells: Cells, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return pass@k and pass^k with their bounds; they need trials that are right or wrong.

    All k are counted over the same cells, those with as many replies as the largest k takes: over more cells for the
    smaller k, pass@k could fall as k grows.
    """
    bar = options.get("correct_at")
    values = table.value[table.scored]
    if bar is None and not bool(np.all((values == 0.0) | (values == 1.0))):
        return {}
    replies = np.bincount(cells.of_trial[table.scored], minlength=cells.number)
    sizes = _sizes(replies, options)

    def of(view: ScoreTable) -> dict[str, Estimate]:
        is_right = view.outcome == Outcome.RIGHT if bar is None else view.scored & (view.value >= float(bar))
        right = np.bincount(cells.of_trial[is_right], minlength=cells.number)
        trials = np.bincount(cells.of_trial[view.scored], minlength=cells.number)
        needed = max((k for k in sizes if k <= trials.max(initial=0)), default=0)
        whole = np.where(trials >= needed, trials, 0)
        passed = {f"pass@{k}": cells.estimate(pass_at_k(right, whole, k)) for k in sizes}
        return passed | {f"pass^{k}": cells.estimate(pass_all_k(right, whole, k)) for k in sizes}

    return with_bounds(table, of)


def _sizes(trials: Counts, options: Mapping[str, Any]) -> Sequence[int]:
    """Return the k to report: as asked, or 2, 4, 8 … and the largest number of trials in a cell."""
    if options.get("k"):
        return [int(k) for k in options["k"]]
    largest = int(trials.max(initial=0))
    powers = [2**i for i in range(1, largest.bit_length())]
    return sorted({k for k in [*powers, largest] if 1 < k <= largest})


def run_spread(table: ScoreTable) -> Estimate:
    """Return the standard deviation of the means of whole runs (the i-th inference of every question); n: runs."""
    parts = [part for _, part in split(table, "repeat")]
    means = [float(part.value[part.scored].mean()) for part in parts if part.scored.any()]
    failed = sum(bool(part.failed.all()) for part in parts)
    value = float(np.std(means, ddof=1)) if len(means) > 1 else None
    return Estimate(value, n=len(means), unscored=len(parts) - len(means) - failed, failed=failed, unit="runs")

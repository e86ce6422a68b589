"""Several inferences of the same prompt in, what they say together out: votes, pass@k, spread of runs, disagreement.

A cell is one question in one variant. A missing inference is simply not among a cell's trials: nothing is renumbered,
and a cell with fewer replies than a metric needs is counted as unscored by that metric. A reply without a readable
answer is one of the replies: it is not right, and it has no vote.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.types import Estimate
from ...stats.intervals import Floats, estimate_mean
from ..scorers.text_match import fold
from ..tables.table import Outcome, ScoreTable, worst_value
from .means import mean, split, with_bounds

Counts = NDArray[np.int64]
IN_WORDS = ("whole", "short")
"""The rules of `exact`: the answer is what the reply says. Other scorers of texts give their metric's name."""


@dataclass(frozen=True)
class Ballots:
    """The distinct answers of every cell (a question, or a question in one variant), sorted by cell."""

    cell: Counts
    """The cell of each distinct answer, as a row of `cells`."""
    cells: int
    count: Counts
    first: Counts
    """The place of the first trial that gave this answer, within the whole table."""
    value: Floats
    """The mean score of the trials that gave this answer."""

    @property
    def totals(self) -> Counts:
        """Return the number of votes of every cell."""
        return np.bincount(self.cell, weights=self.count, minlength=self.cells).astype(np.int64)


def count_ballots(
    table: ScoreTable, cell: Counts, cells: int, *, none_votes: bool, as_written: bool = False
) -> Ballots:
    """Count equal answers in every cell; failed trials never vote, trials without an answer only if `none_votes`.

    `as_written` takes answers for different that differ in case or in a full stop, as another program does.
    """
    voting = ~table.failed if none_votes else table.read & (table.answer >= 0)
    rows = np.flatnonzero(voting)
    answer = table.answer if as_written else alike_answers(table)
    order = rows[np.lexsort((rows, answer[rows], cell[rows]))]
    if not order.size:
        empty = np.empty(0, dtype=np.int64)
        return Ballots(empty, cells, empty, empty, np.empty(0))
    new = np.r_[True, (np.diff(cell[order]) != 0) | (np.diff(answer[order]) != 0)]
    starts = np.flatnonzero(new)
    count = np.diff(np.r_[starts, order.size])
    value = np.add.reduceat(table.value[order], starts) / count
    first = order[starts].astype(np.int64)
    return Ballots(cell[first].astype(np.int64), cells, count.astype(np.int64), first, value)


def alike_answers(table: ScoreTable) -> Counts:
    """Return a code of every trial's answer; of answers in words `Paris`, `paris.` and ` Paris` are one.

    Options are what they are, and answers of different worth are never one: where only the case tells right from
    wrong it is told.
    """
    in_words = np.array([rule in IN_WORDS or rule == table.metric for rule in table.rules] + [False])[table.rule]
    texts, folded = np.unique([fold(text) for text in table.answers] or [""], return_inverse=True)
    if texts.size == len(table.answers) or not in_words.any():
        return table.answer.astype(np.int64)
    kinds, worth = np.unique(np.round(table.value, 12), return_inverse=True)
    merged = len(table.answers) + folded.reshape(-1)[table.answer] * kinds.size + worth.reshape(-1)
    return np.where(in_words & (table.answer >= 0), merged, table.answer)


def majority(ballots: Ballots) -> tuple[Floats, Counts]:
    """Return the value of each cell's most frequent answer, and the cells that voted; a tie goes to the first given."""
    order = np.lexsort((ballots.first, -ballots.count, ballots.cell))
    winners = order[np.r_[True, np.diff(ballots.cell[order]) != 0]] if order.size else order
    return ballots.value[winners], ballots.cell[winners]


def entropy(ballots: Ballots) -> Floats:
    """Return the entropy in nats of each cell's answers (0 where all agree, NaN where nobody voted)."""
    totals = ballots.totals.astype(np.float64)
    share = ballots.count / totals[ballots.cell] if ballots.cell.size else ballots.value
    terms = np.bincount(ballots.cell, weights=-share * np.log(share), minlength=ballots.cells)
    return np.where(totals > 0, np.maximum(terms, 0.0), np.nan)


def disagreement(ballots: Ballots) -> Floats:
    """Return the chance that two different trials of a cell give different answers (NaN with fewer than two)."""
    totals = ballots.totals.astype(np.float64)
    repeats = (ballots.count * (ballots.count - 1)).astype(np.float64)
    same = np.bincount(ballots.cell, weights=repeats, minlength=ballots.cells)
    pairs = totals * (totals - 1.0)
    return np.where(pairs > 0, 1.0 - same / np.where(pairs > 0, pairs, 1.0), np.nan)


def expected_vote(ballots: Ballots, votes: int, silent: Counts, nothing: float = 0.0) -> Floats:
    """Return the expected value of the winner among `votes` trials drawn from each cell (NaN with fewer trials).

    Exact over all draws; a tie is shared, which is what "given first" means over all orders. Of each cell `silent`
    trials have no vote; a draw of these alone is worth `nothing`.
    """
    result = np.full(ballots.cells, np.nan)
    enough = ballots.totals + silent >= votes
    if not enough.any():
        return result
    place = np.arange(ballots.cell.size) - np.searchsorted(ballots.cell, ballots.cell)
    width = int(place.max(initial=-1)) + 1
    counts = np.zeros((ballots.cells, width + 1), dtype=np.int64)
    values = np.full((ballots.cells, width + 1), nothing)
    counts[ballots.cell, place] = ballots.count
    values[ballots.cell, place] = ballots.value
    counts[:, width] = silent
    patterns, pattern_of = np.unique(counts[enough], axis=0, return_inverse=True)
    chances = np.array([win_chances(tuple(int(c) for c in row[:-1]), votes, int(row[-1])) for row in patterns])
    result[enough] = (chances[pattern_of.reshape(-1)] * values[enough]).sum(axis=1)
    return result


@lru_cache(maxsize=65_536)
def win_chances(counts: tuple[int, ...], votes: int, silent: int = 0) -> tuple[float, ...]:
    """Return for each answer the chance to win `votes` draws without replacement from `counts`, ties shared.

    Last stands the chance that only `silent` trials are drawn, which have no vote.
    """
    draws = math.comb(sum(counts) + silent, votes)
    ways = [
        sum(
            math.comb(silent, quiet) * _ways_to_win(counts, place, votes - quiet)
            for quiet in range(min(silent, votes - 1) + 1)
        )
        for place in range(len(counts))
    ]
    return tuple(way / draws for way in (*ways, math.comb(silent, votes)))


def _ways_to_win(counts: tuple[int, ...], candidate: int, votes: int) -> float:
    others = counts[:candidate] + counts[candidate + 1 :]
    tops = range(1, min(counts[candidate], votes) + 1)
    return sum(math.comb(counts[candidate], top) * _ways_below(others, top, votes - top) for top in tops)


def _ways_below(others: tuple[int, ...], top: int, left: int) -> float:
    """Return the ways to draw `left` from `others`, none above `top`, each divided by 1 + how many reach `top`."""
    ways = {(0, 0): 1}
    for count in others:
        grown: dict[tuple[int, int], int] = {}
        for (drawn, ties), number in ways.items():
            for take in range(min(count, top, left - drawn) + 1):
                state = (drawn + take, ties + (take == top))
                grown[state] = grown.get(state, 0) + number * math.comb(count, take)
        ways = grown
    return sum(number / (1 + ties) for (drawn, ties), number in ways.items() if drawn == left)


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

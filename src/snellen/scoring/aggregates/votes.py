"""Answers of one question in, counts of equal answers out: majority, chance that k votes win, entropy, disagreement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...stats.intervals import Floats
from ..scorers.text_match import fold
from ..tables.table import ScoreTable

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

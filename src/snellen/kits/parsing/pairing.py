"""Blocks of a gold page and of a reply in, which stand for which out: the pairing that reads most in common.

Neighbours may stand together for one block, on either side: a paragraph that a reply has in three lines is still read.
A pair that has less than half in common is none: unrelated text stands for nothing. Work is bounded by counts, not
by time: the same page gets the same pairing on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from .blocks import Block, Kind

Costs = NDArray[np.float64]


def assign(costs: Costs) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of the cheapest assignment, by row; the shorter side is used up.

    Shortest augmenting paths (Crouse 2016). Among equally cheap assignments it takes the one that
    `scipy.optimize.linear_sum_assignment` takes: the originals' verdicts depend on it.
    """
    if not costs.size:
        return []
    if costs.shape[0] > costs.shape[1]:
        return sorted((row, column) for column, row in assign(np.ascontiguousarray(costs.T)))
    rows, columns = costs.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    column_of, row_of = np.full(rows, -1), np.full(columns, -1)
    for row in range(rows):
        _augment(costs, row, row_price=row_price, column_price=column_price, column_of=column_of, row_of=row_of)
    return [(row, int(column_of[row])) for row in range(rows)]


def _augment(
    costs: Costs,
    start: int,
    *,
    row_price: Costs,
    column_price: Costs,
    column_of: NDArray[np.int_],
    row_of: NDArray[np.int_],
) -> None:
    columns = costs.shape[1]
    shortest, path = np.full(columns, np.inf), np.full(columns, -1)
    remaining = np.arange(columns)[::-1].copy()
    left, lowest, row, sink = columns, 0.0, start, -1
    seen_rows: list[int] = []
    seen_columns: list[int] = []
    while sink == -1:
        seen_rows.append(row)
        open_columns = remaining[:left]
        reached = lowest + costs[row, open_columns] - row_price[row] - column_price[open_columns]
        better = reached < shortest[open_columns]
        path[open_columns[better]] = row
        shortest[open_columns[better]] = reached[better]
        now = shortest[open_columns]
        lowest = float(now.min())
        ties = np.flatnonzero(now == lowest)
        free = ties[row_of[open_columns[ties]] == -1]
        chosen = int(free[-1] if free.size else ties[0])
        column = int(open_columns[chosen])
        if row_of[column] == -1:
            sink = column
        else:
            row = int(row_of[column])
        seen_columns.append(column)
        left -= 1
        remaining[chosen] = remaining[left]
    row_price[start] += lowest
    for seen in seen_rows[1:]:
        row_price[seen] += lowest - shortest[column_of[seen]]
    for seen in seen_columns:
        column_price[seen] -= lowest - shortest[seen]
    _flip(path, sink, start, column_of, row_of)


def _flip(path: NDArray[np.int_], sink: int, start: int, column_of: NDArray[np.int_], row_of: NDArray[np.int_]) -> None:
    column = sink
    while True:
        row = int(path[column])
        row_of[column] = row
        column_of[row], column = column, int(column_of[row])
        if row == start:
            return


LEAST = 0.5
"""What two blocks must have in common to stand for each other."""
MOST_PAIRS = 90_000
"""Pairs of blocks that are compared (300 x 300); beyond, each block with those near its relative place."""
LONGEST_RUN = 40


class Match(NamedTuple):
    """Neighbouring gold blocks, the neighbouring blocks of a reply that stand for them, and how alike they are."""

    gold: tuple[int, ...]
    reply: tuple[int, ...]
    alike: float


def pair_blocks(gold: Sequence[Block], reply: Sequence[Block]) -> list[Match]:
    """Return the pairs of texts and of formulas, by gold; tables are paired by `pair_tables`."""
    done: list[Match] = []
    for kind in (Kind.TEXT, Kind.FORMULA):
        places = [[n for n, block in enumerate(side) if block.kind is kind] for side in (gold, reply)]
        words = _as_strings(kind, [gold[n] for n in places[0]], [reply[n] for n in places[1]])
        joint = " " if kind is Kind.TEXT else ""
        done += [
            Match(tuple(places[0][n] for n in match.gold), tuple(places[1][n] for n in match.reply), match.alike)
            for match in _Pairing(*words, joint).matches()
        ]
    return sorted(done)


def _as_strings(kind: Kind, gold: list[Block], reply: list[Block]) -> tuple[list[str], list[str]]:
    """Return what is compared as strings: of formulas, each token as one character."""
    if kind is Kind.TEXT:
        return [block.text for block in gold], [block.text for block in reply]
    codes: dict[str, str] = {}
    sides = [[_coded(block.tokens, codes) for block in side] for side in (gold, reply)]
    return sides[0], sides[1]


def _coded(tokens: tuple[str, ...], codes: dict[str, str]) -> str:
    return "".join(codes.setdefault(token, chr(0xF0000 + len(codes))) for token in tokens)


class _Pairing:
    """The pairing of two lists of strings."""

    def __init__(self, gold: list[str], reply: list[str], joint: str) -> None:
        # which blocks stand for which is decided without case: a page in capitals has been read, though not right
        self._gold, self._reply = ([text.lower() for text in side] for side in (gold, reply))
        self._written, self._joint = (gold, reply), joint
        self._found: list[Match] = []

    def matches(self) -> list[Match]:
        self._pair_alone()
        self._join(self._reply, self._gold, swapped=False)
        self._join(self._gold, self._reply, swapped=True)
        self._grow()
        return [match._replace(alike=self._exact(match)) for match in self._found]

    def _exact(self, match: Match) -> float:
        sides = zip(self._written, (match.gold, match.reply), strict=True)
        return float(
            Levenshtein.normalized_similarity(*(self._joint.join(side[n] for n in run) for side, run in sides))
        )

    def _pair_alone(self) -> None:
        rows, columns = len(self._gold), len(self._reply)
        if not rows or not columns:
            return
        gains = np.zeros((rows, columns))
        reach = max(1, MOST_PAIRS // rows)
        for row, text in enumerate(self._gold):
            middle = row * columns // rows
            low = 0 if columns <= reach else max(0, min(middle - reach // 2, columns - reach))
            for column in range(low, min(columns, low + reach)):
                other = self._reply[column]
                alike = Levenshtein.normalized_similarity(text, other, score_cutoff=LEAST)
                # of equally good pairings the one that keeps the order: two blocks may have the same words
                nearness = 1 - abs(row / rows - column / columns)
                gains[row, column] = alike * (len(text) + len(other)) + 1e-6 * nearness if alike else 0.0
        for row, column in assign(-gains):
            if gains[row, column] > 0:
                self._found.append(Match((row,), (column,), self._alike([row], [column])))

    def _alike(self, gold: Sequence[int], reply: Sequence[int]) -> float:
        texts = [self._joint.join(side[n] for n in run) for side, run in ((self._gold, gold), (self._reply, reply))]
        return float(Levenshtein.normalized_similarity(*texts)) if all(texts) else 0.0

    def _free(self, reply: bool) -> list[int]:
        taken = {n for match in self._found for n in (match.reply if reply else match.gold)}
        return [n for n in range(len(self._reply if reply else self._gold)) if n not in taken]

    def _join(self, parts: list[str], wholes: list[str], swapped: bool) -> None:
        """Pair blocks that have none with runs of neighbours of the other side that have none either."""
        runs = _stretches(self._free(reply=not swapped))
        for whole in self._free(reply=swapped):
            best: tuple[float, list[int]] = (0.0, [])
            for stretch in runs:
                for window in _windows(stretch, parts, len(wholes[whole])):
                    alike = self._alike(*(([whole], window) if not swapped else (window, [whole])))
                    if alike >= LEAST and alike > best[0]:
                        best = alike, window
            if best[1]:
                run = tuple(best[1])
                sides = ((whole,), run) if not swapped else (run, (whole,))
                self._found.append(Match(sides[0], sides[1], best[0]))
                runs = _stretches(self._free(reply=not swapped))

    def _grow(self) -> None:
        """Let pairs take in free neighbours, on either side, as long as more is in common for it."""
        free = set(self._free(reply=False)), set(self._free(reply=True))
        for place in range(len(self._found)):
            while self._found[place].alike < 1 and (grown := self._grown(self._found[place], free)) is not None:
                free[0].difference_update(grown.gold)
                free[1].difference_update(grown.reply)
                self._found[place] = grown

    def _grown(self, match: Match, free: tuple[set[int], set[int]]) -> Match | None:
        options = []
        for side, run in enumerate((match.gold, match.reply)):
            for new in ((run[0] - 1, *run), (*run, run[-1] + 1)):
                if (set(new) - set(run)) <= free[side] and len(new) <= LONGEST_RUN:
                    gold, reply = (new, match.reply) if side == 0 else (match.gold, new)
                    options.append(Match(gold, reply, self._alike(gold, reply)))
        best = max(options, key=self._gain, default=None)
        return best if best is not None and self._gain(best) > self._gain(match) else None

    def _gain(self, match: Match) -> float:
        """Return what a pair adds: what is in common, less what is not; so that a wrong neighbour is never worth it."""
        size = sum(len(self._gold[n]) for n in match.gold) + sum(len(self._reply[n]) for n in match.reply)
        return match.alike * size if match.alike >= LEAST else 0.0


def _stretches(places: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _windows(stretch: list[int], texts: list[str], size: int) -> list[list[int]]:
    """Return the runs of at least two within a stretch whose length is near a size."""
    found = []
    for start in range(len(stretch)):
        length = 0
        for end in range(start, min(len(stretch), start + LONGEST_RUN)):
            length += len(texts[stretch[end]])
            if length > 2 * size:
                break
            if end > start and length >= size // 2:
                found.append(stretch[start : end + 1])
    return found[:400]

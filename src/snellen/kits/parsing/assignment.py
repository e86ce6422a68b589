"""Two lists and what pairing each two of their members costs, in; the cheapest pairing, out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

"""Two runs of the same task, before and after, to what was gained: paired differences with intervals, and a guard.

What was not read or has no reply is wrong on both sides: a model that stops answering must not look better for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...core.errors import UsageError
from ...scoring.chain_tables import chains_from_table
from ...scoring.compare.run_pairs import compare_runs
from ...scoring.headline import main_metric, quoted_metric
from ...scoring.stored import stored_tables
from ...scoring.table import ScoreTable, lower_is_better
from ...stats.bootstrap import bootstrap_interval
from ...stats.intervals import unseen_interval
from ...store.reader import RunReader

Matrix = NDArray[np.float64]
HOLDS, OPEN, WORSE = "holds", "open", "worse"
CHAINED = "accuracy"


class Gain(Struct, frozen=True):
    """One figure before and after."""

    task: str
    figure: str
    before: float | None
    after: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    n: int
    guarded: bool = False
    verdict: str = ""
    """Of a guarded figure: `holds`, `worse` (the interval lies below nothing), `open` (a drop cannot be excluded)."""


class Figure(NamedTuple):
    """A figure of chains as a function of the totals of h, s and h·s before and after, and the count."""

    name: str
    before: Callable[[Matrix], Matrix]
    after: Callable[[Matrix], Matrix]

    def difference(self, totals: Matrix) -> Matrix:
        """Return after less before, of every draw."""
        return self.after(totals) - self.before(totals)


def _share(above: int, below: int) -> Callable[[Matrix], Matrix]:
    def share(totals: Matrix) -> Matrix:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(totals[:, above] / totals[:, below], dtype=np.float64)

    return share


FIGURES = (
    Figure("Rh", _share(0, 6), _share(3, 6)),
    Figure("Rcot", _share(1, 6), _share(4, 6)),
    Figure("Ro", _share(2, 6), _share(5, 6)),
    Figure("Cf", _share(2, 1), _share(5, 4)),
    Figure("Cb", _share(2, 0), _share(5, 3)),
)


def chain_columns(table: ScoreTable) -> dict[str, tuple[float, float, float]]:
    """Return h, s and h·s of every chain by its name, what was not read or failed counted as wrong."""
    chains = chains_from_table(table).counted_as(right=False)
    names = dict(zip(table.cluster_of_sample.tolist(), (name.partition(".")[0] for name in table.samples), strict=True))
    right, whole = chains.inference.astype(float), chains.whole.astype(float)
    rows = zip(chains.clusters.tolist(), right.tolist(), whole.tolist(), strict=True)
    return {names[cluster]: (h, s, h * s) for cluster, h, s in rows}


def chain_gains(before: ScoreTable, after: ScoreTable, task: str) -> list[Gain]:
    """Return the paired gains of Rh, Rcot, Ro, Cf and Cb, chains drawn together."""
    old, new = chain_columns(before), chain_columns(after)
    if set(old) != set(new):
        raise UsageError(
            f"task {task!r}: the runs have different chains ({len(old)} and {len(new)}): finish both first"
        )
    columns = np.asarray([[*old[name], *new[name], 1.0] for name in sorted(old)], dtype=np.float64)
    whole = columns.sum(axis=0, keepdims=True)
    return [_chain_gain(figure, columns, whole, task) for figure in FIGURES]


def _chain_gain(figure: Figure, columns: Matrix, whole: Matrix, task: str) -> Gain:
    first, second = _finite(float(figure.before(whole)[0])), _finite(float(figure.after(whole)[0]))
    if first is None or second is None:
        return Gain(task, figure.name, first, second, None, None, len(columns))
    interval = bootstrap_interval(columns, figure.difference, task, figure.name)
    if interval is None and len(columns) > 1:  # every chain changed alike: no draw can differ, others still may
        interval = unseen_interval(second - first, len(columns))
    return Gain(task, figure.name, first, second, second - first, interval, len(columns))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def find_gains(before: Path, after: Path) -> list[Gain]:
    """Return all gains of two run folders: of chains their figures, of other tasks the metric they stand for."""
    gains: list[Gain] = []
    with ExitStack() as stack:
        readers = [stack.enter_context(RunReader(folder)) for folder in (before, after)]
        for task in readers[0].header().tasks:
            tables = [stored_tables(reader, task.name) for reader in readers]
            if "cure" in task.aggregates and _has_chains(tables[0][CHAINED]):
                gains += chain_gains(tables[0][CHAINED], tables[1][CHAINED], task.name)
            else:
                metric = main_metric(tuple(tables[0]), quoted_metric(task)) or ""
                gains.append(_plain_gain(before, after, task.name, metric))
    return gains


def _has_chains(table: ScoreTable) -> bool:
    codes, names = table.tags.get("role", (np.zeros(0, dtype=np.int64), ()))
    return {names[code] for code in np.unique(codes)} >= {"inference", "step"}


def _plain_gain(before: Path, after: Path, task: str, metric: str) -> Gain:
    (found,) = compare_runs([before, after], task=task, metric=metric)[task]
    return Gain(task, metric, found.first_value, found.second_value, found.difference, found.ci95, found.paired)


def guard_gain(gain: Gain, margin: float) -> Gain:
    """Return the gain with the guard's verdict: it may not get worse, and a drop beyond the margin must be excluded."""
    verdict = OPEN
    if gain.ci95 is not None:
        low, high = (-gain.ci95[1], -gain.ci95[0]) if lower_is_better(gain.figure) else gain.ci95
        verdict = WORSE if high < 0 else HOLDS if low >= -margin else OPEN
    values = (gain.before, gain.after, gain.difference, gain.ci95, gain.n)
    return Gain(gain.task, gain.figure, *values, guarded=True, verdict=verdict)

"""The rules that figures are made by, each as sums over trials or groups: mean, all of a group, precision, F1 …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.tasks import Figure
from ...stats.bootstrap import Matrix, ratio
from ...stats.intervals import Floats
from ..table import Codes, Mask, ScoreTable


class Sums(NamedTuple):
    """Columns that are added up, row by row, and what is made of the totals."""

    columns: Matrix
    """One row a trial or a group."""
    rows: NDArray[np.int64]
    """A sample of each row: it says which cluster the row is in."""
    statistic: Callable[[Matrix], Floats]
    counts: tuple[int, int, int]
    """Scored, unscored, failed."""
    unit: str = "trials"
    links: tuple[Codes, ...] = ()
    """Per sample: which group of this figure it is in."""
    is_unknown: bool = False
    is_share: bool = True
    """Whether it lies from 0 to 1, whatever the trials say."""

    def unknown(self) -> Sums:
        """Return the same without a value: something of it was not asked yet."""
        scored, unscored, failed = self.counts
        return self._replace(is_unknown=True, counts=(0, scored + unscored, failed))


def _mean(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    counted = np.ones(len(table), dtype=bool) if strict else table.scored
    values = (table.strict_value if strict else table.value)[counted]
    columns = np.column_stack([values, np.ones(values.size)])
    counts = (len(table), 0, 0) if strict else table.counts
    bounded = bool(np.all((values >= 0.0) & (values <= 1.0)))
    return [Sums(columns, table.sample[counted].astype(np.int64), ratio, counts, is_share=bounded)]


def _total(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    """The sum of the values: what has none adds nothing, so it is strict by nature."""
    (one,) = _mean(table, figure, strict)
    return [one._replace(statistic=lambda totals: np.asarray(totals[:, 0], dtype=np.float64), is_share=False)]


def _mean_of_groups(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    """The mean of the means of groups, each weighing the same."""
    labels, _ = group_labels(table, figure.by)
    of_trial = labels[table.sample]
    return [_mean(table.take(of_trial == label), figure, strict)[0] for label in np.unique(of_trial)]


def _all_of_group(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    """A group is right if all its members are, wrong as soon as one is not; else, with one outside, it is unscored."""
    return _of_groups(table, figure, strict, lambda values: values >= 1.0)


def _worst_of_group(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    """A group is worth its worst member; with one outside it is unscored, unless a member has nothing already."""
    return _of_groups(table, figure, strict, lambda values: values)


def _of_groups(table: ScoreTable, figure: Figure, strict: bool, worth: Callable[[Floats], NDArray[Any]]) -> list[Sums]:
    labels, _ = group_labels(table, figure.by)
    cells = np.column_stack([labels[table.sample], table.variant, table.repeat])
    _, first, cell = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    cell, count = cell.reshape(-1), first.size
    values = np.asarray(worth(table.strict_value if strict else np.where(table.scored, table.value, 1.0)), np.float64)
    worst = np.full(count, np.inf)
    np.minimum.at(worst, cell, values)
    open_ones = _any_in(cell, count, ~table.scored) & (worst > 0.0) & (not strict)
    failed = _any_in(cell, count, table.failed) & open_ones
    kept = ~open_ones
    columns = np.column_stack([worst[kept], np.ones(int(kept.sum()))])
    counts = (int(kept.sum()), int((open_ones & ~failed).sum()), int(failed.sum()))
    rows = table.sample[first][kept].astype(np.int64)
    return [Sums(columns, rows, ratio, counts, "groups", (labels,))]


def _any_in(cell: NDArray[Any], count: int, rows: Mask) -> Mask:
    return np.bincount(cell, weights=rows, minlength=count) > 0


def group_labels(table: ScoreTable, by: tuple[str, ...]) -> tuple[Codes, int]:
    """Return the group of every sample: samples whose tags are all the same; without tags, of one `group`."""
    if not by:
        return table.cluster_of_sample, int(table.cluster_of_sample.max(initial=-1)) + 1
    columns = np.column_stack([table.tags[tag][0] for tag in by])
    _, found = np.unique(columns, axis=0, return_inverse=True)
    labels: Codes = found.reshape(-1).astype(np.int32)
    return labels, int(labels.max(initial=-1)) + 1


def _positives(statistic: Callable[[Matrix], Floats]) -> RuleSums:
    """Make a rule of the counts of true positives, predicted positives, real positives and all."""

    def rule(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
        counted = np.ones(len(table), dtype=bool) if strict else table.scored
        said = np.array([answer.strip().lower() == figure.positive for answer in table.answers] + [False])
        right = (table.strict_value if strict else table.value)[counted] >= 1.0
        predicted = said[table.answer[counted]] & table.read[counted]
        real = _real_positive(predicted, right, table.read[counted], _gold(table, figure)[counted])
        columns = np.column_stack([predicted & right, predicted, real, np.ones(right.size)]).astype(np.float64)
        counts = (len(table), 0, 0) if strict else table.counts
        return [Sums(columns, table.sample[counted].astype(np.int64), statistic, counts)]

    return rule


def _gold(table: ScoreTable, figure: Figure) -> Floats:
    """Return 1 where the tag `gold` says that the positive answer is right, 0 where not, NaN where it is silent."""
    if "gold" not in table.tags:
        return np.full(len(table), np.nan)
    codes, values = table.tags["gold"]
    positive = np.array([float(value.strip().lower() == figure.positive) for value in values] + [np.nan])
    return positive[codes[table.sample]]


def _real_positive(predicted: Mask, right: Mask, read: Mask, gold: Floats) -> Mask:
    """Tell what is really positive: as the tag says, else by whether a prediction of two answers was right."""
    inferred = np.where(predicted, right, ~right & read)
    return np.asarray(np.where(np.isnan(gold), inferred, gold == 1.0), dtype=bool)


def _share(numerator: int, denominator: int) -> Callable[[Matrix], Floats]:
    return lambda totals: ratio(totals[:, [numerator, denominator]])


def _f1(totals: Matrix) -> Floats:
    return ratio(np.column_stack([2.0 * totals[:, 0], totals[:, 1] + totals[:, 2]]))


def _answerable_f1(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    """MMLongBench-Doc: recall over the answerable, precision over the answered, their harmonic mean.

    The tag `answerable` says of a sample whether it has an answer; a reply of `Not answerable` gives none.
    """
    counted = np.ones(len(table), dtype=bool) if strict else table.scored
    codes, values = table.tags.get("answerable", (np.zeros(len(table.samples), np.int32), ("yes",)))
    has = np.array([value.lower() in ("yes", "true", "1") for value in values] + [True])[codes[table.sample]]
    none = np.array([answer.strip().rstrip(".").lower() == "not answerable" for answer in table.answers] + [False])
    values_of = (table.strict_value if strict else table.value)[counted] * has[counted]
    columns = np.column_stack([values_of, ~none[table.answer[counted]], has[counted]]).astype(np.float64)
    counts = (len(table), 0, 0) if strict else table.counts
    return [Sums(columns, table.sample[counted].astype(np.int64), _f1, counts)]


def _gain(table: ScoreTable, figure: Figure, strict: bool) -> list[Sums]:
    """Video-MMMU's gain of knowledge, (after - before) / (1 - before), over the questions that have both."""
    if figure.against not in table.variants:
        return []
    before = table.variant == list(table.variants).index(figure.against)
    counted = np.ones(len(table), dtype=bool) if strict else table.scored
    asked = np.unique(table.sample[before]), np.unique(table.sample[~before])
    known = np.unique(table.sample[before & counted]), np.unique(table.sample[~before & counted])
    both, paired = np.intersect1d(*known), np.intersect1d(*asked).size
    kept = counted & np.isin(table.sample, both)
    values = (table.strict_value if strict else table.value)[kept]
    of_before = before[kept].astype(np.float64)
    columns = np.column_stack([values * (1 - of_before), 1 - of_before, values * of_before, of_before])
    failed = np.unique(table.sample[table.failed & ~np.isin(table.sample, both)]).size
    counts = (both.size, max(0, paired - both.size - failed), failed)
    return [Sums(columns, table.sample[kept].astype(np.int64), _relative_gain, counts, "questions", is_share=False)]


def _relative_gain(totals: Matrix) -> Floats:
    after, before = ratio(totals[:, :2]), ratio(totals[:, 2:])
    return ratio(np.column_stack([after - before, 1.0 - before]))


RuleSums = Callable[[ScoreTable, Figure, bool], list[Sums]]
RULE_SUMS: Mapping[str, RuleSums] = {
    "mean": _mean,
    "sum": _total,
    "mean-of-groups": _mean_of_groups,
    "all-of-group": _all_of_group,
    "worst-of-group": _worst_of_group,
    "precision": _positives(_share(0, 1)),
    "recall": _positives(_share(0, 2)),
    "f1": _positives(_f1),
    "yes-ratio": _positives(_share(1, 3)),
    "label-ratio": _positives(_share(2, 3)),
    "answerable-f1": _answerable_f1,
    "gain": _gain,
}
"""By the name that cards use. `label-ratio` is lmms-eval's `pope_yes_ratio`: that of the labels, not of the replies."""

"""The figures of a card: scores of one metric in, the numbers a benchmark is quoted by out, each with its interval.

Every figure is a function of sums over clusters, so one bootstrap over clusters gives the interval of all of them.
Samples that share a group of a figure are one cluster. A figure has a twin over what was read alone, a strict one, in
which failed calls are the worst too, and, where the protocol says what its tool does with them, one as the tool counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, starmap
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.errors import ConfigError, not_among
from ...core.tasks import Figure, Task
from ...core.text import NO_TAG
from ...core.types import Estimate, ReadPart
from ...core.variants import variants_beside
from ...stats.bootstrap import ANYWHERE, DRAWS, Matrix, percentile_interval, ratio, resample
from ...stats.intervals import Floats, wilson
from ..tables.table import Codes, Mask, ScoredTask, ScoreTable
from .headline import PEER
from .means import READ, STRICT, as_bounds


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
    said = [value.strip().lower() for value in values]
    silent = ("", NO_TAG)  # another sample has the tag
    positive = np.array([np.nan if one in silent else float(one == figure.positive) for one in said] + [np.nan])
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

    The tag `answerable` says of a sample whether it has an answer, and one without the tag has; a reply of
    `Not answerable` gives none.
    """
    counted = np.ones(len(table), dtype=bool) if strict else table.scored
    codes, values = table.tags.get("answerable", (np.zeros(len(table.samples), np.int32), (NO_TAG,)))
    has = np.array([value.lower() in ("yes", "true", "1", NO_TAG) for value in values] + [True])[codes[table.sample]]
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


COMPOSED = ("mean-of", "sum-of")
RULES = (*RULE_SUMS, *COMPOSED)
WHOLE_ONLY = ("all-of-group", "worst-of-group")
"""Rules whose groups must have been asked whole: of a run that was stopped they have no value."""
TWINS = (("", False), (READ, False), (STRICT, True), (PEER, False))
"""How the twins of a figure end, and whether they are strict."""
NEVER_FALLING = ("mean", "sum", "mean-of-groups", "all-of-group", "worst-of-group")
"""Rules by which a figure never falls when a trial turns right: such a figure has bounds."""


class Part(NamedTuple):
    """One figure before it becomes a number: a function of sums, and what it is made of."""

    sums: Sums
    scale: float


def figures(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return every figure of the task with its bounds, and its twins."""
    found: dict[str, Estimate] = {}
    planned = options.get("planned_trials")
    whole = planned is None or all(len(table) >= planned for table in scored.tables.values())
    all_read = not any(table.unread.any() for table in scored.tables.values())
    for suffix, strict in TWINS:
        if suffix == READ and all_read:
            found |= {f"{name}{READ}": one for name, one in found.items()}
        else:
            seen = _viewed(scored, lambda table: table.only_read) if suffix == READ else scored
            found |= _twins(seen, suffix, strict=strict, whole=whole)
    return found | _with_bounds(scored, found, whole)


def _viewed(scored: ScoredTask, view: Callable[[ScoreTable], ScoreTable]) -> ScoredTask:
    return ScoredTask(scored.task, {name: view(table) for name, table in scored.tables.items()}, lambda: iter(()))


def _with_bounds(scored: ScoredTask, found: Mapping[str, Estimate], whole: bool) -> dict[str, Estimate]:
    """Return the figures with what they are over what was read, and between which values they must lie."""

    def settled(*, right: bool) -> dict[str, Estimate]:
        return _twins(_viewed(scored, lambda table: table.as_if(right=right)), "", whole=whole, value_only=True)

    low, high = settled(right=False), settled(right=True)
    estimates = {}
    for figure in scored.task.figures:
        if figure.name in found:
            read = found[f"{figure.name}{READ}"]
            sure = _never_falls(figure, scored)
            estimates[figure.name] = structs.replace(
                found[figure.name],
                bounds=as_bounds(low.get(figure.name), high.get(figure.name)) if sure else None,
                read=ReadPart(read.value, read.n),
            )
    return estimates


def _never_falls(figure: Figure, scored: ScoredTask) -> bool:
    """Tell whether a figure never falls when a trial turns right, and what right is worth is known."""
    if figure.rule in COMPOSED:
        return all(_never_falls(one, scored) for one in scored.task.figures if one.name in figure.of)
    table = scored.tables.get(figure.metric)
    return figure.rule in NEVER_FALLING and table is not None and table.has_bounds


def _twins(
    scored: ScoredTask, suffix: str, *, whole: bool, strict: bool = False, value_only: bool = False
) -> dict[str, Estimate]:
    """Return every figure in one way of counting, without an interval if `value_only`."""
    known: dict[str, list[Part]] = {}
    found: dict[str, Estimate] = {}
    for figure in scored.task.figures:
        parts = _parts(figure, known, scored, suffix, strict=strict)
        if not parts:
            continue
        if (not whole and figure.rule in WHOLE_ONLY) or lacking_groups(figure, parts):
            parts = [part._replace(sums=part.sums.unknown()) for part in parts]
        known[figure.name] = parts
        counted = _counted_together(figure, found, scored.task, suffix) if figure.rule in COMPOSED else _counted(parts)
        draws = 0 if value_only else DRAWS
        found[f"{figure.name}{suffix}"] = _estimate(figure, parts, counted, scored, suffix, draws=draws)
    return found


def _parts(
    figure: Figure, known: Mapping[str, list[Part]], scored: ScoredTask, suffix: str, *, strict: bool
) -> list[Part]:
    if figure.rule in COMPOSED:
        return _composed(figure, known)
    return _summed(figure, scored, suffix, strict=strict)


def _composed(figure: Figure, known: Mapping[str, list[Part]]) -> list[Part]:
    """Return the parts of the figures it is made of, or nothing where one of them was not measured."""
    found = [known[name] for name in figure.of if name in known]
    if len(found) < len(figure.of):
        return []
    share = figure.scale / (len(found) if figure.rule == "mean-of" else 1)
    return [Part(part.sums, part.scale * share) for parts in found for part in parts]


def _summed(figure: Figure, scored: ScoredTask, suffix: str, *, strict: bool) -> list[Part]:
    """Return the sums of a figure's own metric, or nothing where that was not measured."""
    if figure.rule not in RULE_SUMS:
        raise ConfigError(f"figure {figure.name!r}: rule {not_among(figure.rule, RULES, ' is unknown')}")
    table = scored.tables.get(f"{figure.metric}{PEER if suffix == PEER else ''}")
    if table is None or missing_tags(figure, table):
        return []
    sums = RULE_SUMS[figure.rule](table.take(_where(table, figure)), figure, strict)
    return [Part(one, figure.scale / len(sums)) for one in sums]


def figures_left_out(scored: ScoredTask) -> Iterator[str]:
    """Say which figures cannot be made of these samples, and what they lack."""
    table = next(iter(scored.tables.values()))
    for figure in scored.task.figures:
        if lacking := missing_tags(figure, table):
            yield f"{figure.name} is not computed: the rows have no column {', '.join(lacking)}"
        elif figure.against and figure.against not in table.variants:
            yield f"{figure.name} is not computed: nothing was asked with --variant {figure.against}"
        elif figure.groups and lacking_groups(figure, parts := _summed(figure, scored, "", strict=False)):
            has = f"{len(parts)} of {figure.groups} groups of {', '.join(figure.by)}"
            yield f"{figure.name} has no value: it is the mean of {figure.groups}, and {has} were asked"


def lacking_groups(figure: Figure, parts: Sequence[Part]) -> bool:
    """Tell whether a mean over all groups of a benchmark was made of some of them."""
    return bool(figure.groups) and len(parts) != figure.groups


def missing_tags(figure: Figure, table: ScoreTable) -> list[str]:
    """Return the tags that a figure needs and no sample has: it is left out then, never made of one big group."""
    return [tag for tag in (*figure.by, *figure.where) if tag not in table.tags]


def _where(table: ScoreTable, figure: Figure) -> Mask:
    """Return the trials a figure is over: of arms only those that it holds something against."""
    beside = {*figure.besides, *(() if figure.against else variants_beside(table.variants))}
    rows = np.isin(table.variant, [code for code, name in enumerate(table.variants) if name in beside], invert=True)
    for tag, wanted in figure.where.items():
        codes, values = table.tags[tag]
        fitting = np.array([value in wanted for value in values] + [False])
        rows &= fitting[codes[table.sample]]
    return rows


def _estimate(
    figure: Figure, parts: Sequence[Part], counted: Estimate, scored: ScoredTask, suffix: str, *, draws: int
) -> Estimate:
    if any(part.sums.is_unknown or not part.sums.rows.size for part in parts):
        return counted
    totals = _cluster_totals(parts, next(iter(scored.tables.values())))
    statistic = _combined(parts)
    value = float(statistic(totals.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(value) or not draws:
        return structs.replace(counted, value=value if np.isfinite(value) else None)
    drawn = statistic(resample(totals, draws, "figure", figure.name, suffix))
    finite, clusters = drawn[np.isfinite(drawn)], totals.shape[0]
    stderr = float(np.std(finite, ddof=1)) if finite.size > 1 and clusters > 1 else None
    interval = percentile_interval(drawn, clusters, _limits(parts)) or _interval_at_the_edge(value, parts)
    return structs.replace(counted, value=value, stderr=stderr, ci95=interval)


def _limits(parts: Sequence[Part]) -> tuple[float, float]:
    """Return between which numbers a figure can lie: one of shares is at most their weights together."""
    if all(part.sums.is_share and part.scale >= 0.0 for part in parts):
        return 0.0, sum(part.scale for part in parts)
    return ANYWHERE


def _interval_at_the_edge(value: float, parts: Sequence[Part]) -> tuple[float, float] | None:
    """Return the interval of shares that are all 0 or all 1, of which no draw can tell any spread: Wilson's.

    Each part counts as often as its rows allow at its weight (Kish). None of a figure that is no mean of shares.
    """
    whole = sum(part.scale for part in parts)
    edge = next((share for share in (0.0, 1.0) if np.isclose(value, share * whole, rtol=1e-12)), None)
    if edge is None or whole <= 0.0 or not all(part.sums.is_share for part in parts):
        return None
    rows = whole**2 / sum(part.scale**2 / np.unique(part.sums.rows).size for part in parts)
    low, high = wilson(edge, rows)
    return low * whole, high * whole


def _counted(parts: Sequence[Part]) -> Estimate:
    """Return what became of everything a figure is made of."""
    units = {part.sums.unit for part in parts}
    scored, unscored, failed = (sum(part.sums.counts[place] for part in parts) for place in range(3))
    unit = units.pop() if len(units) == 1 else "several units"
    return Estimate(None, n=scored, unscored=unscored, failed=failed, unit=unit)


def _counted_together(figure: Figure, found: Mapping[str, Estimate], task: Task, suffix: str) -> Estimate:
    """Return what became of everything several figures are made of; the same trials seen by several count once."""
    members = [found[f"{name}{suffix}"] for name in figure.of]
    units = {one.unit for one in members}
    named = [one for one in task.figures if one.name in figure.of]
    same = figure.rule == "mean-of" and len(units) == 1 and not all(starmap(_apart, combinations(named, 2)))
    add = max if same else sum
    scored, unscored, failed = (add(getattr(one, name) for one in members) for name in ("n", "unscored", "failed"))
    unit = units.pop() if len(units) == 1 else "several units"
    return Estimate(None, n=scored, unscored=unscored, failed=failed, unit=unit)


def _apart(first: Figure, second: Figure) -> bool:
    """Tell whether no sample can be in both figures: one tag, and no value in common."""
    return any(not set(first.where[tag]) & set(second.where[tag]) for tag in first.where if tag in second.where)


def _combined(parts: Sequence[Part]) -> Callable[[Matrix], Floats]:
    """Return the figure as a function of the totals of all its parts, side by side."""

    def statistic(totals: Matrix) -> Floats:
        values, at = np.zeros(totals.shape[0]), 0
        for part in parts:
            width = part.sums.columns.shape[1]
            values = values + part.scale * part.sums.statistic(totals[:, at : at + width])
            at += width
        return values

    return statistic


def _cluster_totals(parts: Sequence[Part], table: ScoreTable) -> Matrix:
    """Return one row a cluster: the sums of every part; clusters are what any grouping of the parts holds together."""
    joined = _joined([table.cluster_of_sample, *(labels for part in parts for labels in part.sums.links)])
    used = np.unique(np.concatenate([joined[part.sums.rows] for part in parts]))
    blocks = []
    for part in parts:
        places = np.searchsorted(used, joined[part.sums.rows])
        block = np.zeros((used.size, part.sums.columns.shape[1]))
        np.add.at(block, places, part.sums.columns)
        blocks.append(block)
    return np.hstack(blocks)


def _joined(labellings: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return for every sample the smallest sample that it is linked to, by any labelling, over any number of steps."""
    component = np.arange(labellings[0].size, dtype=np.int64)
    while True:
        before = component.copy()
        for labels in labellings:
            lowest = np.full(int(labels.max(initial=-1)) + 1, component.size, dtype=np.int64)
            np.minimum.at(lowest, labels, component)
            component = lowest[labels]
        if np.array_equal(before, component):
            return component

"""A ScoreTable in, named Estimates out: the mean with its twins and bounds, the rates beside it, the same by groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.errors import UsageError, did_you_mean
from ...core.types import BASE_VARIANT, Estimate, ReadPart
from ...stats.intervals import Floats, estimate_mean, macro_moments, mean_interval, share_interval
from ..tables.table import Codes, ScoredTask, ScoreTable, lower_is_better

REFUSED = ("refus",)
TRUNCATED = ("trunc",)
"""How reasons and kinds of failure begin that count as refused or truncated."""
READ, STRICT = "_read", "_strict"
"""How the twins of a figure end: over what was read alone, and over all, with failed calls as wrong too."""


def in_unit(unit: str, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return estimates that say what they count."""
    return {name: structs.replace(estimate, unit=unit) for name, estimate in estimates.items()}


def question_means(table: ScoreTable, *, strict: bool = False) -> tuple[Floats, Codes]:
    """Return the mean value of every question over its trials, and the question's cluster.

    Every reply counts that can be judged, and a question without any is left out; `strict` keeps all, the others at
    their worst: 0, or 1 for an error.
    """
    rows = np.ones(len(table), dtype=bool) if strict else table.scored
    samples, values = table.sample[rows], (table.strict_value if strict else table.value)[rows]
    if not samples.size:
        return np.empty(0), samples
    starts = np.flatnonzero(np.r_[True, np.diff(samples) != 0])
    sizes = np.diff(np.r_[starts, samples.size])
    return np.add.reduceat(values, starts) / sizes, table.cluster_of_sample[samples[starts]]


def bounded(table: ScoreTable, of: Callable[[ScoreTable], Estimate]) -> Estimate:
    """Return a figure of a table with its value over what was read, and between which values it must lie."""
    (found,) = with_bounds(table, lambda view: {"": of(view)}).values()
    read = of(table.only_read) if table.unread.any() else found
    return structs.replace(found, read=ReadPart(read.value, read.n))


def with_bounds(table: ScoreTable, of: Callable[[ScoreTable], Mapping[str, Estimate]]) -> dict[str, Estimate]:
    """Return figures of a table with the values between which they must lie, whatever was not read or failed had said.

    They hold for figures that never fall when a trial turns right: means, and what is made of them.
    """
    found = dict(of(table))
    if not table.has_bounds:
        return found
    lossy = bool(table.unread.any() or table.failed.any())
    low, high = (of(table.as_if(right=right)) if lossy else found for right in (False, True))
    return {name: structs.replace(one, bounds=as_bounds(low.get(name), high.get(name))) for name, one in found.items()}


def as_bounds(one: Estimate | None, other: Estimate | None) -> tuple[float, float] | None:
    """Return the values of two estimates, the lower first; None where one has none."""
    if one is None or other is None or one.value is None or other.value is None:
        return None
    return min(one.value, other.value), max(one.value, other.value)


def mean(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return `<metric>` (each question weighs the same; what was not read is not right) and its twins.

    `<metric>_read` is over what was read alone, `<metric>_strict` has failed calls at their worst too. With several
    trials a question also `<metric>_micro`, where each trial weighs the same.
    """
    estimates = headline_of(table)
    if table.asks_again:
        estimates[f"{table.metric}_micro"] = mean_of_trials(table)
    return estimates


def mean_of_trials(table: ScoreTable) -> Estimate:
    """Return the mean where each trial weighs the same."""
    return bounded(table, _mean_of_trials)


def _mean_of_trials(table: ScoreTable) -> Estimate:
    scored, unscored, failed = table.counts
    values, clusters = table.value[table.scored], table.cluster[table.scored]
    estimate = estimate_mean(values, clusters, n=scored, unscored=unscored, failed=failed)
    return _not_below_nothing(table, structs.replace(estimate, unit="trials"))


def mean_by_question(table: ScoreTable) -> Estimate:
    """Return the mean where each question weighs the same, counted in trials."""
    scored, unscored, failed = table.counts
    estimate = estimate_mean(*question_means(table), n=scored, unscored=unscored, failed=failed)
    return _not_below_nothing(table, structs.replace(estimate, unit="trials"))


def rates(table: ScoreTable) -> dict[str, Estimate]:
    """Return the shares of all planned trials that were unparsed, refused, truncated and failed.

    A refusal or a cut reply counts wherever it shows: as a reason not to score, or as a kind of failure. Of a row
    without a right answer nothing is said of whether its reply could be read.
    """
    shares = {
        "unparsed_rate": _share(table, table.unread),
        "refused_rate": _share(table, _has_reason(table, REFUSED)),
        "truncated_rate": _share(table, _has_reason(table, TRUNCATED)),
        "failed_rate": _share(table, table.failed),
    }
    return in_unit("trials", shares)


def _share(table: ScoreTable, rows: NDArray[np.bool_]) -> Estimate:
    return estimate_mean(rows.astype(np.float64), table.cluster, n=len(table))


def _has_reason(table: ScoreTable, beginnings: tuple[str, ...]) -> NDArray[np.bool_]:
    known = np.array([reason.lower().startswith(beginnings) for reason in table.reasons] + [False], dtype=bool)
    return known[table.reason]


def group_codes(table: ScoreTable, key: str) -> tuple[Codes, Sequence[str]]:
    """Return a code for every trial and the values they stand for.

    `key` is a tag, else `variant`, `repeat`, or the axis of a variant (`perturb` of `perturb=jpeg:3&wording=1`).
    """
    if key in table.tags:
        codes, values = table.tags[key]
        return codes[table.sample] if len(table) else table.sample, values
    if key == "variant":
        return table.variant, table.variants
    if key == "repeat":
        return table.repeat, [str(i) for i in range(int(table.repeat.max(initial=-1)) + 1)]
    return _axis_codes(table, key)


def _axis_codes(table: ScoreTable, axis: str) -> tuple[Codes, Sequence[str]]:
    parts = [axes_of(variant) for variant in table.variants]
    if len(table) and not any(axis in part for part in parts):
        known = sorted({*table.tags, "variant", "repeat"}.union(*parts))
        hint = f"{did_you_mean(axis, known)}; known: {', '.join(known)}"
        raise UsageError(f"cannot group by {axis!r}: no such tag or variant axis{hint}")
    texts = [part.get(axis, BASE_VARIANT) for part in parts]
    values = sorted(set(texts))
    codes = np.array([values.index(text) for text in texts], dtype=np.int32)
    return codes[table.variant] if len(table) else table.variant, values


def axes_of(variant: str) -> dict[str, str]:
    """Read a variant's axes leniently: rows from outside may hold any name."""
    pairs = (part.partition("=") for part in variant.split("&"))
    return {axis: value for axis, equals, value in pairs if equals}


def split(table: ScoreTable, key: str) -> Iterator[tuple[str, ScoreTable]]:
    """Yield the value and the sub-table of every group of `key` that was seen, in sorted order."""
    codes, values = group_codes(table, key)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0]) if order.size else order
    for rows in np.split(order, starts[1:]) if order.size else ():
        yield values[int(codes[rows[0]])], table.take(rows)


def groups(table: ScoreTable, keys: Sequence[str]) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Return the headline and its twins by each value of each key."""
    return {key: {value: headline_of(part) for value, part in split(table, key)} for key in keys}


def headline_of(table: ScoreTable) -> dict[str, Estimate]:
    """Return the mean of a table, that of what was read alone, and the strict one, which counts everything."""
    found = bounded(table, mean_by_question)
    strict = estimate_mean(*question_means(table, strict=True), n=len(table))
    return {
        table.metric: found,
        f"{table.metric}{READ}": read_twin(table, found, mean_by_question),
        f"{table.metric}{STRICT}": _not_below_nothing(table, structs.replace(strict, unit="trials")),
    }


def read_twin(table: ScoreTable, found: Estimate, of: Callable[[ScoreTable], Estimate]) -> Estimate:
    """Return a figure over what was read alone: the very same where everything was."""
    return structs.replace(of(table.only_read) if table.unread.any() else found, bounds=None, read=None)


def _not_below_nothing(table: ScoreTable, estimate: Estimate) -> Estimate:
    """Return an estimate whose interval begins at 0 where the metric counts errors: nobody makes fewer than none."""
    bounds = estimate.ci95
    if bounds is None or bounds[0] >= 0.0 or not lower_is_better(table.metric):
        return estimate
    return structs.replace(estimate, ci95=(0.0, bounds[1]))


def macro_over_groups(table: ScoreTable, key: str) -> dict[str, Estimate]:
    """Return `<metric>_macro_<key>`: the mean of the groups' means, each weighing the same and taken as fixed.

    None where a group has no trial that counts: that of the others would be another mean.
    """

    def of(table: ScoreTable) -> Estimate:
        parts = [question_means(part) for _, part in split(table, key)]
        return macro_estimate(table, parts if all(values.size for values, _ in parts) else [])

    return {f"{table.metric}_macro_{key}": bounded(table, of)}


def macro_estimate(table: ScoreTable, parts: Sequence[tuple[Floats, Codes]]) -> Estimate:
    """Return the mean of the means of groups of a table, given as values with their clusters."""
    scored, unscored, failed = table.counts
    if not parts:
        return Estimate(None, n=scored, unscored=unscored, failed=failed, unit="trials")
    moments = macro_moments(parts)
    bounded = all(bool(np.all((values >= 0.0) & (values <= 1.0))) for values, _ in parts)
    interval = share_interval(moments) if bounded else mean_interval(moments)
    return Estimate(moments.value, moments.stderr, interval, scored, unscored, failed, unit="trials")


def macro(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return `macro`: every group of the first `group_by` counts the same, however many trials it has.

    The groups are fixed; None where a group has no trial that counts.
    """
    table = scored.main
    key = next(iter(scored.task.group_by), None)
    if table is None or key is None or key not in table.tags:
        return {}
    codes, _ = table.tags[key]
    of_trial = codes[table.sample]

    def of(table: ScoreTable) -> Estimate:
        groups = [table.scored & (of_trial == code) for code in np.unique(of_trial)]
        known = groups if all(rows.any() for rows in groups) else []
        return macro_estimate(table, [(table.value[rows], table.cluster[rows]) for rows in known])

    return {"macro": bounded(table, of)}

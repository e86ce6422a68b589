"""Repeats and variants of a question in, how much its answer depends on them out; and the trend along dialogue rounds.

The instability of ReForm-Eval: the entropy (natural log) of the chosen option *text* over all trials of a question,
averaged over questions. Where the original divides by zero or returns NaN the result here is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from ...core.types import Estimate
from ...stats.bootstrap import ANYWHERE, bootstrap_interval
from ...stats.intervals import Floats
from ..tables.table import ScoreTable, lower_is_better
from .means import bounded, mean_by_question, mean_of_trials, split
from .repeats import Ballots, Cells, count_ballots, disagreement, entropy


class Trend(NamedTuple):
    """How the mean changes along rounds, every round weighing the same."""

    correlation: float | None
    """Pearson's r; None with fewer than two rounds or no spread."""
    slope: float | None
    """Change of the mean a round (least squares); 0 for a single round, None for none."""


def round_trend(rounds: Iterable[tuple[float, Sequence[float]]]) -> Trend:
    """Return correlation and slope of (round, mean of its values); a round without values is left out."""
    points = [(float(number), math.fsum(values) / len(values)) for number, values in rounds if len(values)]
    if not points:
        return Trend(None, None)
    x = np.array([point[0] for point in points])
    y = np.array([point[1] for point in points])
    return _trend(x - x.mean(), y - y.mean())


def _trend(x: Floats, y: Floats) -> Trend:
    across, up = float(x @ x), float(y @ y)
    if across == 0.0:
        return Trend(None, 0.0)
    slope = float(x @ y) / across
    flat = up <= 1e-24 * y.size
    return Trend(None if flat else max(-1.0, min(1.0, float(x @ y) / math.sqrt(across * up))), slope)


def aggregate(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return `instability` (mean entropy), `instability_flip_rate`, and with variants the range of their means.

    All trials of a question count, whatever their variant; a reply without an answer is an answer of its own, a
    failed trial is none.
    """
    estimates = {}
    if len(table.answers):
        by_question, ballots = _ballots(table)
        estimates["instability"] = by_question.estimate(entropy(ballots), is_share=False)
        estimates["instability_flip_rate"] = by_question.estimate(disagreement(ballots))
    return estimates | (variant_range(table) if table.is_varied else {})


def _ballots(table: ScoreTable, *, as_written: bool = False) -> tuple[Cells, Ballots]:
    by_question = Cells(replace(table, variant=np.zeros_like(table.variant)), "questions")
    cells = by_question.of_trial, by_question.number
    return by_question, count_ballots(table, *cells, none_votes=True, as_written=as_written)


def answer_entropy(table: ScoreTable) -> Estimate:
    """Return `instability` of another program's file; its interval is that of a share while no entropy exceeds 1."""
    by_question, ballots = _ballots(table, as_written=True)
    return by_question.estimate(entropy(ballots))


def variant_range(table: ScoreTable) -> dict[str, Estimate]:
    """Return the worst and the best mean of any one variant, and how far they lie apart (`<metric>_range`)."""
    parts = [_variant_mean(name, part) for name, part in split(table, "variant")]
    means = [part for part in parts if part.value is not None]
    failed = sum(part.unscored == 0 for part in parts if part.value is None)
    unread = len(parts) - len(means) - failed
    width = Estimate(None, n=len(means), unscored=unread, failed=failed, unit="variants")
    if not means:
        return {f"{table.metric}_range": width}
    lowest = min(means, key=lambda part: part.value or 0.0)
    highest = max(means, key=lambda part: part.value or 0.0)
    spread = (highest.value or 0.0) - (lowest.value or 0.0)
    worst, best = (highest, lowest) if lower_is_better(table.metric) else (lowest, highest)
    return {
        f"{table.metric}_worst_variant": worst,
        f"{table.metric}_best_variant": best,
        f"{table.metric}_range": structs.replace(width, value=spread),
    }


def _variant_mean(name: str, part: ScoreTable) -> Estimate:
    return structs.replace(bounded(part, mean_by_question), unit=f"trials of variant={name}")


def rounds(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return the mean of every dialogue round, `round_correlation` and `round_slope`, with intervals over dialogues.

    Option `round_tag` names the tag that holds the round's number (default `round`).
    """
    tag = str((options or {}).get("round_tag", "round"))
    known = _numbered_rounds(table, tag)
    estimates = {
        f"{table.metric}_round_{number:g}": structs.replace(mean_of_trials(part), unit=f"trials of {tag}={text}")
        for number, text, part in known
    }
    parts = [(number, part) for number, _, part in known]
    trend = round_trend((number, part.value[part.scored].tolist()) for number, part in parts)
    if sum(part.scored.any() for _, part in parts) < 2:  # one round has no slope, not even 0
        trend = Trend(None, None)
    intervals = _trend_intervals(parts)
    n, unscored, failed = (sum(part.counts[place] for _, part in parts) for place in range(3))
    for name, value, interval in zip(("round_correlation", "round_slope"), trend, intervals, strict=True):
        bounds = interval if value is not None else None
        estimates[name] = Estimate(value, None, bounds, n, unscored, failed, unit="trials")
    return estimates


def _numbered_rounds(table: ScoreTable, tag: str) -> list[tuple[float, str, ScoreTable]]:
    """Return the rounds that have a number, in its order: number, as it is written, trials."""
    split_up = split(table, tag) if tag in table.tags else ()
    numbered = [(round_number(text), text, part) for text, part in split_up]
    return sorted(((number, text, part) for number, text, part in numbered if number is not None), key=itemgetter(0))


def round_number(text: str) -> float | None:
    """Return the number of a round; None for what is no number."""
    try:
        return float(text)
    except ValueError:
        return None


def _trend_intervals(
    parts: Sequence[tuple[float, ScoreTable]],
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Draw whole dialogues; a draw without any trial of some round gives no trend and is left out."""
    seen = [(number, part) for number, part in parts if part.scored.any()]
    if len(seen) < 2:
        return None, None
    clusters, columns = np.unique(np.concatenate([part.cluster[part.scored] for _, part in seen])), []
    for weights in (True, False):
        for _, part in seen:
            codes = np.searchsorted(clusters, part.cluster[part.scored])
            columns.append(
                np.bincount(codes, weights=part.value[part.scored] if weights else None, minlength=clusters.size)
            )
    x = np.array([number for number, _ in seen])
    matrix = np.column_stack(columns).astype(np.float64)
    correlation, slope = (
        bootstrap_interval(matrix, lambda totals, i=i: _drawn_trend(totals, x)[i], "rounds", limits=limits)  # type: ignore[misc]
        for i, limits in enumerate(((-1.0, 1.0), ANYWHERE))
    )
    return correlation, slope


def _drawn_trend(totals: Any, x: Floats) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        means = totals[:, : x.size] / totals[:, x.size :]
        centered = means - means.mean(axis=1, keepdims=True)
        across = x - x.mean()
        products = centered @ across
        up = (centered**2).sum(axis=1)
        return products / np.sqrt(up * (across @ across)), products / (across @ across)

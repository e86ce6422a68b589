"""Comparisons of runs to plain tables: the test of every pair, agreement, where they differ, who flipped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...core.text import plural
from ...scoring.compare.paired import Comparison
from ...scoring.compare.run_pairs import ComparedPart
from ...scoring.tables.table import lower_is_better
from ...stats.distributions import normal_quantile
from ..written import percent_metric
from .sheet import Sheet

PAIR_COLUMNS = (
    *("metric", "A", "B", "A %", "B %", "B − A", "95 % interval", "p", "p (Holm)"),
    *("samples", "B better", "B worse", "verdict"),
)


def part_sheets(beside: Sequence[ComparedPart]) -> list[tuple[str, Sheet]]:
    """Return what kits say of runs beside each other, each task's as a table."""
    return [(task, part.as_sheet(task, one)) for part in beside for task, one in part.found.items()]


def pair_sheet(task: str, comparisons: Sequence[Comparison]) -> Sheet:
    """Return one line for every pair: difference, interval, test."""
    rows = []
    for one in comparisons:
        show = _percent if reads_in_percent(one) else figure_as_it_is
        bounds = f"{show(one.ci95[0], sign=True)} … {show(one.ci95[1], sign=True)}" if one.ci95 else "–"
        values = (show(one.first_value), show(one.second_value), show(one.difference, sign=True))
        counts = (f"{one.paired:,}", f"{len(one.better):,}", f"{len(one.worse):,}")
        names = (one.metric if reads_in_percent(one) else f"{one.metric} (not in %)", one.first, one.second)
        rows.append((*names, *values, bounds, p_value(one.p), p_value(one.p_adjusted), *counts, verdict(one)))
    note = (
        "Paired by sample, over what both have a reply to; a reply without a readable answer is not right. "
        "p is exact, adjusted over all pairs after Holm."
    )
    return Sheet(f"{task}: comparison", PAIR_COLUMNS, tuple(rows), note)


def verdict(one: Comparison) -> str:
    """Return what may be said of a pair."""
    if one.p_adjusted is None or one.difference is None:
        return "nothing to compare"
    if one.p_adjusted >= 0.05:
        return "not distinguishable"
    second_leads = (one.difference < 0) == lower_is_better(one.metric)
    return f"{one.second if second_leads else one.first} is better"


def verdict_line(one: Comparison) -> str:
    """Return what may be said of a pair as a sentence, with the questions that a gap of this size needs."""
    gap = abs(one.difference or 0.0)
    if one.difference is None or verdict(one) != "not distinguishable":
        return f"  verdict: {verdict(one)}"
    said = f"  verdict: {one.first} and {one.second} are not distinguishable on {plural(one.paired, 'question')}"
    needed = _questions_needed(one)
    if needed is None or needed <= one.paired:
        return said
    size = f"{gap * 100:.1f} points" if reads_in_percent(one) else figure_as_it_is(gap)
    return f"{said}; a gap of this size ({size}) needs about {needed:,}"


def _questions_needed(one: Comparison) -> int | None:
    """Return how many questions would find this gap with a power of 80 %, if they scatter as these do."""
    if not one.ci95 or not one.difference:
        return None
    error = (one.ci95[1] - one.ci95[0]) / (2 * normal_quantile(0.975))
    reach = (normal_quantile(0.975) + normal_quantile(0.8)) * error / abs(one.difference)
    exact = one.paired * reach * reach
    digits = max(0, len(str(int(exact))) - 2)  # two digits are all that an estimate of this kind has
    step = int(10**digits)
    return math.ceil(exact / step) * step


def agreement(one: Comparison) -> float | None:
    """Return the share of common samples on which two runs have the same value."""
    return 1.0 - (len(one.better) + len(one.worse)) / one.paired if one.paired else None


def agreement_matrix(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], float | None]:
    """Return agreement by (first, second), both ways round."""
    found: dict[tuple[str, str], float | None] = {}
    for one in comparisons:
        found[(one.first, one.second)] = found[(one.second, one.first)] = agreement(one)
    return found


def flips(comparisons: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    """Return, for every sample on which any two runs differ, the value of each run that is known from it."""
    found: dict[str, dict[str, float]] = {}
    for one in comparisons:
        for flip in (*one.better, *one.worse):
            found.setdefault(flip.sample, {}).update({one.first: flip.first, one.second: flip.second})
    return dict(sorted(found.items()))


def flip_sheet(task: str, comparisons: Sequence[Comparison], names: Sequence[str], most: int = 200) -> Sheet:
    """Return the flipped samples with every run's value."""
    found = flips(comparisons)
    rows = [
        (sample, *("=" if name not in values else f"{values[name]:.3g}" for name in names))
        for sample, values in list(found.items())[:most]
    ]
    more = f" Only the first {most} of {len(found):,} are listed." if len(found) > most else ""
    title = f"{task}: samples on which the runs differ"
    return Sheet(title, ("sample", *names), tuple(rows), f"{plural(len(found), 'sample')}.{more}")


def divergence_sheet(task: str, comparisons: Sequence[Comparison]) -> Sheet:
    """Return at which stage the paired samples first part."""
    stages = list(dict.fromkeys(stage for one in comparisons for stage in one.divergence))
    rows = [
        (f"{one.first} → {one.second}", *(f"{one.divergence.get(stage, 0):,}" for stage in stages))
        for one in comparisons
    ]
    note = "The first thing that differs between two runs on a sample."
    return Sheet(f"{task}: first divergence", ("pair", *stages), tuple(rows), note)


def sheets_of(results: Mapping[str, Sequence[Comparison]], names: Sequence[str]) -> list[Sheet]:
    """Return all tables of a comparison."""
    found = []
    for task, comparisons in results.items():
        main = [one for one in comparisons if one.metric == comparisons[0].metric]
        found += [pair_sheet(task, comparisons), divergence_sheet(task, main), flip_sheet(task, main, names)]
    return found


def _percent(value: float | None, *, sign: bool = False) -> str:
    return "–" if value is None else f"{value * 100:{'+' if sign else ''}.1f}"


def figure_as_it_is(value: float | None, *, sign: bool = False) -> str:
    """Return a figure that is no share, to three digits."""
    return "–" if value is None else f"{value:{'+' if sign else ''}.3g}"


def reads_in_percent(one: Comparison) -> bool:
    """Tell whether both values are shares, which people read in percent; pixels, points and CIDEr are none."""
    return all(percent_metric(one.metric, {"value": value}) for value in (one.first_value, one.second_value))


def p_value(value: float | None) -> str:
    """Return a p-value as people write it."""
    return "–" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.4f}"
